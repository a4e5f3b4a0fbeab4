"""One person's socket: what comes over it is noted, it breaks where the question's plan says, and some read slowly."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException

from cicada_client.connection import Transport, TransportClosed
from tests.load.people import Drop
from tests.load.record import Request
from tests.support.plain_sockets import open_socket

SLOW_S = (0.2, 1.5)
"""How long a slow reader takes for one frame."""


class Sockets:
    """Opens one person's sockets, one after the other."""

    def __init__(self, rng: random.Random, *, is_slow: bool) -> None:
        self.request: Request | None = None
        """The question that is open."""
        self.drop: Drop | None = None
        """Where the socket of the open question breaks, if it still has to."""
        self._rng = rng
        self._is_slow = is_slow
        self._offline_s = 0.0

    async def open(self, url: str, token: str | None) -> Transport:
        """Connect. Raises TransportClosed."""
        await asyncio.sleep(self._offline_s)
        self._offline_s = 0.0
        connection = await open_socket(url, token, max_queue=1 if self._is_slow else 16)
        return _Socket(connection, self)

    async def read(self) -> None:
        """Take the time that reading a frame takes."""
        if self._is_slow:
            await asyncio.sleep(self._rng.uniform(*SLOW_S))

    def took(self, frame: dict[str, Any], socket: object) -> bool:
        """Note a frame; whether the socket breaks with it."""
        request = self.request
        if request is None:
            return False
        if "type" not in frame:
            request.gateway_faults += 1
            return False
        if frame.get("requestId") != request.followed.request_id or frame.get("seq", 0) < 1:
            return False
        breaks = self.drop is not None and self.drop.kind == frame["type"]
        if breaks and self.drop is not None:  # the frame itself is lost on the way
            self._offline_s, self.drop = self.drop.offline_s, None
            request.drops += 1
            return True
        request.arrived(frame, socket)
        return False


class _Socket:
    """A :class:`cicada_client.connection.Transport` that is watched."""

    def __init__(self, connection: ClientConnection, sockets: Sockets) -> None:
        self._connection = connection
        self._sockets = sockets

    async def send(self, text: str) -> None:
        try:
            await self._connection.send(text)
        except WebSocketException as error:
            raise TransportClosed(str(error)) from error

    async def receive(self) -> str | bytes:
        await self._sockets.read()
        try:
            text: str | bytes = await self._connection.recv()
        except WebSocketException as error:
            raise TransportClosed(str(error)) from error
        if self._sockets.took(json.loads(text), self):
            self._connection.transport.abort()
            raise TransportClosed("dropped")
        return text

    async def close(self) -> None:
        await self._connection.close()
