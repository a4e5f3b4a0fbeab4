"""One request and its response, between an ASGI application and the Runtime API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from cicada_http.bridge.events import HttpRequest
from cicada_http.bridge.runtime_api import Failure, ResponseStream, RuntimeApi

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
"""An ASGI application."""

MAX_PRELUDE_BYTES = 16 * 1024
"""What Lambda accepts of status and headers together, as JSON."""
FILLER = b"\n"
"""The body of a response that has none. A function URL can keep the connection of a streamed response without a body
open until the function's time is over (aws-lambda-nodejs-runtime-interface-client, issue 95)."""
_WITHOUT_BODY = frozenset({204, 304})
_NOT_PASSED_ON = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
"""The body is sent in chunks: they would contradict that."""


class ApplicationBroke(Exception):
    """The application sent messages that ASGI does not allow."""


class Exchange:
    """Passes a request to the application, and the application's response to the Runtime API as it comes.

    Status and headers go out with the first piece of the body, so that an error before it is still an error.
    """

    def __init__(self, api: RuntimeApi, request_id: str, request: HttpRequest) -> None:
        self._api = api
        self._request_id = request_id
        self._body: bytes | None = request.body
        self._bodiless = request.scope["method"] == "HEAD"
        self._start: Message | None = None
        self._stream: ResponseStream | None = None
        self._complete = asyncio.Event()

    @property
    def complete(self) -> bool:
        """Whether the whole response was sent."""
        return self._complete.is_set()

    async def receive(self) -> Message:
        """The request, once. A disconnect follows after the response only: Lambda does not tell of an earlier one."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._complete.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a message of the response.

        Raises:
            ApplicationBroke: it does not belong here.
            RuntimeApiFailed: the response cannot be sent.
        """
        if self.complete:
            raise ApplicationBroke(f"{message['type']} after the end of the response")
        match message["type"]:
            case "http.response.start" if self._start is None:
                self._start = message
            case "http.response.body" if self._start is not None:
                await self._send_body(bytes(message.get("body", b"")), more=bool(message.get("more_body", False)))
            case _:
                raise ApplicationBroke(f"unexpected {message['type']}")

    async def fail(self, failure: Failure) -> None:
        """End an unfinished response with an error. Raises RuntimeApiFailed."""
        self._complete.set()
        if self._stream is None:
            await self._api.fail(self._request_id, failure)
        else:
            await self._stream.abort(failure)

    async def _send_body(self, content: bytes, *, more: bool) -> None:
        assert self._start is not None
        if self._bodiless or self._start["status"] in _WITHOUT_BODY:
            content = b""
        elif self._stream is None and not more:
            content = content or FILLER
        if self._stream is None and (content or not more):
            self._stream = await self._api.begin(self._request_id, prelude(self._start))
        if self._stream is not None:
            await self._stream.write(content)
            if not more:
                self._complete.set()
                await self._stream.finish()


def prelude(start: Message) -> dict[str, Any]:
    """Status, headers and cookies as a function URL takes them; a header's further values are joined by commas.

    Raises:
        ApplicationBroke: they are larger than Lambda accepts.
    """
    headers: dict[str, str] = {}
    cookies: list[str] = []
    given: Iterable[tuple[bytes, bytes]] = start.get("headers", ())
    for raw_name, raw_value in given:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name == "set-cookie":
            cookies.append(value)
        elif name not in _NOT_PASSED_ON:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if sum(len(name) + len(value) for name, value in headers.items()) + sum(map(len, cookies)) > MAX_PRELUDE_BYTES:
        raise ApplicationBroke(f"the response has more than {MAX_PRELUDE_BYTES:,} bytes of headers")
    return {"statusCode": start["status"], "headers": headers, "cookies": cookies}
