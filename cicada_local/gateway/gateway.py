"""The gateway: from a client's upgrade, through its messages, to its disconnect."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web

from cicada_local.faults import Faults
from cicada_local.functions.config import Permits, permit_all
from cicada_local.gateway import access_log
from cicada_local.gateway.authorizer import Refused, authorize
from cicada_local.gateway.callback import CallbackApi
from cicada_local.gateway.config import ApiConfig, Limits
from cicada_local.gateway.connections import Connection, Connections
from cicada_local.gateway.events import Client, Upgrade, connect_event, disconnect_event, message_event, new_id
from cicada_local.gateway.integration import IntegrationFailed, Integrations, Invoke, ProxyResponse
from cicada_local.gateway.routing import select_route
from cicada_local.gateway.websocket import ABNORMAL_END, HandshakeInvalid, WebSocket, accept, check_handshake

_GOING_AWAY = 1001
_NO_ROUTE = 403
_CLOSING_S = 1.0
"""How long clients may take to answer a close frame when the gateway itself closes."""
_ERROR_TYPES = {401: "UnauthorizedException", 403: "ForbiddenException", 426: "UpgradeRequiredException"}


class WebSocketGateway:
    """Serves WebSocket APIs. All methods belong to one event loop."""

    def __init__(
        self,
        lookup: Callable[[str, str], ApiConfig | None],
        invoke: Invoke,
        *,
        faults: Faults,
        limits: Limits | None = None,
        permits: Permits = permit_all,
        count: Callable[[str, str, str], None] = lambda *_: None,
        log: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        """
        Args:
            lookup: a stage of an API by the API's identifier and the stage's name; None if there is none.
            invoke: runs a function, by its ARN.
            permits: whether the function's policy lets a route or an authorizer invoke it.
            faults: where the ``gateway.`` faults are armed.
            count: told of each metric of API Gateway's that rises by one, with the API's id and stage.
            log: told of each line of an access log, after the log group's name.
            limits: Amazon's, where not given.
        """
        self._lookup = lookup
        self._count = count
        self._log = log
        self._limits = limits or Limits()
        self._integrations = Integrations(invoke, permits, self._limits.integration_timeout_s)
        self.connections = Connections()
        self._callback = CallbackApi(lookup, self.connections, faults, self._limits)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def add_routes(self, app: web.Application) -> None:
        """Serve upgrades and the callback API in an application, and close with it."""

        async def close(_: web.Application) -> None:
            await self.close()

        stage = "/_ws/{api_id}/{stage}"
        for path in (stage, f"{stage}/"):
            app.router.add_get(path, self._upgrade, allow_head=False)
        for method in ("POST", "GET", "DELETE"):
            app.router.add_route(method, f"{stage}/@connections/{{connection_id}}", self._callback.handle)
        app.on_shutdown.append(close)

    async def close(self) -> None:
        """Close every socket, and drop what is under way. ``$disconnect`` does not run. Idempotent."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        self._integrations.close()
        open_now = list(self.connections)
        for connection in open_now:
            connection.socket.close(_GOING_AWAY, "Going away")
        ends = [asyncio.ensure_future(connection.socket.wait_closed()) for connection in open_now]
        if ends:
            await asyncio.wait(ends, timeout=_CLOSING_S)
        for connection in open_now:
            connection.socket.cut()

    async def _upgrade(self, request: web.Request) -> web.StreamResponse:
        connection_id = new_id()
        try:
            api = self._find_api(request)
            client, subprotocol = await self._connect(request, api, connection_id)
        except Refused as refused:
            return _refusal(refused, connection_id)
        except _ConnectRefused as refused:
            body = refused.response.body
            return web.Response(status=refused.response.status, body=body if isinstance(body, bytes) else body.encode())
        return await self._serve(request, client, subprotocol)

    def _find_api(self, request: web.Request) -> ApiConfig:
        if len(request.path_qs) > self._limits.url_chars:
            raise Refused(414, "Request-URI Too Long")
        api = self._lookup(request.match_info["api_id"], request.match_info["stage"])
        if api is None or self._closed:
            raise Refused(403, "Forbidden")
        try:
            check_handshake(request)
        except HandshakeInvalid as error:
            raise Refused(426, "Upgrade Required") from error
        return api

    async def _connect(self, request: web.Request, api: ApiConfig, connection_id: str) -> tuple[Client, str | None]:
        """Run the authorizer and the ``$connect`` route; the client, and the subprotocol that the route chose.

        Raises:
            Refused, _ConnectRefused: the client may not connect.
        """
        upgrade = Upgrade.of(request)
        client = Client(
            api, connection_id, int(time.time() * 1000), request.remote or "", request.headers.get("User-Agent")
        )
        route = api.routes.get("$connect")
        if route is None:
            return client, None
        if route.authorizer is not None:
            try:
                context = await authorize(self._integrations, route.authorizer, client, upgrade, self._limits)
            except Refused as refused:
                if refused.status < 500:
                    self._counted(client, "ClientError")
                self._logged(client, connect_event(client, upgrade), access_log.refused(refused))
                raise
            client = replace(client, authorizer=context)
        try:
            response = await self._proxy(client, "$connect", connect_event(client, upgrade))
        except IntegrationFailed as error:
            raise Refused(error.status, "Internal server error") from error
        if not response.succeeded:
            raise _ConnectRefused(response)
        return client, response.headers.get("sec-websocket-protocol")

    async def _serve(self, request: web.Request, client: Client, subprotocol: str | None) -> web.StreamResponse:
        """Hold the connection until its end."""
        response: web.StreamResponse = web.Response()
        with contextlib.suppress(ConnectionError):
            response = await accept(request, subprotocol)
        transport = request.transport
        if transport is None or transport.is_closing():  # the client has left meanwhile
            self._spawn(self._disconnected(client, *ABNORMAL_END))
            return response
        socket = WebSocket(
            transport,
            lambda body: self._received(connection, body),
            frame_bytes=self._limits.frame_bytes,
            message_bytes=self._limits.message_bytes,
        )
        connection = Connection(client, socket, self._limits)
        self.connections.add(connection)
        self._counted(client, "ConnectCount")
        request.protocol.keep_alive(False)
        request.protocol.set_parser(socket)  # type: ignore[arg-type]  # it calls feed_data and feed_eof, no more
        try:
            await socket.wait_closed()
        finally:
            connection.stop_timers()
            self.connections.remove(connection)
        if not self._closed:
            self._spawn(self._disconnected(client, *socket.outcome))
        return response

    def _received(self, connection: Connection, body: str | bytes) -> None:
        connection.touch()
        self._spawn(self._handle(connection, body))

    async def _handle(self, connection: Connection, body: str | bytes) -> None:
        """Run a message's integration, and send the client what comes of it."""
        client = connection.client
        request_id = new_id()
        self._counted(client, "MessageCount")
        route_key = select_route(client.api.routes, client.api.route_selection_expression, body)
        if route_key is None:
            self._counted(client, "ClientError")
            self._logged(client, message_event(client, "", request_id, body), {"status": _NO_ROUTE})
            self._reply(connection, _error("Forbidden", client.connection_id, request_id))
            return
        route = client.api.routes[route_key]
        try:
            response = await self._proxy(client, route_key, message_event(client, route_key, request_id, body))
        except IntegrationFailed:
            self._reply(connection, _error("Internal server error", client.connection_id, request_id))
            return
        if route.two_way and response.body:
            self._reply(connection, response.body)

    async def _proxy(self, client: Client, route_key: str, event: dict[str, Any]) -> ProxyResponse:
        """Run a route's integration. Raises IntegrationFailed, which is counted."""
        begun, function_arn = time.monotonic(), client.api.routes[route_key].function_arn

        def took() -> dict[str, int]:
            return {"integrationLatency": round((time.monotonic() - begun) * 1000)}

        try:
            response = await self._integrations.proxy(function_arn, event, client.api.route_arn(route_key))
        except IntegrationFailed as error:
            self._counted(client, "IntegrationError")
            self._logged(client, event, access_log.failed(error) | took())
            raise
        self._logged(client, event, access_log.answered(response) | took())
        return response

    def _logged(self, client: Client, event: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
        stage = client.api.access_log
        if stage is not None:
            self._log(stage.group, access_log.access_line(stage.form, event["requestContext"], outcome))

    def _counted(self, client: Client, name: str) -> None:
        self._count(name, client.api.api_id, client.api.stage)

    def _reply(self, connection: Connection, reply: str | bytes) -> None:
        if connection.socket.open:
            connection.send(reply)

    async def _disconnected(self, client: Client, code: int, reason: str) -> None:
        """Run the ``$disconnect`` route, as well as it goes."""
        route = client.api.routes.get("$disconnect")
        if route is not None:
            event, source = disconnect_event(client, code, reason), client.api.route_arn("$disconnect")
            outcome: dict[str, Any] = {"status": 200, "integrationStatus": 200}
            try:
                await self._integrations.call(route.function_arn, event, source)
            except IntegrationFailed as error:
                outcome = access_log.failed(error)
            self._logged(client, event, outcome)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _ConnectRefused(Exception):
    """The ``$connect`` function answered with a status other than 2xx."""

    def __init__(self, response: ProxyResponse) -> None:
        super().__init__(response.status)
        self.response = response


def _error(message: str, connection_id: str, request_id: str) -> str:
    return json.dumps({"message": message, "connectionId": connection_id, "requestId": request_id})


def _refusal(refused: Refused, connection_id: str) -> web.Response:
    headers = {"x-amzn-ErrorType": _ERROR_TYPES.get(refused.status, "InternalServerErrorException")}
    body = _error(str(refused), connection_id, new_id())
    return web.Response(status=refused.status, text=body, headers=headers, content_type="application/json")
