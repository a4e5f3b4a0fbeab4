"""A model's turn as ConverseStream sends it: a stream of frames, or one that breaks."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass

from aiohttp import web

from local.bedrock.event_stream import encode_event, encode_exception, encode_message
from local.bedrock.replies import REASONING, SIGNATURE, Reply
from local.bedrock.switches import Cut, Pace

_LOOK_S = 0.05
"""How often a wait looks whether the caller is still there."""


@dataclass
class StreamCounts:
    """Calls of ConverseStream since the start."""

    open: int = 0
    """Under way at the moment, those that have not been answered yet among them."""
    finished: int = 0
    """Sent to the end."""
    closed_by_caller: int = 0
    """The caller closed its connection before the end, at whatever moment."""
    broken: int = 0
    """Cut by a fault."""
    refused: int = 0
    """Answered with an error, or not at all."""


class StreamedResponse(web.StreamResponse):
    """A response of event-stream frames."""

    def __init__(self, request_id: str, *, close_delimited: bool) -> None:
        headers = {"Content-Type": "application/vnd.amazon.eventstream", "x-amzn-RequestId": request_id}
        super().__init__(headers=headers)
        if close_delimited:
            self._length_check = False  # aiohttp's switch for a body that is neither chunked nor counted
            self.force_close()


async def pause(request: web.Request, seconds: float) -> None:
    """Wait, as long as the caller keeps its connection. Raises ConnectionResetError when it does not."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while True:
        if request.transport is None or request.transport.is_closing():
            raise ConnectionResetError("the caller has closed its connection")
        left_s = until - loop.time()
        await asyncio.sleep(min(max(left_s, 0.0), _LOOK_S))
        if left_s <= _LOOK_S:
            return


async def send_stream(
    request: web.Request, response: StreamedResponse, reply: Reply, *, latency_ms: int, pace: Pace, cut: Cut | None
) -> None:
    """Send a reply as ConverseStream's events, or as much of it as the cut leaves.

    Raises:
        ConnectionResetError: the caller closed its connection before all was sent.
    """
    loop = asyncio.get_running_loop()
    await response.prepare(request)
    await response.write(encode_event("messageStart", {"role": "assistant"}))
    for sent, frame in enumerate(_deltas(reply)):
        if cut is not None and sent == cut.after:
            break
        await pause(request, pace.wait_s(sent, loop.time()))
        await response.write(frame)
    if cut is not None:
        await break_off(request, response, cut)
        return
    last_block = 1 if reply.reasons else 0
    await response.write(
        encode_event("contentBlockStop", {"contentBlockIndex": last_block})
        + encode_event("messageStop", {"stopReason": reply.stop_reason})
        + encode_event("metadata", {"usage": reply.usage, "metrics": {"latencyMs": latency_ms}})
    )
    await response.write_eof()


def _deltas(reply: Reply) -> Iterator[bytes]:
    """A frame a text delta; what precedes the first one is sent with it."""
    before, index = b"", 0
    if reply.reasons:
        before = b"".join(
            encode_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": content}})
            for content in ({"text": REASONING}, {"signature": SIGNATURE})
        ) + encode_event("contentBlockStop", {"contentBlockIndex": 0})
        index = 1
    for piece in reply.pieces:
        yield before + encode_event("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": piece}})
        before = b""


async def break_off(request: web.Request, response: StreamedResponse, cut: Cut) -> None:
    """End a stream as a cut says."""
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
            await pause(request, math.inf)
    if cut.mode in ("reset", "half_frame") and not cut.close_delimited:
        if request.transport is not None:  # without the end that chunked encoding marks
            request.transport.abort()
        return
    await response.write_eof()
