"""What a model says, and Converse's response with the whole of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from local.bedrock.requests import ConverseRequest
from local.bedrock.tokens import count_tokens, split_pieces

REASONING = "Look for the passages that answer this."
SIGNATURE = "c2lnbmF0dXJl"
FORM_FAULTS = frozenset({"misfit", "talk", "unreadable"})
_TALK = "I would rather talk about it."


@dataclass(frozen=True)
class ToolUse:
    """A call of a tool."""

    identifier: str
    name: str
    value: Mapping[str, Any]
    """Its input."""


@dataclass(frozen=True)
class Reply:
    """A model's whole turn."""

    pieces: tuple[str, ...]
    stop_reason: str
    usage: Mapping[str, int]
    reasons: bool = False
    """Whether reasoning stands before the text."""
    tool_use: ToolUse | None = None

    @property
    def text(self) -> str:
        """What the model says."""
        return "".join(self.pieces)


def compose(
    text: str, request: ConverseRequest, *, stop_reason: str | None, stop_after: int | None, reasons: bool
) -> Reply:
    """Cut the answer as a model would: at a stop sequence, and at ``maxTokens``.

    Args:
        text: the answer.
        request: what was asked.
        stop_reason: why it stops, if a fault says so.
        stop_after: how many pieces there are before it stops for that reason; all by default.
        reasons: see :class:`Reply`.
    """
    reason = "end_turn"
    found = [place for sequence in request.stop_sequences if (place := text.find(sequence)) >= 0]
    if found:
        text, reason = text[: min(found)], "stop_sequence"
    pieces: list[str] = []
    tokens = 0
    for piece in split_pieces(text)[:stop_after]:
        tokens += count_tokens(piece)
        if tokens > request.max_tokens:
            tokens, reason = request.max_tokens, "max_tokens"
            break
        pieces.append(piece)
    return Reply(tuple(pieces), stop_reason or reason, _usage(request, tokens), reasons)


def compose_tool_use(value: Mapping[str, Any], request: ConverseRequest, *, fault: str | None, reasons: bool) -> Reply:
    """A turn in which the model calls the tool.

    Args:
        value: the tool's input.
        request: what was asked.
        fault: how the turn is not what it should be: ``misfit`` (the input lacks all), ``talk`` (words in place of the
            call) or ``unreadable`` (the service cannot read the call); nothing is wrong when None.
        reasons: see :class:`Reply`.
    """
    if request.tool is None:
        raise ValueError("no tool was offered")
    if fault == "talk":
        return _tool_reply(request, (_TALK,), "end_turn", None, reasons=reasons)
    if fault == "unreadable":
        return _tool_reply(request, (), "malformed_tool_use", None, reasons=reasons)
    use = ToolUse(f"tooluse_{uuid.uuid4().hex[:22]}", request.tool.name, {} if fault == "misfit" else value)
    tokens = count_tokens(json.dumps(use.value, ensure_ascii=False))
    if tokens > request.max_tokens:  # the call was cut while it was written, and nothing of its input is whole
        return _tool_reply(request, (), "max_tokens", replace(use, value={}), reasons=reasons)
    return _tool_reply(request, (), "tool_use", use, reasons=reasons)


def _tool_reply(
    request: ConverseRequest, pieces: tuple[str, ...], reason: str, use: ToolUse | None, *, reasons: bool
) -> Reply:
    written = "".join(pieces) if use is None else json.dumps(use.value, ensure_ascii=False)
    tokens = request.max_tokens if reason == "max_tokens" else count_tokens(written)
    return Reply(pieces, reason, _usage(request, tokens), reasons, use)


def _usage(request: ConverseRequest, output_tokens: int) -> dict[str, int]:
    return {
        "inputTokens": request.input_tokens,
        "outputTokens": output_tokens,
        "totalTokens": request.input_tokens + output_tokens,
    }


def whole_response(reply: Reply, latency_ms: int) -> dict[str, Any]:
    """The body of Converse's response."""
    content: list[dict[str, Any]] = []
    if reply.reasons:
        content.append({"reasoningContent": {"reasoningText": {"text": REASONING, "signature": SIGNATURE}}})
    if reply.text or reply.tool_use is None:
        content.append({"text": reply.text})
    if reply.tool_use is not None:
        use = reply.tool_use
        content.append({"toolUse": {"toolUseId": use.identifier, "name": use.name, "input": use.value}})
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reply.stop_reason,
        "usage": reply.usage,
        "metrics": {"latencyMs": latency_ms},
    }
