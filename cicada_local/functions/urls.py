"""Function URLs, over HTTP on a port of this machine.

Sources: AWS Lambda Developer Guide, "Creating and managing Lambda function URLs" (CORS), "Control access to Lambda
function URLs", "Invoking Lambda function URLs" and "Response streaming for Lambda functions".
"""

from __future__ import annotations

import asyncio
import json
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web
from multidict import CIMultiDict

from cicada_local.functions.config import InvokeResult, StreamedResult
from cicada_local.functions.errors import LambdaApiError
from cicada_local.functions.service import FunctionService
from cicada_local.functions.url_events import (
    MAX_PRELUDE_BYTES,
    SEPARATOR,
    STREAMED,
    ResponseInvalid,
    buffered,
    event_of,
    streamed_head,
)
from cicada_local.senders import REFUSED, is_from_program, names_this_machine

MAX_REQUEST_BYTES = 6 * 1024 * 1024
"""Of the event that the function gets; a body that is no text takes a third more in it."""
EMPTY_STREAM_S = 960.0
"""How long a streamed response without a body keeps its connection open."""
_DISCONNECT_POLL_S = 0.02
_AUTHORIZATION = (
    "Forbidden. For troubleshooting Function URL authorization issues, see: "
    "https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html"
)
_WITHOUT_BODY = frozenset({204, 304})


@dataclass(frozen=True)
class FunctionUrl:
    """A function's URL as it stands now."""

    url_id: str
    domain: str
    """The host of its address on AWS."""
    function_arn: str
    auth_type: Literal["NONE", "AWS_IAM"] = "NONE"
    invoke_mode: Literal["BUFFERED", "RESPONSE_STREAM"] = "BUFFERED"
    cors: Mapping[str, Any] = field(default_factory=dict)
    """As ``AWS::Lambda::Url`` has it; empty for none."""

    def allows(self, origin: str) -> bool:
        """Whether scripts of an origin may read what comes back."""
        allowed = self.cors.get("AllowOrigins", ())
        return "*" in allowed or origin in allowed


class FunctionUrls:
    """Serves the deployed function URLs."""

    def __init__(
        self,
        deployed: Callable[[], Iterable[FunctionUrl]],
        functions: FunctionService,
        permits: Callable[[str, str], bool],
    ) -> None:
        """Serve URLs; nothing is answered before :meth:`start`.

        Args:
            deployed: those that there are now.
            functions: invokes.
            permits: whether everybody may invoke a function, by its ARN, through a URL of an authentication type.
        """
        self.url = ""
        """Its address, once it listens."""
        self._deployed = deployed
        self._functions = functions
        self._permits = permits
        self._runner: web.AppRunner | None = None

    async def start(self, sockets: list[socket.socket]) -> None:
        """Answer requests on sockets that are bound to loopback."""
        self.url = f"http://localhost:{sockets[0].getsockname()[1]}"
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, auto_decompress=False, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        for one in sockets:
            await web.SockSite(self._runner, one).start()

    async def close(self) -> None:
        """Stop."""
        if self._runner is not None:
            await self._runner.cleanup()

    def stands_for(self, value: str) -> str:
        """A value of the stacks with the addresses of function URLs replaced by those on this machine."""
        if self.url:
            for one in self._deployed():
                value = value.replace(f"https://{one.domain}", self.url)
        return value

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if not names_this_machine(request):
            raise web.HTTPForbidden(text=REFUSED)
        url = self._requested(request)
        if url is None:
            return _refused(403, "AccessDeniedException", {"Message": None})
        origin = request.headers.get("Origin", "")
        if not (is_from_program(request) or url.allows(origin)):
            raise web.HTTPForbidden(text=REFUSED)
        if url.cors and origin and request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            return web.Response(headers=_preflight(url, origin))
        if url.auth_type != "NONE" or not self._permits(url.function_arn, url.auth_type):
            return _refused(403, "AccessDeniedException", {"Message": _AUTHORIZATION})
        return await self._invoke(request, url)

    def _requested(self, request: web.Request) -> FunctionUrl | None:
        """The URL that a request names: by its id as the first label of the host, or the only one that there is."""
        deployed = list(self._deployed())
        label = request.host.partition(".")[0]
        named = [one for one in deployed if one.url_id == label]
        return next(iter(named or (deployed if len(deployed) == 1 else [])), None)

    async def _invoke(self, request: web.Request, url: FunctionUrl) -> web.StreamResponse:
        payload = await _event(request, url)
        if payload is None:
            return _refused(413, "RequestEntityTooLargeException", {"Message": "Request Entity Too Large"})
        try:
            if url.invoke_mode == "RESPONSE_STREAM":
                result = await self._functions.stream(url.function_arn, payload)
            else:
                result = await self._functions.invoke(url.function_arn, payload)
        except LambdaApiError as error:
            return _refused(error.status, error.type_, json.loads(error.body()))
        headers: CIMultiDict[str] = CIMultiDict(_cors(url, request.headers.get("Origin", "")))
        headers["x-amzn-RequestId"] = result.request_id
        try:
            if isinstance(result, StreamedResult):
                return await _stream(request, result, headers)
            if result.function_error is None:
                return _buffered(result, headers)
        except ResponseInvalid:
            pass
        return web.Response(status=502, text="Internal Server Error", headers=headers)


