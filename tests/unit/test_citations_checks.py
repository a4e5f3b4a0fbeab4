"""What the check of a citation tells apart, each by its code."""

from __future__ import annotations

import pytest

from cicada.citations import REASON_CODES, check_citations
from cicada.citations.numbers import quantities
from cicada.citations.quotes import MAX_QUOTED_CHARS, holds, quotations
from cicada.corpus.passages import DocumentLocator, ScriptLocator
from cicada.protocol.events import Citation, Source


def said(text: str, speaker: str = "Mara", context: str | None = None) -> Source:
    locator = ScriptLocator(episode_id="ep1", episode_name="Storm", chapter_id="c1", message_id="m1", speaker=speaker)
    return Source(n=1, passage_id="p1", collection="script", locator=locator, score=0.5, text=text, context=context)


def written(text: str) -> Source:
    locator = DocumentLocator(source="manual.pdf", title="Manual", page=3)
    return Source(n=1, passage_id="p1", collection="shelf", locator=locator, score=0.5, text=text)


def code_of(sentence: str, source: Source) -> str | None:
    (citation,) = check_citations(f"{sentence} [1]", (source,))
    assert (citation.code is None) == (citation.verdict == "verified") == (citation.reason is None)
    return citation.code


HELD = said("I never sold the mill to Anton. Corin paid 1,250 crowns for it in May 1911, before the flood.", "Bruno")


@pytest.mark.parametrize(
    "sentence",
    [
        "Bruno never sold the mill to Anton.",
        "Bruno says: “I never sold the mill … before the flood.”",
        "Corin paid 1250 crowns for the mill, Bruno says.",
        "The mill was paid for by Corin before the flood.",
        "In May 1911 Corin paid for it.",
    ],
)
def test_what_the_passage_says_in_other_words_is_verified(sentence):
    assert code_of(sentence, HELD) is None


@pytest.mark.parametrize(
    ("sentence", "code"),
    [
        ("Bruno says: “I always sold the mill.”", "quote_not_found"),
        ("Corin paid 2,250 crowns for it.", "number_missing"),
        ("Corin paid for it in June 1911.", "number_missing"),
        ("Bruno never sold the mill to Viktor.", "name_missing"),
        ("Bruno sold the mill to Anton.", "contradicted"),
        ("Corin paid 1,250 crowns for it after the flood.", "contradicted"),
        ("Corin did not pay for it.", "contradicted"),
        ("Bruno keeps geese behind the chapel.", "unsupported"),
        ("He did so.", "nothing_to_compare"),
        ("Bruno a vendu son ancien moulin au bord de la rivière pour payer ses dettes.", "other_language"),
    ],
)
def test_what_does_not_hold_is_unverified_with_its_code(sentence, code):
    assert code in REASON_CODES
    assert code_of(sentence, HELD) == code


def test_every_code_is_told_in_the_protocol():
    described = Citation.model_fields["code"].description or ""
    assert described.partition("stable: ")[2].split(", ") == list(REASON_CODES)


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        ("Corin betrayed Oswin.", "Oswin betrayed Corin."),
        ("Corin betrayed Oswin.", "Corin was betrayed by Oswin."),
        ("I betrayed Oswin.", "Oswin betrayed Mara."),
        ("The tower is taller than the church.", "The church is taller than the tower."),
        ("All guests left. Some lamps stayed lit.", "All lamps stayed lit."),
        ("You may drain the tank.", "You must drain the tank."),
        ("The warranty covers parts but not labour.", "The warranty covers labour but not parts."),
        ("Anna opened the gate. Paul fed the horses.", "Paul opened the gate."),
        ("Use grade 30 oil in winter; grade 40 oil is for summer.", "In winter grade 40 oil is used."),
        ("Der Ofen wird vor dem Essen geheizt.", "Der Ofen wird nach dem Essen geheizt."),
        ("La porte n'est pas fermée.", "La porte est fermée."),
        ("門は九時に開いた。", "門は九時に閉じた。"),
    ],
)
def test_the_opposite_in_the_same_words_is_contradicted(passage, sentence):
    assert code_of(sentence, said(passage)) in ("contradicted", "number_missing", "unsupported")


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        ("Corin betrayed Oswin.", "Oswin was betrayed by Corin."),
        ("The tower is taller than the church.", "The church is shorter than the tower."),
        ("Anna sold the horse to Paul.", "Paul bought the horse from Anna."),
        ("Nobody but Oda knew the way.", "Only Oda knew the way."),
        ("The letter was not signed.", "The letter was unsigned."),
        ("They say I stole it. I did not steal the silver.", "Mara denies that she stole the silver."),
        ("Orders can be cancelled until they are shipped.", "An order can be cancelled as long as it is not shipped."),
    ],
)
def test_the_same_in_turned_words_is_verified(passage, sentence):
    assert code_of(sentence, said(passage)) is None


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("If he asks, I might lend him the ledger, but not today.", "I might lend him the ledger … not today"),
        ("I never trusted him.", "I never trusted [Corin]"),
        ("She said: ‘Come at once’ and left.", 'She said: "Come at once"'),
        ("It’s the miller – he knows.", "it's the miller - he knows"),
    ],
)
def test_a_quotation_is_found_whatever_it_is_typed_with(text, part):
    assert holds(text, part)


