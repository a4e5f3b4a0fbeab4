"""``Invoke`` over HTTP, as boto3 and the state machine's interpreter call it, and the account's limits."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Awaitable, Callable

from aiohttp import web

from cicada_local.functions.config import InvokeResult
from cicada_local.functions.errors import InvalidParameterValue, LambdaApiError

Invoke = Callable[..., Awaitable[InvokeResult]]
_MAX_BODY_BYTES = 16 * 1024 * 1024
"""Bodies up to here are read, so that one over Lambda's limit gets Lambda's answer."""


def add_routes(
    app: web.Application,
    invoke: Invoke,
    close: Callable[[], Awaitable[None]],
    account_limit: Callable[[], dict[str, int]],
) -> None:
    """Serve ``Invoke`` and ``GetAccountSettings``, and close the service with the application."""

    async def handle(request: web.Request) -> web.Response:
        try:
            return await _invoke(request, invoke)
        except LambdaApiError as error:
            headers = {"x-amzn-ErrorType": error.type_, "x-amzn-RequestId": str(uuid.uuid4())}
            return web.Response(
                status=error.status, body=error.body(), headers=headers, content_type="application/json"
            )

    async def account_settings(_: web.Request) -> web.Response:
        usage = {"TotalCodeSize": 0, "FunctionCount": 0}
        return web.json_response({"AccountLimit": account_limit(), "AccountUsage": usage})

    async def on_shutdown(_: web.Application) -> None:
        await close()

    app.router.add_post("/2015-03-31/functions/{name}/invocations", handle)
    app.router.add_get("/2016-08-19/account-settings", account_settings)
    app.on_shutdown.append(on_shutdown)


async def _invoke(request: web.Request, invoke: Invoke) -> web.Response:
    log_type = request.headers.get("X-Amz-Log-Type", "None")
    if log_type not in ("None", "Tail"):
        raise InvalidParameterValue(f"{log_type} is no log type")
    name = request.match_info["name"]
    if "Qualifier" in request.query:
        name = f"{name}:{request.query['Qualifier']}"
    result = await invoke(
        name,
        await _body(request),
        invocation_type=request.headers.get("X-Amz-Invocation-Type", "RequestResponse"),
        client_context=_client_context(request),
    )
    headers = {"X-Amz-Executed-Version": result.executed_version, "x-amzn-RequestId": result.request_id}
    if result.function_error is not None:
        headers["X-Amz-Function-Error"] = result.function_error
    if log_type == "Tail" and result.log:
        headers["X-Amz-Log-Result"] = base64.b64encode(result.log).decode()
    return web.Response(status=result.status, body=result.payload, headers=headers, content_type="application/json")


async def _body(request: web.Request) -> bytes:
    body = bytearray()
    async for part in request.content.iter_any():
        body += part
        if len(body) > _MAX_BODY_BYTES:
            break
    return bytes(body)


def _client_context(request: web.Request) -> str | None:
    encoded = request.headers.get("X-Amz-Client-Context")
    if encoded is None:
        return None
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidParameterValue("Client context must be base64-encoded JSON") from error
