"""What the events of a ConverseStream say, and what its stop reasons mean for the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cicada.errors import (
    AnswerBlocked,
    AnswerIncomplete,
    AnswerMalformed,
    AnswerTruncated,
    ContextTooLarge,
    StreamBroken,
)
from cicada.models.ports import TextDelta, Usage

NORMAL_STOPS = frozenset({"end_turn", "stop_sequence"})
"""Any other stop reason leaves an answer that is not what it should be."""

_INCOMPLETE: dict[str, type[AnswerIncomplete]] = {
    "max_tokens": AnswerTruncated,
    "guardrail_intervened": AnswerBlocked,
    "content_filtered": AnswerBlocked,
    "malformed_model_output": AnswerMalformed,
    "malformed_tool_use": AnswerMalformed,
    "model_context_window_exceeded": ContextTooLarge,
}
"""Other reasons, ``tool_use`` by a model that was given no tools among them, are plain :class:`AnswerIncomplete`."""


@dataclass(frozen=True)
class MessageStop:
    """``messageStop``: the model has said all it will say."""

    reason: str


def read_event(event: Mapping[str, Any]) -> TextDelta | MessageStop | Usage | None:
    """What an event says; None if it is of no concern: reasoning, block boundaries, kinds not yet known.

    botocore gives an event whose payload is no JSON as an empty one: a hole in the text if it were skipped.

    Raises:
        StreamBroken: an event lacks what it must have.
    """
    try:
        if "contentBlockDelta" in event:
            text = event["contentBlockDelta"]["delta"].get("text")
            return TextDelta(text) if text else None
        if "messageStop" in event:
            return MessageStop(event["messageStop"]["stopReason"])
    except KeyError as error:
        raise StreamBroken(f"an event of the stream has no {error}") from error
    return read_usage(event["metadata"]) if "metadata" in event else None


def read_usage(metadata: Mapping[str, Any]) -> Usage:
    """The token counts of a stream's ``metadata``, or of a whole response."""
    counts = metadata.get("usage")
    if not counts:
        return Usage(reported=False)
    return Usage(
        input_tokens=counts.get("inputTokens", 0),
        output_tokens=counts.get("outputTokens", 0),
        cache_read_tokens=counts.get("cacheReadInputTokens", 0),
    )


def incomplete(stop_reason: str, usage: Usage | None) -> AnswerIncomplete:
    """The error of an answer that stopped for another reason than a normal finish; ``str(error)`` is the reason."""
    error = _INCOMPLETE.get(stop_reason, AnswerIncomplete)(stop_reason)
    error.usage = usage
    return error
