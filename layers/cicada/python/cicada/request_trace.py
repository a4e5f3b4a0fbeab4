"""The story of a request: log lines that carry a ``step``, from which ``cicada trace`` and the saved query tell it.

A line stands under the request's id, which the function's entrance appends to every line of an invocation. Texts of
questions, passages and answers never stand in it.
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
    "model_call",
    "fault",
    "superseded",
    "delivered",
    "complete",
    "ended",
    "kept",
]
"""Every step, in the order in which they usually come. Their fields, beside ``request_id``, ``asker`` (who asked, as a
digest) and, where the line is of an attempt's worker, ``strategy``:

- ``accepted``: route, confidence, strategy; its reasoning quotes the question, so it is the asker's alone
- ``started``: strategy; an execution of the workflow was started
- ``asked_again``: last_seq; the same question once more
- ``resumed``: after, last_seq, outcome
- ``recovered``: why, action (restarted, ended), by (resume, sweep), attempt
- ``attempt``: attempt, strategy, worker, execution, reserved_calls, failed
- ``question_completed``: by (model, rule), took_ms
- ``looked_up``: outcome (answer, contexts, miss), similarity, took_ms, compared, why
- ``gathered``: intentions, named, places, sections, chosen, select_extract_ms, resolve_ms, query_ms, assemble_ms; how
  the context came about where collections declare what they serve
- ``retrieved``: found, used, used_from_cache, searched, engine, index_version, took_ms, cache_ms, degraded
- ``tool_call``: tool, by (code, model), given_chars, reply_chars, took_ms, sources (so far), repeated, fault
- ``model_call``: purpose, model_id, calls, input_tokens, output_tokens, cost_usd, took_ms, first_piece_ms, fault
- ``fault``: code, why, dependency, attempt; something went wrong, and other steps tell what followed
- ``superseded``: why, attempt; another attempt, or the request's end, came first
- ``delivered``: attempt, last_seq, writes, posts, posts_failed
- ``complete``: attempt, answered_by, attempted, failed, model_id, grounded, stop_reason, and the metrics
- ``ended``: code, attempt, failed; the request ended with an error
- ``kept``: where (cache, conversation)
"""

MOST_LINES = 10_000
"""As many lines of one request as a query returns: CloudWatch's own bound."""


def insights_query(request_id: str, fields: Iterable[str]) -> str:
    """The query of CloudWatch Logs Insights for a request's lines, over the functions' log groups, oldest first.

    Args:
        request_id: the client's id of the question; it may hold no quotation mark or backslash.
        fields: the columns, after the time.
    """
    return "\n".join(
        [
            f"fields @timestamp, {', '.join(fields)}",
            f'| filter request_id = "{request_id}"',
            "| sort @timestamp asc",
            f"| limit {MOST_LINES}",
        ]
    )


def log_event(logger: logging.Logger, step: Step, message: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log one step of a request's story."""
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
