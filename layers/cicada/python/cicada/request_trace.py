"""The trace of a request: log lines with a ``step``, which ``cicada trace`` and the saved query show as a timeline.

Every line has the request's id, which the handler appends to all lines of an invocation. The lines never contain text
of questions, passages or answers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Literal, Protocol

Step = Literal[
    "accepted",
    "started",
    "asked_again",
    "resumed",
    "recovered",
    "attempt",
    "question_completed",
    "looked_up",
    "gathered",
    "retrieved",
    "tool_call",
    "guardrail",
    "model_call",
    "fault",
    "superseded",
    "delivered",
    "complete",
    "ended",
    "kept",
]
"""Every step, in the usual order, with its fields. Each line also has ``request_id`` and ``asker`` (a user's digest),
and, if an attempt's worker wrote it, ``strategy``:

- ``accepted``: route, confidence, strategy; not the reasoning, which quotes the question
- ``started``: strategy; an execution of the workflow was started
- ``asked_again``: last_seq; the same ``ask`` arrived again
- ``resumed``: after, last_seq, outcome
- ``recovered``: why, action (restarted, ended), by (resume, sweep), attempt
- ``attempt``: attempt, strategy, worker, execution, reserved_calls, failed
- ``question_completed``: by (model, as_is), took_ms
- ``looked_up``: outcome (answer, contexts, miss), similarity, took_ms, compared, why
- ``gathered``: intentions, named, places, sections, chosen, select_extract_ms, resolve_ms, query_ms, assemble_ms; how
  the context was gathered from what collections declare
- ``retrieved``: found, used, used_from_cache, searched, engine, index_version, took_ms, cache_ms, degraded
- ``tool_call``: tool, by (code, model), given_chars, reply_chars, took_ms, sources (so far), repeated, fault
- ``guardrail``: outcome (blocked, masked, unchecked, failed), blocked, masked (kinds of policies), why
- ``model_call``: purpose, model_id, calls, input_tokens, output_tokens, cost_usd, took_ms, first_piece_ms, fault
- ``fault``: code, why, dependency, attempt; other steps show what followed
- ``superseded``: why, attempt; another attempt, or the request's end, came first
- ``delivered``: attempt, last_seq, writes, posts, posts_failed
- ``complete``: attempt, answered_by, attempted, failed, model_id, grounded, stop_reason, and the metrics
- ``ended``: code, attempt, failed; the request ended with an error
- ``kept``: where (cache, conversation)
"""

NOT_FAULTS = (
    *("answer_blocked", "cancelled", "collection_unknown", "document_unknown", "episode_unknown", "section_unknown"),
)
"""The codes that a request can end with although nothing failed."""

MOST_LINES = 10_000
"""The most lines that a query returns: CloudWatch's limit."""


def insights_query(request_id: str, fields: Iterable[str]) -> str:
    """The CloudWatch Logs Insights query for a request's lines, oldest first, with ``fields`` after the time.

    ``request_id`` may not contain quotation marks or backslashes.
    """
    return (
        f"fields @timestamp, {', '.join(fields)}\n"
        f'| filter request_id = "{request_id}"\n'
        "| sort @timestamp asc\n"
        f"| limit {MOST_LINES}"
    )


def log_event(logger: logging.Logger, step: Step, message: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log one step of a request's trace."""
    logger.log(level, message, extra={"step": step, **fields})


class Coded(Protocol):
    """An error with a stable code."""

    @property
    def code(self) -> str:
        """See :class:`cicada.errors.CicadaError`."""


def log_fault(
    logger: logging.Logger, message: str, error: Coded, *, level: int = logging.WARNING, **fields: Any
) -> None:
    """Log the step ``fault`` of an error."""
    log_event(logger, "fault", message, level=level, code=error.code, why=str(error), **fields)
