"""The classifier decides a question's route by what is asked, not by the letters that occur in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.declared.files import DECLARATION
from cicada.corpus.declared.reading import read_declaration
from cicada.routing.classifier import ROUTES, Classification, classify
from cicada.routing.lexicon import LEXICON

DATA = Path(__file__).resolve().parents[1] / "data"
SAMPLES = DATA.parents[1] / "samples"
TUNED_FLOOR = 0.98
HELD_ASIDE_FLOOR = 0.95


def accuracy(part: str) -> float:
    labelled = [json.loads(line) for line in (DATA / part).read_text(encoding="utf-8").splitlines()]
    return sum(classify(item["query"]).route == item["route"] for item in labelled) / len(labelled)


def test_the_queries_it_was_tuned_on_are_decided_as_labelled():
    assert accuracy("routes_tuning.jsonl") >= TUNED_FLOOR


def test_queries_it_was_not_tuned_on_are_decided_as_labelled():
    measured = accuracy("routes_held_aside.jsonl")  # the number alone is reported: the queries stay unread
    assert measured >= HELD_ASIDE_FLOOR


# --- what a substring search is fooled by ---

TRAPS = """
rag: does Mara listen at the door?
rag: who listens to the radio in the kitchen
rag: is Gohda a supporting character in episode 1?
rag: who plays a supporting character in the play
rag: show me where in chapter 3 she lies
rag: what evidence does she give in episode 2
rag: what evidence does the detective show in chapter 4?
rag: what does "goodbye, my summer" mean in the song?
rag: when does Ida say hello to the stranger
rag: who thanks the keeper?
rag: what does the insurance policy in the drawer say?
rag: who pays the bill at the inn?
rag: whose profile is on the coin?
rag: what is the theory lecture about in chapter 2?
rag: which theories do the detectives have about the key?
rag: what has changed in the profile of the coin?
rag: what changed in the police profile of the killer
rag: what characters do I meet in chapter 2?
rag: what is Erika's theory about the closed room?
rag: who compares the storm to a lion?
rag: who explained the code to Tom?
rag: who supports the roof beam
rag: what plan do the brothers make?
rag: which account of the fire does Ida believe?
rag: hi, in which episode does the piano break?
rag: thanks, who is the old man then?
rag: I think I missed it: what colour was the scarf?
rag: explain yourself, she said - in which chapter?
rag: who updates the ship's log
rag: police report on the killer's age
rag: what can I do with the lantern?
rag: what could we do about the guard on our turn
rag: what should I ask the innkeeper?
rag: can we talk to the statue?
rag: can we be surprised while we sleep
rag: do two shields add up?
rag: does a leather bag hold water?
rag: can the raft hold together in a storm
rag: what if a torch goes out?
rag: what if my sword breaks?
rag: what if we are caught in the rain
rag: what if someone attacks me from behind?
rag: what if somebody rolls a natural 20?
rag: what if two people attack me at once?
rag: what if a guard gets killed?
rag: what if a creature moved out of range?
rag: do the dates stand out?
rag: do the accounts add up to 400?
rag: do the numbers in the account add up to ten?
rag: do the clues stand out on the page?
rag: did the statement hang out of the drawer?
rag: did Tom being ill hold up the ferry?
rag: can you take the dates and add up the days?
rag: what should I ask first at the inn?
rag: what can I do now that the gate is shut?
rag: what can we do together against the troll?
rag: can we speak in the temple?
rag: can we talk a bit about the fire?
rag: can we talk a little sense into the guard?
rag: do I have any rope left?
rag: why did we pay the guard in silver?
"""


# --- how each route is typically asked for ---

TYPICAL = """
direct: Hi
direct: hey there, Cicada!
direct: thnaks
direct: hellooo
direct: Thanks so much for your help
direct: that was very useful, thanks
direct: thank you, that's exactly what I was looking for
direct: see ya later
direct: hello, how are you today?
direct: who made you?
direct: what can I ask you?
direct: what can I ask about?
direct: what can I do here?
direct: what can we do with you
direct: what can I do in this app?
direct: can we talk about something else?
direct: can we be friends?
direct: what should I ask first?
direct: what can I do now?
direct: what can we do today?
direct: what can we do together?
direct: can we talk a bit?
direct: can we chat a little?
direct: can we talk for a little while?
direct: can we speak in German?
direct: can we talk Portuguese?
direct: tell me another joke
direct: sorry, wrong window
direct: ok cool, got it
direct: Merci, au revoir
direct: Guten Morgen
direct: muchas gracias
direct: Спасибо
direct: さようなら
direct: 早上好！
direct: 안녕하세요
direct: ｈｅｌｌｏ
direct: 👋
direct: :)
rag: what does Beatrice give to Maria?
rag: show me the scene where they find the letter
rag: list all the suspects in episode 2
rag: tire pressure front axle
rag: the name of the cat
rag: how many hit points does a troll have
rag: what's my character's strength score?
rag: how do I reset the oil light?
rag: why is the door locked
rag: can you find the line where Tom says "never again"?
rag: could you tell me when the ferry leaves?
rag: did Tom or Ida find the key first?
rag: when and where was Mara born?
rag: wher did they hide the compass
rag: Dónde está el faro?
rag: wie heißt der Hund
rag: 誰が犯人ですか
rag: 谁杀了市长
hybrid: compare Mara and Ida
hybrid: explian how the locked room was made
hybrid: can you explain how the trick with the clock works?
hybrid: what are the main differences between the two diaries?
hybrid: how does Mara's attitude to her father change?
hybrid: what does the broken clock symbolize?
hybrid: who found the body and what did they do with it?
hybrid: What happened on the pier, who was there, and why did nobody call the police?
hybrid: thanks! can you also compare it with episode 2?
hybrid: pros and cons of taking the mountain road
hybrid: which of the three witnesses is most reliable, and why?
hybrid: why does the engine stall when cold, and what should I check first?
hybrid: summarise the story so far
hybrid: rank the suspects by motive and opportunity
hybrid: vergleiche Mara und Ida
hybrid: 比较两个结局
cag: what does it cost?
cag: how much is the premium plan?
cag: plans and pricing
cag: refund polciy
cag: how can I get a refund
cag: where can I see my invoices?
cag: do you store my questions?
cag: how do I reset my password?
cag: Do you offer student discounts?
cag: are my scripts used to train models?
cag: what's your policy on AI-generated content?
cag: what happens to my data when I delete my account?
cag: hello, I have a question about my bill
cag: compare the basic and pro plans
cag: who can see my uploads?
cag: Wie kann ich mein Abo kündigen?
profile_agent: show me Mara's profile
profile_agent: list my characters
profile_agent: view the profile of Beatrice
profile_agent: save a profile for Tom
profile_agent: craete a profile for Mara
profile_agent: update Mara's profile: she has a twin
profile_agent: add "hates the sea" to Tom's profile
profile_agent: note that Ida is afraid of fire
profile_agent: make a note that the door was open
profile_agent: what did I write about the chapel?
profile_agent: do I have any notes on the ferry?
profile_agent: how many notes do I have on Tom?
profile_agent: thanks, add that to my notes
profile_agent: Kinzo profile
profile_agent: mark Orsik as dead
profile_agent: delete my saved theory about the twins
profile_agent: What changed in Ida's profile?
profile_agent: what changed in my profile of Ida?
profile_agent: what is new in the profile of Ida?
profile_agent: what theories do I have?
profile_agent: List my theories
profile_agent: show me my theories, please
profile_agent: which characters do I have?
profile_agent: do I have any theories?
profile_agent: have I got any theories yet?
profile_agent: do I still have a theory about the key?
profile_agent: have I any profiles?
profile_agent: haven't I any notes on the ferry?
profile_agent: do I have any characters?
profile_agent: are there any theories of mine?
profile_agent: which of my theories are open?
profile_agent: what changed in my theory about the key?
profile_agent: Show Ida's profile
profile_agent: What do I have noted on Ida?
profile_agent: Delete my profile of Ida
profile_agent: zeig mir mein Profil von Ida
theory_agent: my theory is that Tom is the killer
theory_agent: I suspect the mayor poisoned the well
theory_agent: what evidence is there for Tom being the killer?
theory_agent: evidence against the butler?
theory_agent: validate my theory about the twins
theory_agent: refine my theory about the key: Ida hid it in the well
theory_agent: update my theory about the key: Ida hid it
theory_agent: revise my hypothesis that Tom lied to: Ida lied
theory_agent: analyze this theory: everyone died in episode 1
theory_agent: refute the idea that the ferry left on time
theory_agent: does anything contradict the theory that Ida did it?
theory_agent: what speaks against Tom as the murderer?
theory_agent: how likely is it that Mara wrote the letter herself?
theory_agent: prove me wrong: the captain did it
theory_agent: thoery: there is no witch
theory_agent: could the narrator be lying about the fire?
theory_agent: Tom is the killer, isn't he?
theory_agent: which lines undermine the idea that Tom is innocent
theory_agent: so my idea is that the shudder is caused by a bad sensor, does the manual support that?
theory_agent: does that add up?
theory_agent: does any of this hold water?
theory_agent: would the butler's story check out?
theory_agent: do the dates of the letters add up?
theory_agent: does the claim that Tom slept hold up?
theory_agent: what if Tom is the killer?
theory_agent: what if there is no witch?
theory_agent: what if someone else was on the pier?
theory_agent: what if somebody moved the clock?
theory_agent: what if someone was hiding in the cellar?
theory_agent: what if a stranger took the boat?
theory_agent: what if two people did it together?
theory_agent: what if an old servant secretly hid the will?
theory_agent: does the claim that Mara lied about the boat hold up?
theory_agent: does the idea that Tom set fire to it hold water?
theory_agent: would the assumption that the keeper was asleep at the time stand up?
theory_agent: does her motive hold up?
theory_agent: does his alibi stand up to scrutiny?
theory_agent: do these clues add up?
theory_agent: do the times add up?
theory_agent: do the facts stack up?
theory_agent: does it really all hang together?
theory_agent: would Mara being the thief add up?
theory_agent: would Tom being asleep by the fire make any sense?
theory_agent: do the numbers in Tom's testimony add up?
theory_agent: do I have evidence for my theory?
theory_agent: ich glaube, dass Tom der Mörder ist
"""


def examples(block: str) -> list[tuple[str, str]]:
    pairs = (line.split(": ", 1) for line in block.strip().splitlines())
    return [(query, route) for route, query in pairs]


@pytest.mark.parametrize(("query", "route"), examples(TRAPS))
def test_words_of_another_route_do_not_mislead(query: str, route: str):
    assert classify(query).route == route


@pytest.mark.parametrize(("query", "route"), examples(TYPICAL))
def test_a_typical_phrasing_finds_its_route(query: str, route: str):
    assert classify(query).route == route


def asked_of_collections() -> dict[str, str]:
    """The samples' questions that a collection is to be searched for, and where each is from."""
    found: dict[str, str] = {}
    for path in sorted(SAMPLES.rglob(DECLARATION)):
        declared = read_declaration(path.read_bytes())
        for intention in declared.intentions:
            found |= dict.fromkeys(intention.examples, f"{declared.collection}: {intention.name}")
    for line in (DATA / "campaign_questions.jsonl").read_text(encoding="utf-8").splitlines():
        if (item := json.loads(line))["collections"]:
            found[item["question"]] = "campaign_questions.jsonl"
    return found


