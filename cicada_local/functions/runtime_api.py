"""The Lambda Runtime API of one execution environment, over HTTP on a port of its own.

Source: AWS Lambda developer guide, "Using the Lambda runtime API" (version 2018-06-01).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from cicada_local.senders import is_from_program

MAX_RESPONSE_BYTES = 6 * 1024 * 1024 + 100
"""What a synchronous invocation may return."""
_ROOT = "/2018-06-01/runtime"


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
        self._runner: web.ServerRunner | None = None

    async def start(self) -> str:
        """Listen; the address for ``AWS_LAMBDA_RUNTIME_API``."""
        server = web.Server(self._handle, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
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
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if not is_from_program(request):
            return _refused(403, "Forbidden", "the runtime API answers no browser")
        match request.method, request.path.removeprefix(_ROOT).strip("/").split("/"):
            case "GET", ["invocation", "next"]:
                return await self._give_next()
            case "POST", ["invocation", request_id, ("response" | "error") as outcome]:
                return await self._take_outcome(request, request_id, failed=outcome == "error")
            case "POST", ["init", "error"]:
                self._report(InitFailed(await request.content.read()))
                return _accepted()
        return _refused(404, "UnknownOperation", f"{request.method} {request.path}")

    async def _give_next(self) -> web.Response:
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
        return web.Response(body=invocation.payload, headers=headers)

    async def _take_outcome(self, request: web.BaseRequest, request_id: str, *, failed: bool) -> web.Response:
        payload = await request.content.read()
        if self._current is None or self._current.request_id != request_id:
            return _refused(400, "InvalidRequestID", "Invalid request ID")
        self._current = None
        if len(payload) > MAX_RESPONSE_BYTES:
            message = f"Response payload size exceeded maximum allowed payload size ({MAX_RESPONSE_BYTES} bytes)."
            error = {"errorType": "Function.ResponseSizeTooLarge", "errorMessage": message}
            self._report(Responded(json.dumps(error).encode(), failed=True))
            return _refused(413, "RequestEntityTooLarge", message)
        self._report(Responded(payload, failed))
        return _accepted()


def _accepted() -> web.Response:
    return web.json_response({"status": "OK"}, status=202)


def _refused(status: int, type_: str, message: str) -> web.Response:
    return web.json_response({"errorType": type_, "errorMessage": message}, status=status)
