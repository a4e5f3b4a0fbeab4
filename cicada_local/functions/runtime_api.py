"""The Lambda Runtime API of one execution environment, over HTTP on a port of its own.

Source: AWS Lambda developer guide, "Using the Lambda runtime API" (version 2018-06-01), and "Implementing response
streaming in a custom runtime": errors within a response come as trailers, which only a parser such as h11 shows.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import h11

from cicada_local.functions.streaming import MAX_STREAMED_BYTES, ResponseStream, StreamError
from cicada_local.senders import is_of_program

MAX_RESPONSE_BYTES = 6 * 1024 * 1024 + 100
"""What a synchronous invocation may return."""
_ROOT = "/2018-06-01/runtime"
_READ_BYTES = 65_536
_MODE, _STREAMING = "lambda-runtime-function-response-mode", "streaming"
_ERROR_TYPE, _ERROR_BODY = "lambda-runtime-function-error-type", "lambda-runtime-function-error-body"


@dataclass(frozen=True)
class Invocation:
    """What a process gets from ``next``."""

    request_id: str
    payload: bytes
    deadline_ms: int
    """Milliseconds since the epoch."""
    function_arn: str
    trace_id: str
    client_context: str | None = None
    """JSON."""
    stream: ResponseStream | None = field(default=None, compare=False)
    """Takes a streamed response; where there is none, one is buffered."""


class Ready:
    """The process asks for its next invocation."""


@dataclass(frozen=True)
class InitFailed:
    """The function's module could not be loaded."""

    payload: bytes


@dataclass(frozen=True)
class Responded:
    """The handler returned or raised."""

    payload: bytes
    failed: bool


RuntimeEvent = Ready | InitFailed | Responded


