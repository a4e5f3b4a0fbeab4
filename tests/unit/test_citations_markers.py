"""Markers of an answer: what is one, and what it names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cicada.citations import NO_NUMBER, check_citations, not_attributed
from cicada.citations.checking import resolve
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


VECTORS = json.loads((Path(__file__).parents[1] / "data" / "markers.json").read_text(encoding="utf-8"))
"""Texts, the numbers of each of their markers, and the texts without them: the page reads them alike."""

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
        ("[1 and 3]", [(1, None, None), (3, None, None)]),
        ("[1, 2 & 3]", [(1, None, None), (2, None, None), (3, None, None)]),
        ("[Doc 1 and Doc 3]", [(1, None, None), (3, None, None)]),
        ("[Doc 1: pump.pdf & Doc 3: notes.md]", [(1, "pump.pdf", None), (3, "notes.md", None)]),
        ("[Docs 1 and 2, p. 3]", [(1, None, 3), (2, None, 3)]),
        ("[Docs 1-2: pump.pdf]", [(1, "pump.pdf", None), (2, "pump.pdf", None)]),
        ("[Doc 1, 2, Page 4]", [(1, None, 4), (2, None, 4)]),
        ("[Doc 1, 2 rules.pdf]", [(1, "2 rules.pdf", None)]),
        ("[Brand Doc 2.pdf]", [(None, "Brand Doc 2.pdf", None)]),
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
    "words",
    ["[sic]", "[a]", "[2024]", "[](x)", "[documented]", "[source of it all]", "[Page 3]", "[1a]", "[1 and two]"],
)
def test_other_brackets_are_words_of_the_answer(words):
    assert references(f"So it is {words}.") == []
    assert without_markers(f"So it is {words}.") == f"So it is {words}."


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["text"])
def test_markers_are_read_as_the_page_reads_them(vector):
    numbers = [
        list(dict.fromkeys(one.n for one in marker.references if one.n is not None))
        for marker in markers_in(vector["text"])
    ]
    assert numbers == vector["numbers"]
    assert without_markers(vector["text"]) == vector["plain"]


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
    assert [citation.verdict for citation in more] == ["unchecked"]
