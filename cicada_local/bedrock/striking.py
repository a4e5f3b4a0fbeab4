"""The faults of calls: those that come before any response, and a whole response that breaks off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from cicada_local.bedrock.errors import AwsError
from cicada_local.bedrock.streams import pause
from cicada_local.faults import Faults


class Refused(ConnectionResetError):
    """The connection was closed by a fault, not by the caller."""


async def fail_early(faults: Faults, request: web.Request, prefix: str) -> dict[str, Any]:
    """Let the faults strike that come before a response; return what ``slow`` says.

    Raises:
        AwsError: a throttle or an error.
        Refused: the connection is closed.
    """
    model_id = request.match_info["model_id"]
    slow = faults.take(f"{prefix}slow", model=model_id) or {}
    await pause(request, float(slow.get("first_ms", 0)) / 1000)
    if (throttle := faults.take(f"{prefix}throttle", model=model_id)) is not None:
        message = throttle.get("message", "Too many requests, please wait before trying again.")
        raise AwsError(message, code="ThrottlingException", status=429)
    if (error := faults.take(f"{prefix}error", model=model_id)) is not None:
        code = error.get("exception", "InternalServerException")
        raise AwsError(error.get("message", "Injected."), code=code, status=int(error.get("status", 500)))
    if faults.take(f"{prefix}refuse", model=model_id) is not None:
        if request.transport is not None:
            request.transport.abort()
        raise Refused("the connection is lost")
    return slow


async def send_whole(faults: Faults, request: web.Request, body: Mapping[str, Any], cut: str) -> web.StreamResponse:
    """Answer with a body of JSON, or with half of it if the fault ``cut`` strikes."""
    data = json.dumps(body, ensure_ascii=False).encode()
    if faults.take(cut, model=request.match_info["model_id"]) is None:
        return web.Response(body=data, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(data))})
    await response.prepare(request)
    await response.write(data[: len(data) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response
