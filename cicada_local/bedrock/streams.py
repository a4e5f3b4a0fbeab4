"""A model's turn as ConverseStream sends it: a stream of frames, or one that breaks."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from cicada_local.bedrock.event_stream import encode_event, encode_exception, encode_message
from cicada_local.bedrock.replies import REASONING, SIGNATURE, Reply
from cicada_local.bedrock.switches import Cut, Pace

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
    for sent, frame in enumerate(frames(reply)):
        if cut is not None and sent == cut.after:
            break
        await pause(request, pace.wait_s(sent, loop.time()))
        await response.write(frame)
    if cut is not None:
        await break_off(request, response, cut)
        return
    metadata = {"usage": reply.usage, "metrics": {"latencyMs": latency_ms}}
    if reply.trace is not None:
        metadata["trace"] = reply.trace
    await response.write(
        encode_event("messageStop", {"stopReason": reply.stop_reason}) + encode_event("metadata", metadata)
    )
    await response.write_eof()


def frames(reply: Reply, *, empty_inputs: bool = True, one_index: bool = False) -> Iterator[bytes]:
    """A frame a delta of text or of a tool's input, with the block boundaries that stand before and after it.

    As with the models on Bedrock, only a tool's block has a contentBlockStart.

    Args:
        reply: the turn.
        empty_inputs: whether a tool's input begins with an empty delta.
        one_index: whether all blocks stand under the first one's index.
    """
    before, index = b"", 0
    if reply.reasons:
        before = b"".join(
            encode_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": content}})
            for content in ({"text": REASONING}, {"signature": SIGNATURE})
        ) + _stop(0)
        index = 1
    blocks: list[tuple[bytes, list[dict[str, Any]]]] = []
    if reply.pieces or not reply.tool_uses:
        blocks.append((b"", [{"text": piece} for piece in reply.pieces]))
    for use in reply.tool_uses:
        start = {"toolUse": {"toolUseId": use.identifier, "name": use.name}}
        place = index if one_index else index + len(blocks)
        opening = encode_event("contentBlockStart", {"contentBlockIndex": place, "start": start})
        blocks.append((opening, [{"toolUse": {"input": piece}} for piece in use.pieces if piece or empty_inputs]))
    for number_of_block, (opening, deltas) in enumerate(blocks):
        place = index if one_index else index + number_of_block
        before += opening
        for number, delta in enumerate(deltas, 1):
            frame = before + encode_event("contentBlockDelta", {"contentBlockIndex": place, "delta": delta})
            before = b""
            yield frame + (_stop(place) if number == len(deltas) else b"")
        if not deltas:
            yield before + _stop(place)
            before = b""


def _stop(index: int) -> bytes:
    return encode_event("contentBlockStop", {"contentBlockIndex": index})


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
