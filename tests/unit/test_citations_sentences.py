"""Sentences of an answer: where they end, and which markers belong to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.citations import check_citations
from cicada.citations.sentences import Sentence, sentences_of
from cicada.corpus.passages import DocumentLocator
from cicada.protocol.events import Source
from cicada.protocol.markers import without_markers

TEXTS = ("The pump must be drained before it is moved.", "Close valve B first, then open valve A.")
SOURCES = tuple(
    Source(
        n=n,
        passage_id=f"p{n}",
        collection="shelf",
        locator=DocumentLocator(source="pump.pdf", title="Pump manual", page=n),
        score=0.5,
        text=text,
    )
    for n, text in enumerate(TEXTS, 1)
)


def cited_by(sentences: list[Sentence]) -> list[list[int | None]]:
    """The numbers that each sentence cites."""
    return [[one.n for citing in sentence.citing for one in citing.references] for sentence in sentences]


def test_a_period_in_a_marker_or_an_abbreviation_ends_no_sentence():
    answer = "Dr. Amsel drained the pump [Doc 1: pump.pdf, p. 4]. Valve A is open [2]."
    assert [sentence.text for sentence in sentences_of(answer)] == ["Dr. Amsel drained the pump.", "Valve A is open."]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("Lamp oil is blue.[3] Valve A is open.[2]", ["Lamp oil is blue.", "Valve A is open."]),
        ("The tank holds 3.5 litres.[1][2] Valve A is open.", ["The tank holds 3.5 litres.", "Valve A is open."]),
        ("Valve A is open. [2] It is 3 p.m. at most.", ["Valve A is open.", "It is 3 p.m. at most."]),
        ("Dr. Jones of Beta Inc. checked it [1].", ["Dr. Jones of Beta Inc. checked it."]),
        ("1. Valve A is open [1]. 2. The pump is dry [2].", ["1. Valve A is open.", "2. The pump is dry."]),
        ("弁Aは開いている。[1]ポンプは空だ。[2]", ["弁Aは開いている。", "ポンプは空だ。"]),
        ("The pump ran until 5 p.m. [1] Valve A is open. [2]", ["The pump ran until 5 p.m.", "Valve A is open."]),
        (
            "The pump is Amsel et al.'s, Inc. [1] Valve A is open.",
            ["The pump is Amsel et al.'s, Inc.", "Valve A is open."],
        ),
        ("She said “at 5 p.m.” [1] “Valve A is open.” [2]", ["She said “at 5 p.m.”", "“Valve A is open.”"]),
        ("The pump is in room B [1]. Valve A is open [2].", ["The pump is in room B.", "Valve A is open."]),
        ("The pump ran until 5 p.m. [1] and stopped.", ["The pump ran until 5 p.m. and stopped."]),
        ("The pump is that of Dr. [1] Amsel.", ["The pump is that of Dr. Amsel."]),
        ("- a. [1] Valve A is open.", ["- a. Valve A is open."]),
    ],
)
def test_a_sentence_ends_where_its_marker_does_and_not_after_an_abbreviation(answer, told):
    assert [sentence.text for sentence in sentences_of(answer)] == told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("Valve A is open. (Source: [1]) The pump is dry. (Source: [2])", ["Valve A is open.", "The pump is dry."]),
        ("Valve A is open. ([1]) The pump is dry. ([2])", ["Valve A is open.", "The pump is dry."]),
        ("Valve A is open.([1]) The pump is dry.([2])", ["Valve A is open.", "The pump is dry."]),
        ("Valve A is open. See [1]. The pump is dry. See [2].", ["Valve A is open.", "The pump is dry."]),
        ("弁Aは開いている。（[1]）ポンプは空だ。（出典：[2]）", ["弁Aは開いている。", "ポンプは空だ。"]),
    ],
)
def test_what_introduces_a_marker_after_the_stop_goes_with_it_to_the_sentence_before(answer, told):
    found = sentences_of(answer)
    assert [sentence.text for sentence in found] == told
    assert cited_by(found) == [[1], [2]]


CITED = "The pump must be drained before it is moved [1]. Valve A is open [2]."


@pytest.mark.parametrize(
    "sources",
    [
        "Sources: [1], [2]",
        "**Sources:** [1], [2]",
        "## Sources\n[1], [2]",
        "Sources:\n- [1]\n- [2]",
        "### Quellen:\n\n1. [Doc 1: pump.pdf, Page 4]\n2. [2]",
        "See also [1] and [2].",
    ],
)
@pytest.mark.parametrize("closing", ["", "\nI hope that this helps."])
def test_a_list_of_what_was_cited_before_says_nothing_of_its_own(closing, sources):
    cited = [[1], [2], *([[]] if closing else [])]
    assert cited_by(sentences_of(f"{CITED}{closing}\n\n{sources}")) == cited


def test_a_line_of_markers_belongs_to_a_sentence_that_has_none():
    assert cited_by(sentences_of(f"{CITED}\n\n[1] [2]")) == [[1], [2]]
    assert cited_by(sentences_of(f"{CITED} Both are old.\n[1] [2]")) == [[1], [2], [1, 2]]


def test_a_list_of_sources_belongs_to_the_sentence_before_with_what_was_not_cited_yet():
    found = sentences_of(f"{CITED}\n\nSources:\n- [1]\n- [3]")
    assert cited_by(found) == [[1], [2, 3]]
    assert [sentence.text for sentence in found][1] == "Valve A is open."


def test_a_line_of_sources_after_each_paragraph_belongs_to_it():
    answer = "The pump is drained.\n\nSource: [1]\n\nValve A is open.\n\nSource: [1]"
    assert cited_by(sentences_of(answer)) == [[1], [1]]


@pytest.mark.parametrize(
    "marked",
    [
        "Valve A is open (see [2]).",
        "Valve A is open, see [2].",
        "Valve A is open; cf. [2].",
        "Valve A is open (source: [2]).",
        "Valve A is open ([2]).",
        "Valve A is open (see also [1], [2]).",
        "Valve A is open [1] and [2].",
        "Valve A is open. See [2].",
        "Valve A is open.\nSources: [1], [2]",
        "Valve A is open (siehe auch [2]).",
    ],
)
def test_what_only_introduces_a_marker_is_no_part_of_the_sentence(marked):
    (sentence,) = sentences_of(marked)
    assert sentence.text == without_markers(marked) == "Valve A is open."
    assert {citing.claim for citing in sentence.citing} == {"Valve A is open."}


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("See [2] for the valve.", "See for the valve."),
        ("You can see [2] the valve.", "You can see the valve."),
        ("Open it, see [2] for more.", "Open it, see for more."),
        ("Open it (slowly, see [2]), then wait.", "Open it (slowly), then wait."),
    ],
)
def test_words_that_say_more_are_kept(marked, plain):
    assert without_markers(marked) == plain


def test_what_introduces_a_marker_within_a_sentence_is_no_part_of_its_words():
    answer = "The pump must be drained before it is moved (see [1]), and valve B is closed first (see [2])."
    (sentence,) = sentences_of(answer)
    assert [citing.claim for citing in sentence.citing] == [
        "The pump must be drained before it is moved",
        "and valve B is closed first.",
    ]


def test_spans_are_in_characters_of_the_answer():
    answer = "  The pump is drained [1]. \n- Valve A is open [2]\n\nNobody knows more."
    texts = [answer[one.start : one.end] for one in sentences_of(answer)]
    assert texts == ["The pump is drained [1].", "- Valve A is open [2]", "Nobody knows more."]


def test_a_marker_on_a_line_of_its_own_belongs_to_the_sentence_before():
    (sentence,) = sentences_of("Close valve B first, then open valve A.\n[2]")
    assert [one.n for citing in sentence.citing for one in citing.references] == [2]


def test_markers_within_a_sentence_stand_for_the_words_before_them():
    answer = "The pump must be drained before it is moved [1], and then valve B is closed first [2]."
    (sentence,) = sentences_of(answer)
    assert [citing.claim for citing in sentence.citing] == [
        "The pump must be drained before it is moved",
        "and then valve B is closed first.",
    ]
    assert [citation.verdict for citation in check_citations(answer, SOURCES)] == ["verified", "unchecked"]


@given(st.text(alphabet="ab [](),;:-.Doc12p\n", max_size=120))
def test_any_text_falls_into_sentences_in_order_and_within_it(answer):
    end = 0
    for sentence in sentences_of(answer):
        assert end <= sentence.start <= sentence.end <= len(answer)
        end = sentence.end