def test_what_is_asked_of_a_collection_is_searched_for():
    elsewhere = [
        (question, found.route, asked_in)
        for question, asked_in in asked_of_collections().items()
        if (found := classify(question)).route not in ("rag", "hybrid")
    ]
    assert not elsewhere


def test_a_long_message_with_one_plain_question_is_a_question_about_the_text():
    told = "I don't remember what the stranger was wearing when he came in from the rain that evening. "
    assert classify(told * 4 + "What colour was his coat?").route == "rag"


def test_a_long_message_with_several_questions_is_complex():
    told = "I have just finished part two and I'm a bit lost in all of it by now. "
    query = told * 3 + "Who opened the gate? Where did the boat go? And why did nobody say anything?"
    assert classify(query).route == "hybrid"


@pytest.mark.parametrize("query", ["", " \n\t", "?!?", "...", "\ud800", "\u200b"])
def test_without_a_word_there_is_nothing_to_search_for(query: str):
    assert classify(query).route == "direct"


# --- doubts, confidence, reasons ---


def test_what_nothing_speaks_for_is_taken_for_a_question_about_the_text():
    found = classify("Kanon")
    assert found.route == "rag"
    assert "Nothing speaks for another route" in found.reasoning


def test_a_doubt_between_two_other_routes_goes_to_the_text():
    found = classify("analyze the profile of Ida")
    assert found.route == "rag"
    assert found.confidence < 0.5
    assert found.reasoning.startswith("In doubt between hybrid and profile_agent")


