"""What the classifier is made of: words, slips of typing, the language of phrases, the tables of evidence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cicada.routing
from cicada.protocol.events import Route
from cicada.routing import small_talk
from cicada.routing.classifier import ROUTES
from cicada.routing.evidence import EVIDENCE
from cicada.routing.lexicon import LEXICON
from cicada.routing.phrases import Phrase, PhraseBook, Text, lines
from cicada.routing.reading import Fact, read
from cicada.routing.spelling import repaired
from cicada.routing.text import QUOTED, read_words


def tokens(text: str) -> tuple[str, ...]:
    return read_words(text).tokens


def facts(text: str) -> frozenset[Fact]:
    return read(read_words(text)).facts


# --- words ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What's Tom's theory?", ("what", "is", "tom", "'s", "theory", "?")),
        ("I’ve, don't", ("i", "have", ",", "do", "not")),
        ("can't won't isnt", ("can", "not", "will", "not", "is", "not")),
        ("in ch. 9, in-depth", ("in", "ch", "9", ",", "in", "depth")),
        ("ＨＥＬＬＯ！", ("hello", "!")),
        ("谁在灯塔？", ("谁", "在", "灯", "塔", "?")),
        ("a - b — c", ("a", "-", "b", "-", "c")),
        ("¿Qué tal?", ("qué", "tal", "?")),
    ],
)
def test_a_text_is_cut_into_words_with_its_contractions_written_out(text: str, expected: tuple[str, ...]):
    assert tokens(text) == expected


def test_what_is_quoted_is_spoken_of_and_not_said():
    assert tokens('who says "bye, little bird"?') == ("who", "says", QUOTED, "?")
    assert tokens("who says 'bye'?") == ("who", "says", QUOTED, "?")


def test_a_question_that_is_all_quotation_is_read():
    assert tokens('"list my profiles"') == ("list", "my", "profiles")


def test_names_are_told_by_their_capitals_unless_everything_is_shouted():
    assert read_words("is Mara here? Who knows").names == {1}
    assert not read_words("WHO IS MARA").names


# --- slips of typing ---


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("lsit", "list"),
        ("thoery", "theory"),
        ("polcy", "policy"),
        ("cancelation", "cancelation"),
        ("helo", "hello"),
        ("hellooo", "hello"),
        ("wher", "where"),
        ("profille", "profile"),
    ],
)
def test_a_slip_in_a_keyword_is_repaired(typed: str, meant: str):
    assert repaired(typed) == meant


@pytest.mark.parametrize("word", ["police", "prince", "trail", "crate", "hell", "were", "tanks", "mara", "p0700", ""])
def test_another_word_is_left_alone(word: str):
    assert repaired(word) == word


# --- phrases ---


def found(
    phrase: str, text: str, request_starts: tuple[int, ...] = (0,), clause_starts: tuple[int, ...] = (0,)
) -> bool:
    words = Text(tokens(text), frozenset(request_starts), frozenset(clause_starts))
    return any(PhraseBook({"it": [phrase]}).everywhere(words))


@pytest.mark.parametrize(
    ("phrase", "text", "expected"),
    [
        ("evidence for|against", "any evidence against him", True),
        ("evidence for|against", "any evidence he gave", False),
        ("my ..2 theory", "my very own theory", True),
        ("my ..2 theory", "my rather long old theory", False),
        ("my ..2 theory", "my view, a theory", False),
        ("my [own] theory", "my own theory", True),
        ("my [own] theory", "my theory", True),
        ("did !you", "did you", False),
        ("did !you", "did she", True),
        ("* profile $", "kinzo profile", True),
        ("* profile $", "kinzo profile of old", False),
        ("cost|$", "what it costs", False),
        ("how|what cost|$", "so what", True),
        ("@theory", "hypotheses", True),
        ("^ list", "list them", True),
        ("^ list", "the list", False),
        ("你好", "你好吗", True),
    ],
)
def test_the_language_of_phrases(phrase: str, text: str, *, expected: bool):
    assert found(phrase, text) is expected


@pytest.mark.parametrize("phrase", ["", "^", "..3 theory", "[my] theory", "!my theory", "@nonsense", "* *"])
def test_a_phrase_that_begins_with_no_certain_word_is_refused(phrase: str):
    with pytest.raises(ValueError, match=r"begin with a word|unknown word class"):
        Phrase(phrase)


def test_an_unknown_class_within_a_phrase_is_refused():
    with pytest.raises(ValueError, match="unknown word class: @nonsense"):
        _ = Phrase("my @nonsense").elements


# --- structure ---


def test_a_request_begins_behind_greetings_and_politeness():
    text = read(read_words("Hi Cicada! Could you please compare them")).text
    assert text.tokens.index("compare") in text.request_starts


def test_two_questions_are_several_and_courtesy_is_none():
    assert Fact.ASKS_SEVERAL in facts("Who is Kanon? And how is he related to Shannon?")
    assert Fact.ASKS_SEVERAL in facts("how does it begin, and why does it end")
    assert Fact.ASKS_SEVERAL not in facts("Hello, how are you? Who is Kanon?")
    assert Fact.ASKS_SEVERAL not in facts("thanks, and who found the body?")


def test_a_statement_is_told_from_a_question_and_from_a_name():
    assert Fact.ASSERTS in facts("Orsik must be the traitor")
    assert Fact.ASSERTS not in facts("must Orsik be there")
    assert Fact.ASSERTS not in facts("the scene where Tom is hurt")
    assert Fact.ASSERTS not in facts("the code for the safe")


def test_small_talk_is_nothing_else():
    assert Fact.ONLY_SMALL_TALK in facts("thank you so much, that was really helpful")
    assert Fact.ONLY_SMALL_TALK not in facts("thank you. where was Genji that night?")


# --- tables ---


def test_every_phrase_of_every_table_can_be_compiled():
    blocks = (small_talk.SALUTATIONS, small_talk.AFTERWORDS, small_talk.OPENERS)
    phrases = [*(p for row in EVIDENCE for p in row.phrases), *(p for block in blocks for p in lines(block))]
    assert all(Phrase(phrase).elements for phrase in phrases)


def test_every_row_looks_for_something_and_says_why():
    for row in EVIDENCE:
        assert bool(row.phrases) != bool(row.facts), row.why
        assert row.why
        assert row.weight


def test_no_phrase_stands_twice_for_one_route():
    seen = [(row.route, row.weight > 0, phrase) for row in EVIDENCE for phrase in row.phrases]
    assert len(seen) == len(set(seen))


def test_every_route_has_evidence():
    routes: set[Route] = {row.route for row in EVIDENCE}
    assert routes == set(ROUTES)


def test_every_word_class_is_used():
    folder = Path(cicada.routing.__path__[0])
    source = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    unused = {name for name in LEXICON if not re.search(rf'@{name}\b|LEXICON\["{name}"\]', source)}
    assert not unused
