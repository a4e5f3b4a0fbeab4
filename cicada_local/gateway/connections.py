"""The open connections."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator

from cicada_local.gateway.config import Limits
from cicada_local.gateway.events import Client
from cicada_local.gateway.websocket import WebSocket

_ID = re.compile(r"[A-Za-z0-9_-]{15}=")
_GOING_AWAY = 1001


def is_well_formed(connection_id: str) -> bool:
    """Whether a connection could have this identifier."""
    return _ID.fullmatch(connection_id) is not None


class Connection:
    """A client's socket with what is counted and timed on it."""

    def __init__(self, client: Client, socket: WebSocket, limits: Limits) -> None:
        self.client = client
        self.socket = socket
        self.posts = 0
        """Messages that the callback API sent."""
        self.last_active_at_ms = client.connected_at_ms
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._active_at = self._loop.time()
        self._lifetime = self._loop.call_later(limits.lifetime_s, self._end)
        self._idle = self._loop.call_later(limits.idle_s, self._check_idle)

    def touch(self) -> None:
        """Note a message, in either direction."""
        self.last_active_at_ms = int(time.time() * 1000)
        self._active_at = self._loop.time()

    def send(self, data: str | bytes) -> bool:
        """Send a message. False when too much waits for the client already."""
        if self.socket.unsent_bytes + len(data) > self._limits.send_buffer_bytes:
            return False
        self.socket.send(data)
        self.touch()
        return True

    def stop_timers(self) -> None:
        """The connection has ended."""
        self._lifetime.cancel()
        self._idle.cancel()

    def _check_idle(self) -> None:
        remaining_s = self._active_at + self._limits.idle_s - self._loop.time()
        if remaining_s > 0:
            self._idle = self._loop.call_later(remaining_s, self._check_idle)
        else:
            self._end()

    def _end(self) -> None:
        self.socket.close(_GOING_AWAY, "Going away")


class Connections:
    """Finds connections by their identifier. One whose close has begun is not found any more."""

    def __init__(self) -> None:
        self._by_id: dict[str, Connection] = {}

    def add(self, connection: Connection) -> None:
        """From now on it is found."""
        self._by_id[connection.client.connection_id] = connection

    def remove(self, connection: Connection) -> None:
        """It has ended."""
        del self._by_id[connection.client.connection_id]

    def find(self, connection_id: str) -> Connection | None:
        """An open connection."""
        connection = self._by_id.get(connection_id)
        return connection if connection is not None and connection.socket.open else None

    def __iter__(self) -> Iterator[Connection]:
        return iter([connection for connection in self._by_id.values() if connection.socket.open])
