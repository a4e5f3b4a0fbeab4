"""A turn of a harness's model, as InvokeHarness streams it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiohttp import web

from cicada_local.bedrock.event_stream import encode_event
from cicada_local.bedrock.replies import Reply
from cicada_local.bedrock.streams import StreamedResponse, break_off, frames, pause
from cicada_local.bedrock.switches import Cut, Pace


@dataclass(frozen=True)
class Ending:
    """When and how a turn is sent, and what ends it early."""

    pace: Pace
    cut: Cut | None
    until: float
    """On the event loop's clock: the harness's own time-out."""
    one_index: bool = False
    """Whether all uses of tools stand under one contentBlockIndex."""


async def send_turn(
    request: web.Request, response: StreamedResponse, reply: Reply, ending: Ending, *, latency_ms: int
) -> None:
    """Send a turn, or as much of it as the cut or the time leaves.

    Raises:
        ConnectionResetError: the caller closed its connection before all was sent.
    """
    loop = asyncio.get_running_loop()
    await response.prepare(request)
    await response.write(encode_event("messageStart", {"role": "assistant"}))
    reason = reply.stop_reason
    for sent, frame in enumerate(frames(reply, empty_inputs=False, one_index=ending.one_index)):
        if ending.cut is not None and sent == ending.cut.after:
            break
        wait_s = ending.pace.wait_s(sent, loop.time())
        await pause(request, min(wait_s, max(0.0, ending.until - loop.time())))
        if loop.time() >= ending.until:
            reason = "timeout_exceeded"
            break
        await response.write(frame)
    if ending.cut is not None:
        await break_off(request, response, ending.cut)
        return
    await response.write(
        encode_event("messageStop", {"stopReason": reason})
        + encode_event("metadata", {"usage": reply.usage, "metrics": {"latencyMs": latency_ms}})
    )
    await response.write_eof()
