"""What every request passes: its origin, its size, and its token, which must open a connection to the deployment."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cicada_client.connection import TransportClosed
from cicada_client.errors import ClientError
from cicada_http.bridge.events import REQUEST_ID
from cicada_http.clients import ClientFactory, OpenedConnection, opened_connection, token_of
from cicada_http.refusals import HttpRefusal
from cicada_http.settings import HttpSettings

MAX_BODY_BYTES = 1024 * 1024
"""Of a request: a question has at most 4,000 characters, the rest is a chat's history."""
OPEN_S = 10.0
"""For opening the connection to the deployment."""

logger = logging.getLogger("cicada.http")


class Gate:
    """Lets a request through to the application, or answers it with an error."""

    def __init__(
        self,
        app: ASGIApp,
        settings: HttpSettings,
        clients: ClientFactory,
        *,
        public: Callable[[str], bool],
        challenge: Callable[[Request], str],
    ) -> None:
        """Stand before an application.

        Args:
            app: the application.
            settings: who may come in.
            clients: opens connections.
            public: whether a path needs no token.
            challenge: tells a client without a valid token where to get one: the value of ``WWW-Authenticate``.
        """
        self._app = app
        self._settings = settings
        self._clients = clients
        self._public = public
        self._challenge = challenge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        began, statuses = time.monotonic(), list[int]()

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                message["headers"] = [*message.get("headers", ()), *_headers(request)]
            await send(message)

        try:
            await self._pass(request, scope, noted)
        except HttpRefusal as refusal:
            await refusal.response()(scope, receive, noted)
        finally:
            extra = {"method": request.method, "path": request.url.path, "status": statuses[-1] if statuses else None}
            took_ms = round((time.monotonic() - began) * 1000)
            logger.info("request", extra={**extra, "took_ms": took_ms, "function_request_id": scope.get(REQUEST_ID)})

    async def _pass(self, request: Request, scope: Scope, send: Send) -> None:
        """Hand a request on. Raises HttpRefusal."""
        origin = request.headers.get("Origin")
        if origin is not None and origin not in self._settings.origins():
            raise HttpRefusal(403, "origin_not_allowed", "Pages of this origin may not send requests.")
        body = await _body(request)
        if self._public(request.url.path):
            await self._app(scope, _again(body, request.receive), send)
            return
        opened = await self._open(request)
        kept = opened_connection.set(opened)
        try:
            await self._app(scope, _again(body, request.receive), send)
        finally:
            opened_connection.reset(kept)
            await opened.close()

    async def _open(self, request: Request) -> OpenedConnection:
        token = token_of(request)
        challenge = self._challenge(request)
        if token is None and self._settings.auth != "none":
            message = "An access token is needed: send it as `Authorization: Bearer <token>`."
            raise HttpRefusal(401, "unauthorized", message, {"WWW-Authenticate": f"Bearer {challenge}"})
        try:
            async with asyncio.timeout(OPEN_S):
                return await self._clients.open(token)
        except (ClientError, TransportClosed) as error:
            refusal = HttpRefusal.of(error)
        except TimeoutError as error:
            refusal = HttpRefusal.of(TransportClosed(str(error)))
        if refusal.status == 401:
            refusal.headers["WWW-Authenticate"] = f'Bearer error="invalid_token", {challenge}'
        raise refusal


def _headers(request: Request) -> list[tuple[bytes, bytes]]:
    """What every response carries."""
    found = [(b"x-content-type-options", b"nosniff")]
    if (request_id := request.scope.get(REQUEST_ID)) is not None:
        found.append((b"x-request-id", str(request_id).encode()))
    return found


async def _body(request: Request) -> bytes:
    """The whole body. Raises HttpRefusal if it is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise HttpRefusal(413, "body_too_large", f"The body has more than {MAX_BODY_BYTES:,} bytes.")
    return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read already, and then what there is to come."""
    unread = [body]

    async def receive_again() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return receive_again