@pytest.mark.parametrize(
    ("text", "part"), [("I know.", "no"), ("He came. She left.", "She left … He came"), ("I saw it", "[…]")]
)
def test_a_quotation_that_is_not_there_is_not_found(text, part):
    assert not holds(text, part)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("twelve dogs", "12 dogs"),
        ("1,250,000 dollars", "$1.25 million"),
        ("12 percent", "12%"),
        ("at 02:15", "at 2:15"),
        ("thirty-five minutes", "35 min"),
        ("the 3rd time", "the third time"),
        ("fünfundzwanzig Tage", "25 Tage"),
        ("十三回", "13回"),
        ("1.250,50 Euro", "1250.5 euros"),
    ],
)
def test_a_number_is_one_in_whatever_form(one, other):
    forms = [[(found.value, found.unit) for found in quantities(text)] for text in (one, other)]
    assert forms[0] == forms[1] != []


def test_a_unit_belongs_to_its_number():
    pump = written("The pressure is 4.5 bar at most, and the tank holds 200 litres.")
    assert code_of("The pressure is 4.5 psi at most.", pump) == "number_missing"
    assert code_of("The tank holds 200 l.", pump) is None


def test_what_stands_around_a_passage_tells_who_and_what_it_speaks_of():
    reply = said("Thirteen.", "Ilse", context="Tamsin: How many strokes did the bell give?\nIlse: Thirteen.")
    assert code_of("Ilse tells Tamsin that the bell gave thirteen strokes.", reply) is None
    assert code_of('Tamsin asks: "How many strokes did the bell give?"', reply) == "quote_not_found"


def test_several_passages_carry_a_sentence_together():
    one = said("Anna opened the gate at nine.", "Anna")
    other = said("Paul fed the horses and left the yard.", "Paul").model_copy(update={"n": 2, "passage_id": "p2"})
    found = check_citations("Anna opened the gate at nine, and Paul fed the horses [1][2].", (one, other))
    assert [citation.verdict for citation in found] == ["verified", "verified"]


@pytest.mark.parametrize(
    ("sentence", "second"),
    [
        ("The tank holds 3.5 litres [1][2].", "Lamp oil is blue."),
        ("The tank holds 3.5 litres [1, 2].", "The pump must be drained before it is moved."),
        ("The tank holds 3.5 litres [Doc 1; Doc 2].", "Three boats lie at the quay."),
        ("The tank was filled on 3 May 1961 [1][2].", "Lamp oil is blue."),
    ],
)
def test_a_passage_without_the_number_does_not_hold_beside_the_one_that_has_it(sentence, second):
    first = "The tank holds 3.5 litres. It was filled on 3 May 1961."
    sources = [written(first), written(second).model_copy(update={"n": 2, "passage_id": "p2"})]
    told = [(one.n, one.code) for one in check_citations(sentence, sources)]
    assert told == [(1, None), (2, "unsupported")]


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Jones of Beta Inc. checked it.",
        "Dr. Jones of Acme Inc. checked it.",
        "Dr. Jones checked it on 3 May 1961.",
        "It was checked by Dr. Jones.",
    ],
)
def test_a_name_after_a_title_is_a_name(sentence):
    assert code_of(sentence, written("Dr. Smith of Acme Inc. checked it on 3 May 1961.")) == "name_missing"


def test_a_sentence_with_an_abbreviation_holds_as_a_whole():
    passage = written("Dr. Smith of Acme Inc. checked it on 3 May 1961.")
    assert code_of("It was checked on 3 May 1961 by Dr. Smith of Acme Inc.", passage) is None


def test_words_that_introduce_a_marker_are_not_compared():
    passage = written("The tank holds 3.5 litres at 20 degrees.")
    for marked in ("(see [1])", ", see [1]", "(source: [1])", "(cf. [1])"):
        (citation,) = check_citations(f"The tank holds 3.5 litres {marked}.", [passage])
        assert citation.verdict == "verified", marked


@pytest.mark.parametrize(("chars", "read"), [(MAX_QUOTED_CHARS, True), (MAX_QUOTED_CHARS + 1, False)])
def test_a_quotation_is_bounded(chars, read):
    quoted = "a" * chars
    assert list(quotations(f"He said “{quoted}”.")) == ([quoted] if read else [])
