"""What a model says, as Bedrock Runtime sends it: whole, or as a stream of frames, or as a stream that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from local.bedrock.event_stream import encode_event, encode_exception, encode_message
from local.bedrock.requests import ConverseRequest
from local.bedrock.tokens import count_tokens, split_pieces

CUT_MODES = frozenset({"exception", "reset", "silent", "half_frame", "corrupt", "garbled", "stall"})
_REASONING = "Look for the passages that answer this."


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


@dataclass(frozen=True)
class Cut:
    """How a stream breaks (the fault ``bedrock.cut``)."""

    mode: str = "reset"
    after: int = 3
    """Text deltas that are sent before."""
    exception: str = "modelStreamErrorException"
    message: str = "The stream was broken on purpose."
    framing: str = "chunked"
    """``chunked`` or ``close``: whether the response's end is marked. ``silent`` is ``close`` by its nature."""

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Cut:
        """Read a fault's parameters. Raises ValueError for an unknown mode."""
        known = {name: params[name] for name in cls.__dataclass_fields__ if name in params}
        cut = cls(**{**known, "after": int(known.get("after", cls.after))})
        if cut.mode not in CUT_MODES or cut.framing not in ("chunked", "close"):
            raise ValueError(f"bedrock.cut: mode {cut.mode!r} or framing {cut.framing!r} is not known")
        return cut

    @property
    def close_delimited(self) -> bool:
        """Whether the response ends with its connection."""
        return self.mode == "silent" or self.framing == "close"


def compose(text: str, request: ConverseRequest, *, stop_reason: str | None, reasons: bool) -> Reply:
    """Cut the answer as a model would: at a stop sequence, and at ``maxTokens``."""
    reason = "end_turn"
    found = [place for sequence in request.stop_sequences if (place := text.find(sequence)) >= 0]
    if found:
        text, reason = text[: min(found)], "stop_sequence"
    pieces: list[str] = []
    tokens = 0
    for piece in split_pieces(text):
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


class StreamedResponse(web.StreamResponse):
    """A response of event-stream frames."""

    def __init__(self, request_id: str, *, close_delimited: bool) -> None:
        headers = {"Content-Type": "application/vnd.amazon.eventstream", "x-amzn-RequestId": request_id}
        super().__init__(headers=headers)
        if close_delimited:
            self._length_check = False  # aiohttp's switch for a body that is neither chunked nor counted
            self.force_close()


async def send_stream(
    request: web.Request, response: StreamedResponse, reply: Reply, *, latency_ms: int, pace_s: float, cut: Cut | None
) -> None:
    """Send a reply as ConverseStream's events, with ``pace_s`` between deltas, or as much of it as the cut leaves.

    Returns when the caller closes its connection.
    """
    await response.prepare(request)
    try:
        await response.write(encode_event("messageStart", {"role": "assistant"}))
        for sent, frame in enumerate(_deltas(reply)):
            if cut is not None and sent == cut.after:
                break
            if sent:
                await asyncio.sleep(pace_s)
            await response.write(frame)
        if cut is not None:
            await _break(request, response, cut)
            return
        last_block = 1 if reply.reasons else 0
        await response.write(
            encode_event("contentBlockStop", {"contentBlockIndex": last_block})
            + encode_event("messageStop", {"stopReason": reply.stop_reason})
            + encode_event("metadata", {"usage": reply.usage, "metrics": {"latencyMs": latency_ms}})
        )
        await response.write_eof()
    except ConnectionResetError:
        return


def _deltas(reply: Reply) -> Iterator[bytes]:
    """A frame a text delta; what precedes the first one is sent with it."""
    before, index = b"", 0
    if reply.reasons:
        before = b"".join(
            encode_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": content}})
            for content in ({"text": _REASONING}, {"signature": "c2lnbmF0dXJl"})
        ) + encode_event("contentBlockStop", {"contentBlockIndex": 0})
        index = 1
    for piece in reply.pieces:
        yield before + encode_event("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": piece}})
        before = b""


async def _break(request: web.Request, response: StreamedResponse, cut: Cut) -> None:
    delta = encode_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "never whole"}})
    match cut.mode:
        case "exception":
            await response.write(encode_exception(cut.exception, {"message": cut.message}))
        case "half_frame":
            await response.write(delta[: len(delta) // 2])
        case "corrupt":
            await response.write(delta[:-1] + bytes([delta[-1] ^ 0xFF]))
        case "garbled":
            headers = {":event-type": "contentBlockDelta", ":message-type": "event"}
            await response.write(encode_message(headers, b"no JSON"))
        case "stall":
            while request.transport is not None and not request.transport.is_closing():
                await asyncio.sleep(0.05)
    if cut.mode in ("reset", "half_frame") and not cut.close_delimited:
        if request.transport is not None:  # without the end that chunked encoding marks
            request.transport.abort()
        return
    await response.write_eof()