class RuntimeApi:
    """Hands one process its invocations and reports what it says of them."""

    def __init__(self, report: Callable[[RuntimeEvent], None]) -> None:
        self._report = report
        self._current: Invocation | None = None
        self._next: asyncio.Future[Invocation] | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen; the address for ``AWS_LAMBDA_RUNTIME_API``."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    def dispatch(self, invocation: Invocation) -> None:
        """Answer the pending ``next``."""
        assert self._next is not None, "the process has not asked for an invocation"
        self._current = invocation
        self._next.set_result(invocation)
        self._next = None

    async def close(self) -> None:
        """Stop listening; a pending ``next`` is dropped."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        connection = _Connection(reader, writer)
        try:
            while (request := await connection.next_request()) is not None:
                await self._handle(request, connection)
                if not connection.again():
                    return
        except (OSError, h11.ProtocolError, asyncio.CancelledError):
            return  # the process is gone, or speaks no HTTP
        finally:
            self._connections.discard(task)
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _handle(self, request: _Request, connection: _Connection) -> None:
        if not is_of_program(request.headers):
            await connection.refuse(403, "Forbidden", "the runtime API answers no browser")
            return
        match request.method, request.path.removeprefix(_ROOT).strip("/").split("/"):
            case "GET", ["invocation", "next"]:
                await self._give_next(connection)
            case "POST", ["invocation", request_id, "response" | "error"] if not self._is_current(request_id):
                await connection.body()
                await connection.refuse(400, "InvalidRequestID", "Invalid request ID")
            case "POST", ["invocation", _, "response"] if request.headers.get(_MODE, "").lower() == _STREAMING:
                await self._take_stream(request, connection)
            case "POST", ["invocation", _, ("response" | "error") as outcome]:
                await self._take_outcome(connection, failed=outcome == "error")
            case "POST", ["init", "error"]:
                payload = await connection.body()
                self._report(InitFailed(payload))
                await connection.accept()
            case _:
                await connection.body()
                await connection.refuse(404, "UnknownOperation", f"{request.method} {request.path}")

    def _is_current(self, request_id: str) -> bool:
        return self._current is not None and self._current.request_id == request_id

    async def _give_next(self, connection: _Connection) -> None:
        await connection.body()
        self._next = asyncio.get_running_loop().create_future()
        self._report(Ready())
        invocation = await self._next
        headers = {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(invocation.deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": invocation.function_arn,
            "Lambda-Runtime-Trace-Id": invocation.trace_id,
        }
        if invocation.client_context is not None:
            headers["Lambda-Runtime-Client-Context"] = invocation.client_context
        await connection.respond(200, invocation.payload, headers)

    async def _take_outcome(self, connection: _Connection, *, failed: bool) -> None:
        payload = await connection.body()
        self._current = None
        if len(payload) > MAX_RESPONSE_BYTES:
            message = self._too_large(MAX_RESPONSE_BYTES)
            await connection.refuse(413, "RequestEntityTooLarge", message)
            return
        self._report(Responded(payload, failed))
        await connection.accept()

    async def _take_stream(self, request: _Request, connection: _Connection) -> None:
        """Hand a streamed response on as it comes; where the caller takes none, buffer it."""
        assert self._current is not None
        stream = self._current.stream
        if request.headers.get("transfer-encoding", "").lower() != "chunked":
            await connection.refuse(400, "InvalidRequest", "a streamed response needs Transfer-Encoding: chunked")
            return
        if stream is None:
            await self._take_outcome(connection, failed=False)
            return
        self._current, count = None, 0
        stream.begin(request.headers.get("content-type", "application/octet-stream"))
        async for piece in connection.pieces():
            count += len(piece)
            if count > MAX_STREAMED_BYTES:
                message = self._too_large(MAX_STREAMED_BYTES)
                stream.end(StreamError("Function.ResponseSizeTooLarge"))
                await connection.refuse(413, "RequestEntityTooLarge", message)
                return
            stream.write(piece)
        stream.end(_error(connection.trailers, request.headers))
        self._report(Responded(b"", failed=False))
        await connection.accept()

    def _too_large(self, limit: int) -> str:
        """Report a response that is too large; what is wrong with it, in a sentence."""
        message = f"Response payload size exceeded maximum allowed payload size ({limit} bytes)."
        error = {"errorType": "Function.ResponseSizeTooLarge", "errorMessage": message}
        self._report(Responded(json.dumps(error).encode(), failed=True))
        return message


def _error(trailers: Mapping[str, str], headers: Mapping[str, str]) -> StreamError | None:
    """The error that a response ended with; trailers count only if its headers announced them."""
    announced = {name.strip().lower() for name in headers.get("trailer", "").split(",")}
    told = {name: value for name, value in trailers.items() if name in announced}
    return StreamError(told[_ERROR_TYPE], told.get(_ERROR_BODY, "")) if _ERROR_TYPE in told else None


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    headers: Mapping[str, str]
    """By name in lower case."""


class _Connection:
    """A connection of the process, which may carry several requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)
        self.trailers: Mapping[str, str] = {}
        """Of the request whose body was read last."""

    async def next_request(self) -> _Request | None:
        """The next request; None at the end."""
        event = await self._next_event()
        if not isinstance(event, h11.Request):
            return None
        return _Request(event.method.decode(), event.target.decode(), _named(event.headers))

    async def pieces(self) -> AsyncIterator[bytes]:
        """The request's body, as it comes."""
        if self._http.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=100, headers=[]))
        while isinstance(event := await self._next_event(), h11.Data):
            yield bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            self.trailers = _named(event.headers)

    async def body(self) -> bytes:
        """The whole body."""
        return b"".join([piece async for piece in self.pieces()])

    async def accept(self) -> None:
        """Answer 202."""
        await self.respond(202, b'{"status": "OK"}', {"Content-Type": "application/json"})

    async def refuse(self, status: int, type_: str, message: str) -> None:
        """Answer with an error."""
        document = {"errorType": type_, "errorMessage": message}
        await self.respond(status, json.dumps(document).encode(), {"Content-Type": "application/json"})

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Answer the request."""
        named = [*headers.items(), ("Content-Length", str(len(body)))]
        await self._send(h11.Response(status_code=status, headers=named), h11.Data(data=body), h11.EndOfMessage())

    def again(self) -> bool:
        """Whether another request may follow."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def _send(self, *events: h11.Event) -> None:
        self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
        await self._writer.drain()

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_READ_BYTES))
        return event


def _named(headers: h11._headers.Headers | list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name; several of one name are joined by commas."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
