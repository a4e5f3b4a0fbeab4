"""What an answer about a theory may say without evidence, with it, and with too little of it."""

from __future__ import annotations

import pytest

from cicada.agents.tools.shown import theory_source
from cicada.agents.tools.weighing import Weighed, reason_of
from cicada.answering.verdicts import lacks_evidence
from cicada.citations import check_citations
from cicada.profiles.heads import Head
from tests.support.agents import found

KEY = "Mara stole the key"
FALSE = "The story that Jon told is false"
TRUE = "Mara did not tell the true story"
LINE = "Mara stole the key from the desk that night."
OTHER = "Mara never stole the key from the desk."
COLD = "The supper was cold on the last evening."


def kept(n, statement, verdict=None):
    head = Head(
        id=f"{n:020x}", kind="theory", name=statement, version=1, facts=0, changed_at_ms=1, statement=statement,
        verdict=verdict, said_at_ms=1,
    )  # fmt: skip
    return theory_source(head).model_copy(update={"n": n})


def passage(n, text):
    return found(n, text).model_copy(update={"n": n})


def gathered(n, text, side="for", statement=KEY, strength=0.8):
    source = passage(n, text)
    return source.model_copy(update={"why": (reason_of(statement, Weighed(source, side, strength)),)})


NOTES = (kept(1, KEY), kept(2, "Jon is the keeper", "supported"), kept(3, FALSE), kept(4, TRUE))


def refused(text, sources=NOTES, *, said=(), recorded=False, changed=False):
    citations = check_citations(text, sources)
    return lacks_evidence(text, sources, citations, said=said, recorded=recorded, changed=changed)


# --- without a passage that is cited ---


@pytest.mark.parametrize(
    "text",
    [
        "You have two theories: that Mara stole the key, and that Jon is the keeper.",
        "You keep one theory: Mara stole the key.",
        "You keep one theory: Mara stole the key [1].",
        "You keep two theories:\n- Mara stole the key [1]\n- Jon is the keeper [2]",
        "You keep two theories:\n1. Mara stole the key\n2. Jon is the keeper",
        "You have no theories yet.",
        "You keep no theories yet.",
        "You have not stated a theory yet. Tell me what you suspect.",
        "I have one theory of yours on record: the story that Jon told is false [3].",
        "The theory was recorded on 21 November and refined once since.",
        "The verdict on record is open.",
        "The verdict on record for Jon is the keeper is: supported [2].",
        "The script says nothing about that. The theory stays open.",
        "I searched the script for and against your theory. I could not find any passage about it.",
        "I looked for passages on both sides. The script does not mention a key.",
        "I looked in every episode, and I found nothing.",
        "I found no evidence for or against this theory.",
        "I found no evidence for or against this in the text: Mara stole the key",
        "Nothing in the script speaks for it. No passage contradicts it.",
        "No passage supports or contradicts it, so the theory stays open.",
        "It can neither be called supported nor contradicted: no evidence was found.",
        "I cannot say whether it is true.",
        "I do not know which theory you mean: name it by some of its words.",
        "The change was not made: the theory has another version by now.",
        "I could not record a verdict: no evidence was gathered for this theory.",
        "I could not refine that theory: version 2 stands, not 1.",
        "Which of the two letters do you mean?",
        "Shall I look for what contradicts it?",
        "Do you want me to keep the theory that the story is true?",
        "Ich habe nichts zu deiner Theorie gefunden.",
    ],
)
def test_what_is_kept_was_sought_or_could_not_be_done_is_told_without_evidence(text):
    assert not refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "I have kept your theory.",
        "I have noted your theory that the story Jon told is false.",
        "I have noted the theory that Mara is wrong about the key.",
        "I deleted the theory that Mara stole the key.",
        "Done. Your theory is now: Mara did not tell the true story. Evidence has not been gathered yet.",
        "I refined it to: The story that Jon told is false.",
        "I have noted your theory. No verdict is recorded yet.",
        "It is saved as version 2 and the others are as they were.",
        "Ich habe deine Theorie notiert, dass Maras Geschichte falsch ist.",
    ],
)
def test_what_was_changed_is_told_without_evidence(text):
    assert not refused(text, changed=True)


@pytest.mark.parametrize(
    "text",
    [
        "Your theory is supported.",
        "Your theory is supported; nothing contradicts it.",
        "Nothing contradicts it, it is true.",
        "There is no doubt that the theory is true.",
        "There is nothing wrong with your theory.",
        "No one can deny it: the evidence confirms that Mara stole the key.",
        "Nothing contradicts the theory, so it is proven.",
        "I found no evidence against the theory, but it is true.",
        "The theory is supported, isn't it?",
        "Is it not true that Mara stole the key?",
        "Mara stole the key, and no passage contradicts this.",
        "Mara stole the key.",
        "Mara stole the key [1].",
        "Mara stole the key [1]. Your theory is supported.",
        "Mara stole the key [1]. Your theory is supported [1].",
        "She surely did it.",
        "Yes.",
        "I searched the script, and Mara did it.",
        "You keep one theory: Mara stole the key. It is right.",
        "You keep one theory: Mara stole the key, and it is true.",
        "I have noted that Jon lied, which proves your theory.",
        "The verdict on record is supported [1].",
        "The verdict on record is contradicted [2].",
        "Jon is the keeper [2] is false.",
    ],
)
def test_a_verdict_or_a_claim_without_evidence_is_refused(text):
    assert refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "Your theory stands.",
        "Your theory is right.",
        "You are right.",
        "The evidence is overwhelmingly in favour of it: Mara took the key.",
        "Verdict: yes.",
        "Your suspicion is well founded.",
        "Die Theorie stimmt.",
        "I have kept your theory. It is plausible.",
        "I have kept your theory. Mara stole the key.",
        "I have noted your theory that Mara stole the key, and it is true.",
        "I have noted your theory; it is certainly correct.",
    ],
)
def test_a_change_excuses_no_verdict(text):
    assert refused(text, changed=True)


