"""Sockets as the Python client opens them, without its time limits."""

from __future__ import annotations

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from cicada_client.connection import TransportClosed
from tests.chaos.place import bearer


async def open_socket(url: str, token: str | None, *, max_queue: int = 16) -> ClientConnection:
    """Connect. ``max_queue``: frames that are taken in before they are read. Raises TransportClosed."""
    try:
        return await connect(
            url,
            additional_headers=bearer(token),
            open_timeout=None,
            close_timeout=1,
            ping_interval=None,
            proxy=None,
            max_queue=max_queue,
        )
    except (OSError, WebSocketException) as error:
        status = error.response.status_code if isinstance(error, InvalidStatus) else ""
        raise TransportClosed(f"not opened {status}: {error}") from error
