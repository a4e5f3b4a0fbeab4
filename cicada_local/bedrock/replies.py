"""What a model says, and Converse's response with the whole of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cicada_local.agents.turns import BrainCall, Step
from cicada_local.bedrock.requests import ConverseRequest
from cicada_local.bedrock.tokens import count_tokens, split_pieces

REASONING = "Look for the passages that answer this."
SIGNATURE = "c2lnbmF0dXJl"
FORM_FAULTS = frozenset({"misfit", "talk", "unreadable", "sequence", "garbled", "unoffered", "again"})
INVALID_SEQUENCE = (
    "Model produced invalid sequence as part of ToolUse. Please refer to the model tool use troubleshooting guide."
)
"""Source: AWS's solution accelerated-intelligent-document-processing-on-aws, issue 895; langchain-aws, issue 567."""
_TALK = "I would rather talk about it."
_UNOFFERED = "run_anything"


@dataclass(frozen=True)
class ToolUse:
    """A call of a tool."""

    identifier: str
    name: str
    value: Mapping[str, Any]
    """Its input."""
    written: str | None = None
    """The input as it is streamed, where that is not the value's JSON: cut off, or garbled."""

    @property
    def pieces(self) -> tuple[str, ...]:
        """The input's JSON as a stream brings it: an empty piece, then nothing for an input without fields."""
        written = self.written if self.written is not None else _json(self.value) if self.value else ""
        return ("", *split_pieces(written))


@dataclass(frozen=True)
class Reply:
    """A model's whole turn."""

    pieces: tuple[str, ...]
    stop_reason: str
    usage: Mapping[str, int]
    reasons: bool = False
    """Whether reasoning stands before the text."""
    tool_uses: tuple[ToolUse, ...] = ()
    """They follow the text."""
    trace: Mapping[str, Any] | None = None
    """What a guardrail did."""
    invalid_sequence: bool = False
    """The model writes no valid use of a tool, and the service ends the call with an error."""

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


def compose_tool_uses(
    step: Step, request: ConverseRequest, *, fault: str | None, reasons: bool, stop_reason: str | None = None
) -> Reply:
    """A turn in which the model calls tools.

    Args:
        step: what it says before, and its calls; at least one.
        request: what was asked.
        fault: how the turn is not what it should be: ``misfit`` (the inputs lack all), ``talk`` (words in place of the
            calls), ``unreadable`` (the service cannot read the calls), ``sequence`` (nor does it answer: the call fails
            with the model's error), ``garbled`` (the inputs are no JSON),
            ``unoffered`` (another tool is called) or ``again`` (the last calls once more); nothing is wrong when None.
        reasons: see :class:`Reply`.
        stop_reason: why it stops, if a fault says so.
    """
    if fault is not None and fault not in FORM_FAULTS:
        raise ValueError(f"bedrock.form: the mode {fault!r} is not known")
    if fault == "talk":
        return Reply((_TALK,), "end_turn", _usage(request, count_tokens(_TALK)), reasons)
    if fault == "unreadable":
        return Reply((), "malformed_tool_use", _usage(request, count_tokens("")), reasons)
    pieces, tokens = tuple(split_pieces(step.text)), count_tokens(step.text)
    if fault == "sequence":
        return Reply(pieces, "tool_use", _usage(request, tokens), reasons, invalid_sequence=True)
    uses: list[ToolUse] = []
    for use in (_use(call, fault) for call in _calls(step, request, fault)):
        written = "".join(use.pieces) or "{}"
        tokens += count_tokens(written)
        if tokens > request.max_tokens:  # the call was cut while it was written, and nothing of its input is whole
            cut = replace(use, value={}, written=written[: len(written) // 2])
            return Reply(pieces, "max_tokens", _usage(request, request.max_tokens), reasons, (*uses, cut))
        uses.append(use)
    return Reply(pieces, stop_reason or "tool_use", _usage(request, tokens), reasons, tuple(uses))


def _calls(step: Step, request: ConverseRequest, fault: str | None) -> tuple[BrainCall, ...]:
    if fault == "again":
        last = [turn.uses for turn in request.turns if turn.uses][-1:]
        return tuple(BrainCall(use.name, use.given) for uses in last for use in uses) or step.calls
    return step.calls


def _use(call: BrainCall, fault: str | None) -> ToolUse:
    return ToolUse(
        f"tooluse_{uuid.uuid4().hex[:22]}",
        _UNOFFERED if fault == "unoffered" else call.name,
        {} if fault in ("misfit", "garbled") else call.given,
        written=_json(call.given)[:-1] + ',"' if fault == "garbled" else None,
    )


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


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
    if reply.text or not reply.tool_uses:
        content.append({"text": reply.text})
    content += [
        {"toolUse": {"toolUseId": use.identifier, "name": use.name, "input": use.value}} for use in reply.tool_uses
    ]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reply.stop_reason,
        "usage": reply.usage,
        "metrics": {"latencyMs": latency_ms},
        **({} if reply.trace is None else {"trace": reply.trace}),
    }
