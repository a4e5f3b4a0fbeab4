"""One WebSocket connection, behind a small port."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, InvalidURI, WebSocketException

from cicada_client.errors import ConnectionRefused, Unauthorized
from cicada_client.oauth import LOOPBACK

MAX_FRAME_BYTES = 16 * 1024
"""API Gateway closes a connection that sends a frame above 32 KiB; longer messages go out in several frames."""
MAX_MESSAGE_BYTES = 128 * 1024
"""API Gateway closes a connection that sends a larger message."""
CLOSE_TIMEOUT_S = 1.0
"""How long to wait for the other side's close frame, which is not needed for anything."""

_TRANSIENT_STATUS = frozenset({408, 425, 429})
_UNAUTHORIZED_STATUS = frozenset({401, 403})


class TransportClosed(Exception):
    """The connection is closed, or could not be opened this time; the message says why."""

    def __init__(self, message: str = "", *, status: int | None = None) -> None:
        """``status``: of the HTTP response with which the server refused the connection, if it did."""
        super().__init__(message)
        self.status = status


class Transport(Protocol):
    """An open connection that carries text frames."""

    async def send(self, text: str) -> None:
        """Send a message. Raises TransportClosed."""
        ...

    async def receive(self) -> str | bytes:
        """Return the next message. Raises TransportClosed when there will be none."""
        ...

    async def close(self) -> None:
        """Close it, whatever state it is in."""
        ...


Connector = Callable[[str, str | None], Awaitable[Transport]]
"""Opens a connection to a URL with a token.

Raises:
    TransportClosed: it could not be opened this time.
    Unauthorized, ConnectionRefused: it is of no use to try the same again.
"""


async def connect_websocket(url: str, token: str | None) -> Transport:
    """Open a WebSocket; the token goes into the ``Authorization`` header, where no log of URLs shows it."""
    scheme, host = urlsplit(url).scheme, urlsplit(url).hostname
    if token and scheme == "ws" and host not in LOOPBACK:
        raise ConnectionRefused(f"{url} would send the token unencrypted: use wss://")
    try:
        connection = await connect(
            url,
            additional_headers={"Authorization": f"Bearer {token}"} if token else None,
            open_timeout=None,  # the client's own timing bounds it
            close_timeout=CLOSE_TIMEOUT_S,
            ping_interval=None,  # control frames do not keep API Gateway from its idle cut: the client pings by message
            proxy=None if host in LOOPBACK else True,
        )
    except InvalidStatus as error:
        status = error.response.status_code
        if status in _UNAUTHORIZED_STATUS:
            raise Unauthorized(_unauthorized(status, token), status=status) from error
        if 400 <= status < 500 and status not in _TRANSIENT_STATUS:
            raise ConnectionRefused(f"no Cicada deployment at this URL (HTTP {status})") from error
        raise TransportClosed(f"the server answered HTTP {status}", status=status) from error
    except InvalidURI as error:
        raise ConnectionRefused(f"{url} is not a WebSocket URL") from error
    except ssl.SSLCertVerificationError as error:
        raise ConnectionRefused(f"the server's certificate is not trusted: {error.verify_message}") from error
    except (OSError, WebSocketException) as error:
        raise TransportClosed(_reason(error)) from error
    return _WebSocket(connection)


def _unauthorized(status: int, token: str | None) -> str:
    if token is None:
        return f"the server wants a token (HTTP {status}): `cicada login`, or give one"
    if status == 403:
        return "the server does not let this user in (HTTP 403); its administrator can tell which group it asks for"
    return f"the server rejected the token (HTTP {status})"


def _reason(error: Exception) -> str:
    """Why a connection could not be opened, for people."""
    if isinstance(error, socket.gaierror):
        return f"the host is not known: {error.strerror}"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


class _WebSocket:
    """:class:`Transport` over the ``websockets`` library."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, text: str) -> None:
        try:
            await self._connection.send(_fragments(text))
        except WebSocketException as error:
            raise TransportClosed(str(error)) from error

    async def receive(self) -> str | bytes:
        try:
            return await self._connection.recv()
        except WebSocketException as error:
            raise TransportClosed(str(error)) from error

    async def close(self) -> None:
        await self._connection.close()


def _fragments(text: str) -> str | list[str]:
    """The message, or its parts if it needs several frames; a character has at most 4 bytes."""
    if len(text.encode()) <= MAX_FRAME_BYTES:
        return text
    step = MAX_FRAME_BYTES // 4
    return [text[start : start + step] for start in range(0, len(text), step)]
