"""Which answers are cached, and whether a cached one may still be replayed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from cicada.attempts.frame_limits import MAX_SENTENCE_CHARS
from cicada.attempts.strategy import AnswerGiven, AskedQuestion, Retrieved
from cicada.citations import check_citations
from cicada.protocol.events import Citation
from cicada.semantic_cache.entries import CachedAnswer
from cicada.text.sameness import can_be_compared

MAX_QUESTION_CHARS = 500
"""A longer question is hardly ever asked twice, and would make every lookup of its scope read more."""
KEPT_STRATEGIES = ("rag", "hybrid")
"""Strategies that search for the question itself. A CAG answer is an earlier one, or rests on another question's
passages: if those were cached too, passages that the first search missed would never be found."""
NORMAL_STOPS = ("end_turn", "stop_sequence")
MIN_CITED_SHARE = 0.6
"""The least share of an answer's letters that stand in sentences with a verified citation. The rest allows a short
lead-in or closing."""


def reason_to_leave_out(asked: AskedQuestion) -> str | None:
    """Why a question is neither looked up nor cached, for the log; None if it is.

    A question with its own ``topK`` is left out: each value would need entries of its own, for very few hits.
    """
    if asked.question.top_k is not None:
        return "its own topK"
    if len(asked.query) > MAX_QUESTION_CHARS:
        return "question too long"
    if not can_be_compared(asked.query):
        return "characters that cannot be compared"
    return None


def reason_not_to_keep(given: AnswerGiven) -> str | None:
    """Why an answer is not cached, for the log; None if it is."""
    if given.strategy not in KEPT_STRATEGIES:
        return f"answered by {given.strategy}"
    return _unfit_passages(given.retrieved) or _unfit_answer(given) or reason_to_leave_out(given.asked)


def _unfit_passages(retrieved: Retrieved | None) -> str | None:
    if retrieved is None or not retrieved.sources:
        return "nothing retrieved"
    if retrieved.offered:
        return "passages only offered"
    if retrieved.reused is not None and retrieved.reused.use == "answer":
        return "replayed"
    if retrieved.degraded:
        return f"degraded: {retrieved.degraded[0].code}"
    return None


def _unfit_answer(given: AnswerGiven) -> str | None:
    answered = given.answered
    if answered.stop_reason not in NORMAL_STOPS:
        return f"stopped by {answered.stop_reason}"
    if not answered.grounded:
        return "not grounded"
    if any(citation.verdict != "verified" for citation in answered.citations or ()):
        return "a citation is not verified"
    if not given.text.strip():
        return "empty"
    if _cited_share(given.text, answered.citations or ()) < MIN_CITED_SHARE:
        return "too little of it is cited"
    return None


def _cited_share(text: str, citations: Sequence[Citation]) -> float:
    """The share of a text's letters that stand in sentences with a verified citation, in [0, 1]."""
    cited = [
        sentence
        for sentence, markers in groupby(citations, key=lambda citation: citation.sentence)
        if any(marker.verdict == "verified" for marker in markers)
    ]
    return sum(map(_letters, cited)) / max(1, _letters(text))


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def still_holds(body: CachedAnswer) -> bool:
    """Whether everything that was verified then still passes the current check, over the cached passages."""
    checked = check_citations(body.text, body.sources)
    again = {(one.n, one.sentence[:MAX_SENTENCE_CHARS]) for one in checked if one.verdict != "unverified"}
    then = {(one.n, one.sentence[:MAX_SENTENCE_CHARS]) for one in body.citations if one.verdict == "verified"}
    return bool(then) and then <= again
