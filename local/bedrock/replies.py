"""What a model says, and Converse's response with the whole of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web

from local.bedrock.requests import ConverseRequest
from local.bedrock.tokens import count_tokens, split_pieces


@dataclass(frozen=True)
class Reply:
    """A model's whole turn."""

    pieces: tuple[str, ...]
    stop_reason: str
    usage: Mapping[str, int]
    reasons: bool = False
    """Whether reasoning is streamed before the text."""

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
    usage = {
        "inputTokens": request.input_tokens,
        "outputTokens": tokens,
        "totalTokens": request.input_tokens + tokens,
    }
    return Reply(tuple(pieces), stop_reason or reason, usage, reasons)


def whole_response(reply: Reply, latency_ms: int) -> web.Response:
    """The response of Converse."""
    return web.json_response(
        {
            "output": {"message": {"role": "assistant", "content": [{"text": reply.text}]}},
            "stopReason": reply.stop_reason,
            "usage": reply.usage,
            "metrics": {"latencyMs": latency_ms},
        }
    )