async def _event(request: web.Request, url: FunctionUrl) -> bytes | None:
    """The event; None if it is too large."""
    body = bytearray()
    async for part in request.content.iter_any():
        body += part
        if len(body) > MAX_REQUEST_BYTES:
            return None
    raw_path, _, query = request.raw_path.partition("?")
    document = event_of(
        url_id=url.url_id,
        domain=request.host,
        method=request.method,
        raw_path=raw_path,
        query=query,
        headers=request.headers.items(),
        body=bytes(body),
        source_ip=request.remote or "",
        port=request.url.port or 80,
    )
    payload = json.dumps(document, ensure_ascii=False).encode()
    return payload if len(payload) <= MAX_REQUEST_BYTES else None


def _buffered(result: InvokeResult, headers: CIMultiDict[str]) -> web.Response:
    status, own, body = buffered(result.payload)
    headers.extend(own)
    return web.Response(status=status, body=body, headers=headers)


async def _stream(request: web.Request, result: StreamedResult, headers: CIMultiDict[str]) -> web.StreamResponse:
    """Send the pieces on as they come. What the client does not take any more is read to its end all the same."""
    stream = result.stream
    pieces = stream.pieces()
    status, first = 200, b""
    if stream.content_type == STREAMED:
        prelude = b""
        while SEPARATOR not in prelude:
            if len(prelude) > MAX_PRELUDE_BYTES or (piece := await anext(pieces, None)) is None:
                raise ResponseInvalid("the response has no status and headers")
            prelude += piece
        document, _, first = prelude.partition(SEPARATOR)
        status, own = streamed_head(document)
    else:
        own = CIMultiDict({"Content-Type": stream.content_type})
    own.setdefault("Content-Type", "application/octet-stream")
    headers.extend(own)
    response = web.StreamResponse(status=status, headers=headers)
    if status not in _WITHOUT_BODY:
        response.enable_chunked_encoding()
    await response.prepare(request)
    count = await _write(response, first)
    async for piece in pieces:
        count += await _write(response, piece)
    await asyncio.wait({result.ended})
    if stream.error is not None:
        if request.transport is not None:
            request.transport.abort()
    elif not count and request.method != "HEAD" and status not in _WITHOUT_BODY:
        await _hang(request)
    return response


async def _write(response: web.StreamResponse, piece: bytes) -> int:
    try:
        if piece:
            await response.write(piece)
    except (ConnectionError, RuntimeError):  # the client is gone
        return len(piece)
    return len(piece)


async def _hang(request: web.Request) -> None:
    """Keep the connection open, as was seen of AWS, until the client gives up."""
    async with asyncio.timeout(EMPTY_STREAM_S):
        while request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(_DISCONNECT_POLL_S)


def _refused(status: int, type_: str, document: Mapping[str, Any]) -> web.Response:
    headers = {"x-amzn-ErrorType": type_, "x-amzn-RequestId": str(uuid.uuid4())}
    return web.json_response(dict(document), status=status, headers=headers)


def _cors(url: FunctionUrl, origin: str) -> dict[str, str]:
    """What is added to every response to a page of an allowed origin."""
    if not origin or not url.allows(origin):
        return {}
    cors = url.cors
    found = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    if cors.get("AllowCredentials"):
        found["Access-Control-Allow-Credentials"] = "true"
    if cors.get("ExposeHeaders"):
        found["Access-Control-Expose-Headers"] = ",".join(cors["ExposeHeaders"])
    return found


def _preflight(url: FunctionUrl, origin: str) -> dict[str, str]:
    """The answer to a browser's question whether it may send a request: Lambda gives it without the function."""
    found = _cors(url, origin)
    if found:
        found["Access-Control-Allow-Methods"] = ",".join(url.cors.get("AllowMethods", ("*",)))
        found["Access-Control-Allow-Headers"] = ",".join(url.cors.get("AllowHeaders", ()))
        found["Access-Control-Max-Age"] = str(url.cors.get("MaxAge", 0))
    return found
