"""The classifier decides a question's route by what is asked, in any language, and says in doubt ``rag``."""

from __future__ import annotations

import json
import sys
from array import array
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.declared.declaration import DECLARATION
from cicada.corpus.declared.parsing import read_declaration
from cicada.routing import classifier
from cicada.routing.classifier import ROUTES, Classification, classify
from cicada.text.linear import LinearClassifier

ROOT = Path(__file__).resolve().parents[2]
LABELLED = ROOT / "training" / "data" / "routing"
LARGEST_FILE_BYTES = 512_000
TUNING_FLOOR = 0.90
HELD_ASIDE_FLOOR = 0.86
LEAST_SEARCHED = 0.98


def labelled(author: str) -> list[tuple[str, str]]:
    lines = (LABELLED / f"{author}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(item["query"], item["label"]) for item in map(json.loads, lines)]


@pytest.mark.parametrize("part", ["tuning", "held_aside"])
def test_authors_who_did_not_train_it_are_decided_as_they_labelled(part: str):
    authors = json.loads((LABELLED / "split.json").read_text(encoding="utf-8"))[part]
    pairs = [pair for author in authors for pair in labelled(author)]
    share = sum(classify(query).route == label for query, label in pairs) / len(pairs)
    assert share >= (TUNING_FLOOR if part == "tuning" else HELD_ASIDE_FLOOR)  # only the share: the lines stay unread


def test_its_file_is_small():
    assert len((Path(classifier.__file__).parent / "routing.bin").read_bytes()) <= LARGEST_FILE_BYTES


TYPICAL = """
direct: hey there, Cicada!
direct: Thanks so much for your help
direct: Guten Morgen
direct: さようなら
rag: what does Beatrice give to Maria?
rag: who listens to the radio in the kitchen
rag: Dónde está el faro?
rag: 谁杀了市长
rag: what does the insurance policy in the drawer say?
rag: thanks, who is the old man then?
rag: who thanks the keeper?
rag: What kind of taxes did the farmers pay under the emperor?
hybrid: compare Mara and Ida
hybrid: summarise the story so far
hybrid: vergleiche Mara und Ida
cag: how much is the premium plan?
cag: how do I reset my password?
cag: Wie kann ich mein Abo kündigen?
profile_agent: show me Mara's profile
profile_agent: what did I write about the chapel?
profile_agent: zeig mir mein Profil von Ida
theory_agent: my theory is that Tom is the killer
theory_agent: evidence against the butler?
theory_agent: ich glaube, dass Tom der Mörder ist
"""


@pytest.mark.parametrize("line", TYPICAL.strip().splitlines())
def test_a_typical_phrasing_finds_its_route(line: str):
    route, query = line.split(": ", 1)
    assert classify(query).route == route


def asked_of_collections() -> dict[str, str]:
    """The samples' questions that a collection is to be searched for, and where each is from."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "samples").rglob(DECLARATION)):
        declared = read_declaration(path.read_bytes())
        for intention in declared.intentions:
            found |= dict.fromkeys(intention.examples, f"{declared.collection}: {intention.name}")
    for line in (ROOT / "tests" / "data" / "campaign_questions.jsonl").read_text(encoding="utf-8").splitlines():
        if (item := json.loads(line))["collections"]:
            found[item["question"]] = "campaign_questions.jsonl"
    return found


def test_what_is_asked_of_a_collection_is_searched_for():
    asked = asked_of_collections()
    elsewhere = [
        (question, found.route, asked[question])
        for question in asked
        if (found := classify(question)).route not in ("rag", "hybrid")
    ]
    assert len(elsewhere) <= (1 - LEAST_SEARCHED) * len(asked), elsewhere


# --- doubts, confidence, reasons ---


class Undecided(LinearClassifier):
    """A classifier of which no feature has a weight: every route is as likely."""

    def __init__(self) -> None:
        super().__init__(sorted(ROUTES), 16, 1.0, 1.0, [], array("b"))


def test_a_doubt_goes_to_the_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LinearClassifier, "of", lambda package, name: Undecided())
    found = classify("Kanon")
    assert found.route == "rag"
    assert found.confidence == pytest.approx(1 / len(ROUTES))
    assert found.reasoning.startswith("In doubt, so the text is searched: cag is 17% likely, rag or hybrid 33%")


def test_the_reason_names_the_words_that_decided():
    assert "“refund”" in classify("can I get a refund for the course").reasoning
    assert "“返金" in classify("返金してもらえますか").reasoning


def test_confidence_is_calibrated():
    pairs = labelled("corelli")
    found = [classify(query) for query, _ in pairs]
    right = sum(one.route == label for one, (_, label) in zip(found, pairs, strict=True)) / len(pairs)
    assert sum(one.confidence for one in found) / len(pairs) == pytest.approx(right, abs=0.06)


# --- any text at all ---

WORDS = st.sampled_from(["compare", "my", "notes", "evidence", "refund", "hello", "who", "ist", "好", "返金", "¿qué"])
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
def test_work_is_bounded_whatever_the_length(unit: str):
    times = max(1, 1_000 // len(unit))
    classify("warm up " + unit * 2)
    assert calls_made(unit * times * 4) <= 1.2 * calls_made(unit * times) + 500


@pytest.mark.parametrize(
    "unit",
    ["'", '"', "''a", "1", "1.", "-", "a-", "\u0301\u0316", "\ufdfa", "aaa ", "evidence for ", "«", "ß", "\udfff"],
)
def test_the_longest_query_the_protocol_lets_through_is_read(unit: str):
    check(classify((unit * 4_000)[:4_000]))


@pytest.mark.parametrize("query", ["", " \n\t", "?!?", "...", "\ud800", "\u200b"])
def test_a_text_without_a_word_has_a_route(query: str):
    check(classify(query))
