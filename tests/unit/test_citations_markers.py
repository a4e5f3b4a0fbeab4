"""Markers of an answer: what is one, what it names, and which sentence it belongs to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.citations import NO_NUMBER, check_citations, not_attributed
from cicada.citations.resolving import resolve
from cicada.citations.sentences import sentences_of
from cicada.corpus.passages import DocumentLocator
from cicada.protocol.events import Source
from cicada.protocol.markers import Reference, markers_in, without_markers


def document(
    n: int, source: str, page: int | None, text: str = "The pump must be drained before it is moved."
) -> Source:
    return Source(
        n=n,
        passage_id=f"p{n}",
        collection="shelf",
        locator=DocumentLocator(source=source, title="Pump manual", page=page),
        score=0.5,
        text=text,
    )


SOURCES = (
    document(1, "manuals/pump.pdf", 4),
    document(2, "manuals/pump.pdf", 7, "Close valve B first, then open valve A."),
    document(3, "notes.md", None, "The seal was replaced on 3 March 2021."),
)


def references(text: str) -> list[tuple[int | None, str | None, int | tuple[tuple[int, int], ...] | None]]:
    """Number, file and page of each; of several pages, their ranges."""
    found = []
    for one in (one for marker in markers_in(text) for one in marker.references):
        lone = {page for span in one.pages for page in span}
        found.append((one.n, one.file, one.pages if len(lone) > 1 else next(iter(lone), None)))
    return found


@pytest.mark.parametrize(
    ("marker", "named"),
    [
        ("[1]", [(1, None, None)]),
        ("[1][3]", [(1, None, None), (3, None, None)]),
        ("[1, 3; 2]", [(1, None, None), (3, None, None), (2, None, None)]),
        ("[1-3]", [(1, None, None), (2, None, None), (3, None, None)]),
        ("[1–2, 9]", [(1, None, None), (2, None, None), (9, None, None)]),
        ("[3-1]", [(3, None, None), (1, None, None)]),
        ("[Doc 2: pump.pdf, Page 7]", [(2, "pump.pdf", 7)]),
        ("[doc 2]", [(2, None, None)]),
        ("[DOCUMENT 2: pump.pdf]", [(2, "pump.pdf", None)]),
        ("[Doc 2, p. 7]", [(2, None, 7)]),
        ("[Source 2: the manual of the pump, pp. 7-8]", [(2, "the manual of the pump", ((7, 8),))]),
        ("[Doc 2: pump.pdf, Page 7, 9]", [(2, "pump.pdf", ((7, 7), (9, 9)))]),
        ("[Doc 2: pump.pdf, pages 4, 7–8 and 11]", [(2, "pump.pdf", ((4, 4), (7, 8), (11, 11)))]),
        ("[pump.pdf, pp. 112-14]", [(None, "pump.pdf", ((112, 112), (14, 14)))]),
        ("[Doc 1, 2]", [(1, None, None), (2, None, None)]),
        ("[Docs 1-2 and 5]", [(1, None, None), (2, None, None), (5, None, None)]),
        ("[Doc 1, 2; Doc 3: notes.md]", [(1, None, None), (2, None, None), (3, "notes.md", None)]),
        ("[Doc 1: pump.pdf, Page 4; Doc 3: notes.md]", [(1, "pump.pdf", 4), (3, "notes.md", None)]),
        ("[Doc 1: a, b.pdf, Page 4, Doc 3: notes.md]", [(1, "a, b.pdf", 4), (3, "notes.md", None)]),
        ("[Doc: pump.pdf, Page 7]", [(None, "pump.pdf", 7)]),
        ("[pump.pdf, Page 7]", [(None, "pump.pdf", 7)]),
    ],
)
def test_a_marker_names_passages_by_number_and_place(marker, named):
    assert references(f"So it is {marker}.") == named


@pytest.mark.parametrize(
    "words", ["[sic]", "[a]", "[2024]", "[](x)", "[documented]", "[source of it all]", "[Page 3]", "[1a]"]
)
def test_other_brackets_are_words_of_the_answer(words):
    assert references(f"So it is {words}.") == []
    assert without_markers(f"So it is {words}.") == f"So it is {words}."


@pytest.mark.parametrize(
    ("reference", "n"),
    [
        (Reference(2), 2),
        (Reference(2, "pump.pdf", ((7, 7),)), 2),
        (Reference(2, "manuals/pump.pdf", ((7, 7),)), 2),
        (Reference(2, "PUMP"), 2),
        (Reference(2, "Pump manual", ((6, 8),)), 2),
        (Reference(3, "notes.md", ((12, 12),)), 3),  # it has no pages that could be wrong
        (Reference(None, "pump.pdf", ((5, 5), (7, 7))), 2),
        (Reference(9, "notes.md"), 3),
    ],
)
def test_a_reference_is_resolved_by_its_number_or_else_by_its_place(reference, n):
    resolved = resolve(reference, SOURCES)
    assert (resolved.n, resolved.objection) == (n, None)


@pytest.mark.parametrize(
    ("reference", "code", "told"),
    [
        (Reference(9), "no_such_passage", "with this number"),
        (Reference(None, "pump.pdf"), "no_such_passage", "2 passages"),
        (Reference(None, "other.pdf", ((1, 1),)), "no_such_passage", "other.pdf"),
        (Reference(2, "notes.md"), "wrong_place", "manuals/pump.pdf"),
        (Reference(2, "pump.pdf", ((4, 4),)), "wrong_place", "on page 7, not on page 4"),
        (Reference(2, "pump.pdf", ((1, 3), (8, 8))), "wrong_place", "not on page 1-3, 8"),
    ],
)
def test_a_reference_to_another_place_is_objected_to(reference, code, told):
    objection = resolve(reference, SOURCES).objection
    assert objection is not None
    assert objection.code == code
    assert told in objection.reason


def test_a_marker_that_contradicts_its_own_place_is_unverified_with_the_passage_that_it_numbers():
    (citation,) = check_citations("The pump must be drained before it is moved [Doc 1: pump.pdf, Page 9].", SOURCES)
    assert (citation.n, citation.passage_id, citation.verdict, citation.code) == (1, "p1", "unverified", "wrong_place")


def test_a_marker_without_a_number_that_names_no_passage_has_none():
    (citation,) = check_citations("The pump must be drained [other.pdf, Page 1].", SOURCES)
    assert (citation.n, citation.passage_id, citation.code) == (NO_NUMBER, None, "no_such_passage")


# --- sentences ---


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
    ],
)
def test_a_sentence_ends_where_its_marker_does_and_not_after_an_abbreviation(answer, told):
    assert [sentence.text for sentence in sentences_of(answer)] == told


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
    assert {citation.verdict for citation in check_citations(answer, SOURCES)} == {"verified"}


def test_a_swapped_pair_of_markers_within_a_sentence_does_not_hold():
    answer = "The pump must be drained before it is moved [2], and then valve B is closed first [1]."
    assert [citation.verdict for citation in check_citations(answer, SOURCES)] == ["unverified", "unverified"]


# --- no markers ---


def test_an_answer_without_markers_has_all_sources_not_attributed():
    assert not_attributed("The pump must be drained before it is moved.", SOURCES) == (1, 2, 3)
    assert not_attributed("The pump must be drained [1]. Valve A is open.", SOURCES) == ()


@pytest.mark.parametrize(
    "answer",
    [
        "I found nothing in the script that answers this question.",
        "I found nothing in the sources that answers this question.",
        "The passages do not say who drained the pump.",
        "None of the provided documents mentions a pump.",
        "I could not find anything about it.",
        "Die Passagen nennen keinen Grund.",
        "",
    ],
)
def test_an_answer_that_tells_of_nothing_found_is_not_flagged(answer):
    assert not_attributed(answer, SOURCES) == ()
    assert check_citations(answer, SOURCES) == ()


def test_a_sentence_that_tells_of_nothing_found_gives_no_citation_of_where_it_was_looked_for():
    assert check_citations("The passages do not say who drained the pump [1].", SOURCES) == ()
    (citation,) = check_citations("The passages do not say who drained the pump [8].", SOURCES)
    assert citation.code == "no_such_passage"


def test_a_sentence_that_goes_on_or_quotes_is_checked_all_the_same():
    quoted = check_citations("Mara says: “I could not find the pump.” [1]", SOURCES)
    assert [citation.code for citation in quoted] == ["quote_not_found"]
    more = check_citations(
        "The passages do not say who did it, but the pump must be drained before it is sold [1].", SOURCES
    )
    assert [citation.verdict for citation in more] == ["unverified"]


@given(st.text(alphabet="ab [](),;:-.Doc12p\n", max_size=120))
def test_any_text_falls_into_sentences_in_order_and_within_it(answer):
    end = 0
    for sentence in sentences_of(answer):
        assert end <= sentence.start <= sentence.end <= len(answer)
        end = sentence.end