def test_the_reason_names_the_words_that_decided():
    reasoning = classify("Is there any evidence for Shannon being Beatrice?").reasoning
    assert "asks what speaks for or against a claim" in reasoning
    assert "evidence" in reasoning


def test_the_reason_names_what_was_too_weak():
    assert "too weak: for theory_agent" in classify("what theory do they teach at the school?").reasoning


def test_plain_evidence_is_surer_than_a_hint():
    plain, hinted = classify("validate my theory about the twins"), classify("could Tom be Ida's brother?")
    assert plain.route == hinted.route == "theory_agent"
    assert plain.confidence > 0.99 > hinted.confidence


# --- any text at all ---

WORDS = st.sampled_from(sorted(set().union(*LEXICON.values())))
TEXTS = st.one_of(
    st.text(max_size=300),
    st.text(alphabet=st.characters(exclude_categories=()), max_size=300),  # surrogates too
    st.lists(st.one_of(WORDS, st.sampled_from(list(".?!,;:'\"-")), st.just("Mara")), max_size=60).map(" ".join),
)


def check(found: Classification) -> None:
    assert found.route in ROUTES
    assert 0.0 <= found.confidence <= 1.0
    assert found.reasoning.strip()
    found.reasoning.encode("utf-8")


@given(TEXTS)
def test_any_text_has_a_route_a_confidence_and_a_reason_always_the_same(text: str):
    found = classify(text)
    check(found)
    assert classify(text) == found


