"""Which answers are kept, and whether a kept one may still be given again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from cicada.attempts.frame_limits import MAX_SENTENCE_CHARS
from cicada.attempts.strategy import AnswerGiven, AskedQuestion
from cicada.citations import check_citations
from cicada.protocol.events import Citation
from cicada.semantic_cache.entries import CachedAnswer
from cicada.text.sameness import can_be_compared

MAX_QUESTION_CHARS = 500
"""A longer question is hardly ever asked twice, and would make every look-up of its scope read more."""
KEPT_STRATEGIES = ("rag", "hybrid")
"""Strategies that search for the very question. An answer that CAG gives is an earlier one, or rests on what was found
for another question: kept, one would stand on the other, and what the first search had missed would never be found."""
NORMAL_STOPS = ("end_turn", "stop_sequence")
MIN_CITED_SHARE = 0.6
"""Of an answer's letters, the share of the sentences that a verified citation stands for: room for a short lead-in or
closing, and for no more that nobody has checked."""


def reason_to_leave_out(asked: AskedQuestion) -> str | None:
    """Why a question is neither looked up nor kept, in a word or two for the log; None if it is both.

    A number of passages of its own is nearly never asked for again, and each would have entries of its own.
    """
    if asked.question.top_k is not None:
        return "its own topK"
    if len(asked.query) > MAX_QUESTION_CHARS:
        return "question too long"
    if not can_be_compared(asked.query):
        return "characters that cannot be compared"
    return None


def reason_not_to_keep(given: AnswerGiven) -> str | None:
    """Why an answer is not kept, in a word or two for the log; None if it is."""
    retrieved, answered = given.retrieved, given.answered
    if given.strategy not in KEPT_STRATEGIES:
        return f"answered by {given.strategy}"
    if retrieved is None or not retrieved.sources:
        return "nothing retrieved"
    if retrieved.offered:
        return "passages only offered"
    if retrieved.reused is not None and retrieved.reused.use == "answer":
        return "replayed"
    if retrieved.degraded:
        return f"degraded: {retrieved.degraded[0].code}"
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
    return reason_to_leave_out(given.asked)


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
    """Whether today's check finds nothing against what was verified then, over the passages as they were kept."""
    checked = check_citations(body.text, body.sources)
    again = {(one.n, one.sentence[:MAX_SENTENCE_CHARS]) for one in checked if one.verdict != "unverified"}
    then = {(one.n, one.sentence[:MAX_SENTENCE_CHARS]) for one in body.citations if one.verdict == "verified"}
    return bool(then) and then <= again
