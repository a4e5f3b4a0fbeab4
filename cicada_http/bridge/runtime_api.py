"""A client of Lambda's Runtime API with streamed responses.

Source: AWS Lambda Developer Guide, "Using the Lambda runtime API" and "Implementing response streaming in a custom
runtime".
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import h11

STREAMED = "application/vnd.awslambda.http-integration-response"
"""The content type of a response that begins with its status and headers as JSON."""
SEPARATOR = bytes(8)
"""Stands between the JSON and the body."""
ERROR_TYPE, ERROR_BODY = "Lambda-Runtime-Function-Error-Type", "Lambda-Runtime-Function-Error-Body"

_ROOT = "/2018-06-01/runtime"
_READ_BYTES = 65_536

Headers = Sequence[tuple[str, str]]


class RuntimeApiFailed(Exception):
    """The Runtime API refused a call, or cut the connection."""


@dataclass(frozen=True)
class Invocation:
    """What ``next`` returns."""

    request_id: str
    deadline_ms: int
    """When Lambda kills the process, in milliseconds since the epoch."""
    trace_id: str
    payload: bytes


@dataclass(frozen=True)
class Failure:
    """An error as Lambda is told of it. A caller may read it: it holds no secret."""

    type: str
    """Such as ``Function.TimedOut``."""
    message: str

    def document(self) -> bytes:
        """The JSON that Lambda documents."""
        return json.dumps({"errorType": self.type, "errorMessage": self.message, "stackTrace": []}).encode()


class RuntimeApi:
    """Calls the Runtime API, each time over a connection of its own."""

    def __init__(self, address: str) -> None:
        """``address``: host and port, as ``AWS_LAMBDA_RUNTIME_API`` has them."""
        host, _, port = address.rpartition(":")
        self._host, self._port = host, int(port)

    async def next(self) -> Invocation:
        """Wait for the next invocation. Raises RuntimeApiFailed."""
        call = await self._call("GET", f"{_ROOT}/invocation/next")
        await call.end()
        headers, payload = await call.answer(200)
        return Invocation(
            request_id=headers["lambda-runtime-aws-request-id"],
            deadline_ms=int(headers["lambda-runtime-deadline-ms"]),
            trace_id=headers.get("lambda-runtime-trace-id", ""),
            payload=payload,
        )

    async def begin(self, request_id: str, prelude: Mapping[str, Any]) -> ResponseStream:
        """Start a streamed response with its status, headers and cookies. Raises RuntimeApiFailed."""
        call = await self._call(
            "POST",
            f"{_ROOT}/invocation/{request_id}/response",
            ("Content-Type", STREAMED),
            ("Lambda-Runtime-Function-Response-Mode", "streaming"),
            ("Transfer-Encoding", "chunked"),
            ("Trailer", f"{ERROR_TYPE}, {ERROR_BODY}"),
        )
        await call.send(json.dumps(prelude).encode() + SEPARATOR)
        return ResponseStream(call)

    async def fail(self, request_id: str, failure: Failure) -> None:
        """Report an error in place of a response. Raises RuntimeApiFailed."""
        await self._report(f"{_ROOT}/invocation/{request_id}/error", failure)

    async def fail_start(self, failure: Failure) -> None:
        """Report that the application did not start. Raises RuntimeApiFailed."""
        await self._report(f"{_ROOT}/init/error", failure)

    async def _report(self, path: str, failure: Failure) -> None:
        document = failure.document()
        call = await self._call(
            "POST",
            path,
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(document))),
            (ERROR_TYPE, failure.type),
        )
        await call.send(document)
        await call.end()
        await call.answer(202)

    async def _call(self, method: str, path: str, *headers: tuple[str, str]) -> _Call:
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        except OSError as error:
            raise RuntimeApiFailed(f"{method} {path}: {error}") from error
        call = _Call(f"{method} {path}", reader, writer)
        named = [("Host", f"{self._host}:{self._port}"), ("Connection", "close"), *headers]
        await call.write(h11.Request(method=method, target=path, headers=named))
        return call


class ResponseStream:
    """A response that has begun."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    async def write(self, content: bytes) -> None:
        """Send a piece of the body. Raises RuntimeApiFailed."""
        await self._call.send(content)

    async def finish(self) -> None:
        """End the response. Raises RuntimeApiFailed."""
        await self._call.end()
        await self._call.answer(202)

    async def abort(self, failure: Failure) -> None:
        """End the response with an error, in the trailers that Lambda documents for it. Raises RuntimeApiFailed."""
        await self._call.end((ERROR_TYPE, failure.type), (ERROR_BODY, base64.b64encode(failure.document()).decode()))
        await self._call.answer(202)


class _Call:
    """One HTTP exchange; whatever goes wrong raises RuntimeApiFailed, and closes the connection."""

    def __init__(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._name = name
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)

    async def send(self, content: bytes) -> None:
        """Send a part of the body."""
        if content:
            await self.write(h11.Data(data=content))

    async def end(self, *trailers: tuple[str, str]) -> None:
        """End the request."""
        await self.write(h11.EndOfMessage(headers=list(trailers)))

    async def write(self, event: h11.Event) -> None:
        try:
            self._writer.write(self._http.send(event) or b"")
            await self._writer.drain()
        except (OSError, h11.ProtocolError) as error:
            await self._close()
            raise RuntimeApiFailed(f"{self._name}: {error}") from error

    async def answer(self, expected: int) -> tuple[dict[str, str], bytes]:
        """Read the response to its end: its headers, in lower case, and its body."""
        headers: dict[str, str] = {}
        status, body = 0, bytearray()
        try:
            while not isinstance(event := await self._next_event(), h11.EndOfMessage):
                if isinstance(event, h11.Response):
                    status = event.status_code
                    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
                elif isinstance(event, h11.Data):
                    body += event.data
        except (OSError, h11.ProtocolError) as error:
            raise RuntimeApiFailed(f"{self._name}: {error}") from error
        finally:
            await self._close()
        if status != expected:
            raise RuntimeApiFailed(f"{self._name}: status {status}, {bytes(body[:200])!r}")
        return headers, bytes(body)

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_READ_BYTES))
        if isinstance(event, h11.ConnectionClosed):
            raise ConnectionError("the connection was closed before the response")
        return event

    async def _close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return
