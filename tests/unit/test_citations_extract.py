"""Citations of any answer and its passages, for integrators."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cicada.citations.extract import CitedPassage, ExtractCitationsRequest, extract_citations

PASSAGES = (
    CitedPassage(id="a", content="The pump must be drained before it is moved.", source="pump.pdf", page=4),
    CitedPassage(id="b", content="I locked the boathouse at ten.", speaker="Mara", episode="Storm"),
    CitedPassage(content="Close valve B first, then open valve A.", source="pump.pdf", page=7),
)


def test_an_answer_is_told_sentence_by_sentence():
    drained = "The pump must be drained before it is moved"
    answer = f"{drained} [Doc 1: pump.pdf, Page 4]. Mara locked it at 11 [2]. So it was."
    found = extract_citations(answer, PASSAGES)
    assert [sentence.text for sentence in found.sentences] == [
        "The pump must be drained before it is moved.",
        "Mara locked it at 11.",
        "So it was.",
    ]
    assert [answer[one.start : one.end].endswith("]." if one.markers else "was.") for one in found.sentences] == [
        True
    ] * 3
    (dried,), (locked,), none = (sentence.markers for sentence in found.sentences)
    assert (dried.passage_id, dried.source, dried.page, dried.verdict) == ("a", "pump.pdf", 4, "verified")
    assert (locked.passage_id, locked.verdict, locked.code) == ("b", "unverified", "number_missing")
    assert none == ()
    assert (found.cited, found.verified, found.not_cited, found.not_attributed) == ((1, 2), (1,), (3,), ())


def test_an_answer_without_markers_has_its_passages_not_attributed():
    found = extract_citations("The pump must be drained.", PASSAGES)
    assert (found.cited, found.not_cited, found.not_attributed) == ((), (), (1, 2, 3))


@pytest.mark.parametrize("answer", ["The passages do not say who drained the pump.", ""])
def test_an_answer_that_claims_nothing_has_its_passages_not_cited(answer):
    found = extract_citations(answer, PASSAGES)
    assert (found.cited, found.not_cited, found.not_attributed) == ((), (1, 2, 3), ())


def test_a_marker_by_place_alone_is_resolved():
    found = extract_citations("Close valve B first [pump.pdf, Page 7].", PASSAGES)
    assert [(one.n, one.passage_id) for sentence in found.sentences for one in sentence.markers] == [(3, "3")]


def test_passages_keep_numbers_of_their_own():
    numbered = tuple(passage.model_copy(update={"n": n}) for passage, n in zip(PASSAGES, (7, 8, 9), strict=True))
    assert extract_citations("The pump must be drained before it is moved [7].", numbered).verified == (7,)
    with pytest.raises(ValueError, match="duplicate passage number"):
        extract_citations("", (numbered[0], numbered[0]))


def test_a_judge_decides_where_code_cannot_tell():
    asked = []

    def judging(verdict):
        def judge(claims):
            asked.extend(claims)
            return {claim.number: verdict for claim in claims}

        return judge

    answer = "Empty it of all liquid ahead of transport [1]."
    judges = (None, judging("supported"), judging("not_stated"))
    found = [extract_citations(answer, PASSAGES, judge=judge).sentences[0].markers[0] for judge in judges]
    assert [(one.verdict, one.code) for one in found] == [
        ("unchecked", None),
        ("verified", None),
        ("unverified", "unsupported"),
    ]
    asked.clear()
    quoted = "The pump must be drained before it is moved [1]."
    assert extract_citations(quoted, PASSAGES, judge=judging("not_stated")).verified == (1,)
    assert asked == []


def test_the_request_is_strict():
    request = ExtractCitationsRequest.model_validate({"answer": "So [1].", "passages": [{"content": "So it is."}]})
    assert request.passages[0].n is None
    with pytest.raises(ValidationError):
        ExtractCitationsRequest.model_validate({"answer": "So [1].", "passages": [], "other": 1})