@settings(max_examples=30)
@given(TEXTS, st.sampled_from(["please ", "Please, ", "PLEASE "]))
def test_politeness_decides_nothing(text: str, please: str):
    assert classify(please + "list my profiles").route == "profile_agent"
    check(classify(please + text))


def calls_made(query: str) -> int:
    """Function calls of one classification: the same on every machine, unlike its time."""
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        classify(query)
    finally:
        sys.setprofile(None)
    return count


UNITS = st.one_of(
    st.lists(WORDS, min_size=1, max_size=4).map(lambda words: " ".join(words) + " "),
    st.sampled_from(["a. ", "? ", ", ", "and so ", "'x ", '"a', "- ", "hello ", "is there any ", "«»", "你好", "a'"]),
)


@settings(max_examples=60)
@given(UNITS)
def test_work_grows_no_faster_than_the_text(unit: str):
    times = max(1, 900 // len(unit))
    classify("warm up " + unit * 2)
    assert calls_made(unit * times * 2) <= 2.3 * calls_made(unit * times) + 500


@pytest.mark.parametrize(
    "unit",
    ["'", '"', "''a", "1", "1.", "-", "a-", "\u0301\u0316", "\ufdfa", "aaa ", "evidence for ", "«", "ß", "\udfff"],
)
def test_the_longest_query_the_protocol_lets_through_is_read(unit: str):
    check(classify((unit * 4_000)[:4_000]))


def test_what_lies_beyond_the_protocols_limit_is_not_read():
    head = "who found the body in the library " * 200
    assert classify(head[:4_000]) == classify(head[:4_000] + " list my profiles")


def test_it_brings_neither_numpy_nor_a_client_of_aws():
    code = (
        "import sys, cicada.routing.classifier;"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'numpy', 'boto3', 'botocore'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
