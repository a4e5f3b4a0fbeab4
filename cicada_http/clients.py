"""Clients of the deployment, one a request, over the connection that its token has opened already."""

from __future__ import annotations

from contextvars import ContextVar

from starlette.requests import Request

from cicada_client.client import CicadaClient
from cicada_client.connection import Connector, Transport, connect_websocket

SCHEME = "bearer"


def token_of(request: Request) -> str | None:
    """The access token of a request; None without one. It must get into no log and no response."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == SCHEME else None


class OpenedConnection:
    """A connection to the deployment that was opened for a request, until a client takes it over."""

    def __init__(self, token: str | None, transport: Transport) -> None:
        self._token = token
        self._transport: Transport | None = transport

    def take(self, token: str | None) -> Transport | None:
        """The connection, once, for the token that opened it."""
        if token != self._token:
            return None
        transport, self._transport = self._transport, None
        return transport

    async def close(self) -> None:
        """Close it, if nobody has taken it."""
        if self._transport is not None:
            await self._transport.close()


opened_connection: ContextVar[OpenedConnection | None] = ContextVar("opened_connection", default=None)
"""Of the request that is being answered."""


class ClientFactory:
    """Makes clients; what they may do is decided by their tokens, at the deployment."""

    def __init__(self, websocket_url: str, connector: Connector = connect_websocket) -> None:
        """``connector``: opens connections."""
        self._url = websocket_url
        self._connector = connector

    def __call__(self, token: str | None) -> CicadaClient:
        """A client with a token; to be used in ``async with``."""
        opened = opened_connection.get()

        async def connect(url: str, token: str | None) -> Transport:
            found = None if opened is None else opened.take(token)
            return await self._connector(url, token) if found is None else found

        return CicadaClient(self._url, token=token, connector=connect)

    async def open(self, token: str | None) -> OpenedConnection:
        """Open a connection with a token: whether the deployment accepts it is known then.

        Raises:
            TransportClosed: no connection could be opened this time.
            Unauthorized, ConnectionRefused: the deployment refuses it.
        """
        return OpenedConnection(token, await self._connector(self._url, token))
