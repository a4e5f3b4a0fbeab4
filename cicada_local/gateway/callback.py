"""The callback API: ``@connections``, which boto3's ``apigatewaymanagementapi`` speaks.

Source: botocore's service model ``apigatewaymanagementapi/2018-11-29`` for statuses, error names and shapes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from aiohttp import web

from cicada_local.faults import Faults
from cicada_local.gateway.config import ApiConfig, Limits
from cicada_local.gateway.connections import Connection, Connections, is_well_formed
from cicada_local.gateway.events import new_id

_NORMAL_CLOSURE = 1000


class CallbackError(Exception):
    """A call that is answered with an error."""

    def __init__(self, status: int, type_: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.type_ = type_


class CallbackApi:
    """Posts to connections, describes them and closes them."""

    def __init__(
        self, lookup: Callable[[str, str], ApiConfig | None], connections: Connections, faults: Faults, limits: Limits
    ) -> None:
        self._lookup = lookup
        self._connections = connections
        self._faults = faults
        self._limits = limits

    async def handle(self, request: web.Request) -> web.Response:
        """POST, GET and DELETE of a connection."""
        connection_id = request.match_info["connection_id"]
        request_id = new_id()
        try:
            self._check(request, connection_id)
            match request.method:
                case "POST":
                    response = await self._post(request, connection_id)
                case "GET":
                    response = _described(self._open(request, connection_id))
                case _:
                    self._open(request, connection_id).socket.close(_NORMAL_CLOSURE, "Connection Closed Normally")
                    response = web.Response(status=204)
        except CallbackError as error:
            body = {"message": str(error), "connectionId": connection_id, "requestId": request_id}
            response = web.json_response(body, status=error.status, headers={"x-amzn-ErrorType": error.type_})
        response.headers["x-amzn-RequestId"] = request_id
        return response

    async def _post(self, request: web.Request, connection_id: str) -> web.Response:
        data = await self._body(request)
        if (slow := self._faults.take("gateway.slow", connection=connection_id)) is not None:
            await asyncio.sleep(slow.get("delay_ms", 0) / 1000)
        if self._faults.take("gateway.gone", connection=connection_id) is not None:
            raise _gone()
        if self._faults.take("gateway.busy", connection=connection_id) is not None:
            raise _busy()
        connection = self._open(request, connection_id)
        if not connection.send(_message(data)):
            raise _busy()
        connection.posts += 1
        self._drop_if_due(connection)
        if self._faults.take("gateway.lost_ack", connection=connection_id) is not None and request.transport:
            request.transport.close()
        return web.Response()

    async def _body(self, request: web.Request) -> bytes:
        body = bytearray()
        async for part in request.content.iter_any():
            body += part
            if len(body) > self._limits.message_bytes:
                raise CallbackError(413, "PayloadTooLargeException", "Message too long")
        return bytes(body)

    def _check(self, request: web.Request, connection_id: str) -> None:
        if self._lookup(request.match_info["api_id"], request.match_info["stage"]) is None:
            raise CallbackError(403, "ForbiddenException", "Forbidden")
        if not request.headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256 "):
            raise CallbackError(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
        if not is_well_formed(connection_id):
            raise CallbackError(400, "BadRequestException", f"Invalid connectionId: {connection_id}")

    def _open(self, request: web.Request, connection_id: str) -> Connection:
        connection = self._connections.find(connection_id)
        place = request.match_info["api_id"], request.match_info["stage"]
        if connection is None or (connection.client.api.api_id, connection.client.api.stage) != place:
            raise _gone()
        return connection

    def _drop_if_due(self, connection: Connection) -> None:
        connection_id = connection.client.connection_id
        due = self._faults.armed().get("gateway.drop")
        if (
            due is not None
            and connection.posts >= due.get("after", 1)
            and self._faults.take("gateway.drop", connection=connection_id) is not None
        ):
            connection.socket.cut(flush=True)


def _gone() -> CallbackError:
    return CallbackError(410, "GoneException", "The connection is gone")


def _busy() -> CallbackError:
    return CallbackError(429, "LimitExceededException", "The client cannot take more now")


def _message(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _described(connection: Connection) -> web.Response:
    identity = {"sourceIp": connection.client.source_ip, "userAgent": connection.client.user_agent or ""}
    return web.json_response(
        {
            "connectedAt": _iso(connection.client.connected_at_ms),
            "identity": identity,
            "lastActiveAt": _iso(connection.last_active_at_ms),
        }
    )


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