# --- the history of a theory ---

CHANGE = passage(
    9,
    "Version 2, 2026-11-21 14:49 UTC: statement: “Mara stole the key” was added; "
    "verdict: “supported, by 2 of its evidence” was added",
).model_copy(update={"passage_id": "change:p1:2", "origin": "profile", "locator": NOTES[0].locator})


@pytest.mark.parametrize(
    "text",
    [
        "The history of your theory that Mara stole the key:\n"
        "- Version 2, 2026-11-21 14:49 UTC: verdict: “supported, by 2 of its evidence” was added [9]",
        "In version 2 the verdict “supported” was added [9].",
    ],
)
def test_what_changed_in_a_theory_is_told_with_the_change(text):
    assert not refused(text, (*NOTES, CHANGE))


@pytest.mark.parametrize(
    "text",
    [
        "Your theory is supported, by 2 of its evidence [9].",
        "In version 2 the verdict “contradicted” was added [9].",
        "In version 2 the verdict “supported” was added.",
        "So Mara stole the key [9].",
    ],
)
def test_a_change_proves_nothing_beside_that_it_was_made(text):
    assert refused(text, (*NOTES, CHANGE))


# --- with passages ---


@pytest.mark.parametrize(
    "text",
    [
        "Your theory is supported: Mara stole the key from the desk that night [5].",
        "Mara stole the key from the desk that night [5]. Your theory is supported.",
        "Strong evidence for it.\n“Mara stole the key from the desk that night.” [5]\n\nVerdict: supported.",
        "“Mara stole the key from the desk that night.” [5]\n\nI found no evidence against it.\n\nVerdict: open.",
        "Mara stole the key from the desk that night [5]. So the theory that Mara stole the key is supported.",
        "Mara stole the key from the desk that night [5]. No passage contradicts it.",
    ],
)
def test_a_verdict_rests_on_evidence_that_is_cited(text):
    assert not refused(text, (*NOTES, gathered(5, LINE), passage(6, COLD)))


@pytest.mark.parametrize(
    "text",
    [
        "Mara stole the key from the desk that night [5]. So the theory that Petra burnt the Almanac is proven.",
        "Mara stole the key from the desk that night [5]. Jon is the keeper, and that theory is supported.",
        "Mara stole the key from the desk that night [5]. Your theory is contradicted.",
        "Mara stole the key from the desk that night [5]. Your theory is not supported.",
        "The supper was cold on the last evening [6]. Your theory is supported.",
        "The supper was cold on the last evening [6]. Your theory that Mara stole the key is proven beyond doubt.",
        "The supper was cold on the last evening [6]: the theory is proven.",
        "The supper was cold on the last evening [6]. Mara stole the key.",
        "Petra burnt the Almanac [5]. Your theory is supported.",
    ],
)
def test_evidence_of_something_else_carries_no_verdict(text):
    assert refused(text, (*NOTES, gathered(5, LINE), passage(6, COLD)))


def test_weak_evidence_and_evidence_of_several_statements_carry_no_verdict_that_cites_nothing_itself():
    text = "Mara stole the key from the desk that night [5]. Your theory is supported."
    assert refused(text, (*NOTES, gathered(5, LINE, strength=0.3)))
    assert refused(text, (*NOTES, gathered(5, LINE), gathered(6, COLD, statement="The supper was cold")))


def test_both_sides_of_the_evidence_are_cited_for_a_verdict_on_both():
    sources = (*NOTES, gathered(5, LINE), gathered(6, OTHER, "against"))
    both = "Mara stole the key from the desk that night [5]. Mara never stole the key from the desk [6]. "
    assert not refused(both + "So the theory is both supported and contradicted.", sources)
    assert not refused(both + "Verdict: open.", sources)


def test_a_recorded_verdict_is_told_where_its_evidence_is_cited():
    sources = (*NOTES, gathered(5, LINE), passage(6, COLD))
    verdict = " I have recorded the verdict: the theory about the key and the desk is supported."
    assert not refused("Mara stole the key from the desk that night [5]." + verdict, sources, recorded=True)
    assert refused("The supper was cold on the last evening [6]." + verdict, sources, recorded=True)
    assert refused("I found no evidence.", sources, recorded=True)


def test_what_the_user_has_said_is_no_word_of_the_answers():
    text = "I found nothing on this theory: that the true heir is a likely liar."
    assert not refused(text, (), said=("the true heir is a likely liar",))


def test_words_of_a_passage_are_no_verdict_of_the_answers():
    sources = (passage(1, "The tale is true, said Corin, and Ilse laughed."),)
    assert not refused("Corin: “The tale is true, said Corin” [1].", sources)
    assert refused("Your theory is “true”. Ilse laughed [1].", sources)
