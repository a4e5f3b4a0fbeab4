"""The CloudWatch Logs Insights query of a request's timeline, over the functions' log groups."""

from __future__ import annotations

from cicada.request_trace import insights_query

TELLERS = ("message_processor", "answer", "exhausted", "recovery_sweep")
"""The functions, by their folders below ``lambdas/``, whose lines carry a request's id."""

PLACEHOLDER = "PASTE-REQUEST-ID"
"""The placeholder of the request's id in the saved query."""

FIELDS = (
    "function_name",
    "step",
    "message",
    "attempt",
    "strategy",
    "route",
    "outcome",
    "action",
    "by",
    "code",
    "why",
    "dependency",
    "similarity",
    "found",
    "used",
    "tool",
    "fault",
    "purpose",
    "model_id",
    "calls",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "took_ms",
    "first_piece_ms",
    "last_seq",
    "answered_by",
    "failed.0",
)
"""The columns, after the time: what the steps of :mod:`cicada.request_trace` say."""


def trace_query() -> str:
    """The query that lists a request's lines in the order of their times."""
    return insights_query(PLACEHOLDER, FIELDS)
