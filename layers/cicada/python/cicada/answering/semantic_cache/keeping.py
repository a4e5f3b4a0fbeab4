"""Which answers are kept: those that another asker could be given without being misled."""

from __future__ import annotations

from cicada.answering.strategy import AnswerGiven

MAX_QUESTION_CHARS = 500
"""A longer question is hardly ever asked twice, and would make every look-up of its scope read more."""
KEPT_STRATEGIES = ("rag", "hybrid")
"""Strategies that search for the very question. An answer that CAG gives is an earlier one, or rests on what was found
for another question: kept, one would stand on the other, and what the first search had missed would never be found."""
NORMAL_STOPS = ("end_turn", "stop_sequence")


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
    if len(given.asked.query) > MAX_QUESTION_CHARS:
        return "question too long"
    return None
