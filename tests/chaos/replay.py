"""The log as the service gives it: replayed over a fresh connection."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.chaos.place import Place, bearer
from tests.chaos.record import Frame, event_of

TRIES = 5
PATIENCE_S = 15.0


async def replay(place: Place, request_id: str) -> tuple[Frame, ...] | None:
    """Resume a request from its start over a connection of its own; None if it cannot be had whole.

    Every event is taken as it comes: a seq that came twice stands twice in what is returned.
    """
    for _ in range(TRIES):
        try:
            async with asyncio.timeout(PATIENCE_S):
                log = await _replay(place, request_id)
        except (TimeoutError, OSError, WebSocketException):
            continue
        if log is not None:
            return log
    return None


async def _replay(place: Place, request_id: str) -> tuple[Frame, ...] | None:
    async with connect(place.url, additional_headers=bearer(place.token), proxy=None, close_timeout=1) as socket:
        await socket.send(json.dumps({"action": "resume", "requestId": request_id, "after": 0}))
        events: list[Frame] = []
        while True:
            text = await socket.recv()
            event = event_of(text, request_id)
            if event is not None:
                events.append(event)
                continue
            reply: dict[str, Any] = json.loads(text)
            if reply.get("type") == "resumed" and reply["outcome"] in ("expired", "unknown"):
                return None
            if reply.get("type") == "resumed":
                return tuple(events) if len(events) >= reply["lastSeq"] else None
            if "type" not in reply or reply.get("type") == "error":
                return None
