"""A gateway on a port of its own, with scripted functions behind it, and clients to speak to it."""

import asyncio
import base64
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from aiohttp import web
from botocore.config import Config
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Close
from websockets.sync.client import ClientConnection, connect

from cicada_local.faults import Faults
from cicada_local.functions import InvokeResult, Permits, permit_all
from cicada_local.functions.errors import TooManyRequests
from cicada_local.gateway import (
    ApiConfig,
    ConnectionInfo,
    GatewayControl,
    Limits,
    RouteConfig,
    WebSocketGateway,
)

Event = dict[str, Any]
ALLOW = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}]}
OK = {"statusCode": 200}


class Raised(Exception):
    """What a scripted function raises, and the runtime reports."""


class House:
    """A gateway on a port of its own, with scripted functions behind it."""

    def __init__(
        self, limits: Limits, routes: dict[str, RouteConfig] | None, permits: Permits, api: dict[str, Any]
    ) -> None:
        self.faults = Faults()
        self.counted: list[str] = []
        self.logged: list[str] = []
        self.events: dict[str, list[Event]] = {}
        self.functions: dict[str, Callable[[Event], Any]] = {}
        self.api = ApiConfig(
            "a1b2c3",
            "dev",
            routes
            if routes is not None
            else {
                "$connect": RouteConfig("connect"),
                "$disconnect": RouteConfig("disconnect"),
                "$default": RouteConfig("message", two_way=True),
            },
            **api,
        )
        apis = {("a1b2c3", "dev"): self.api, ("other", "dev"): ApiConfig("other", "dev", {})}
        self.gateway = WebSocketGateway(
            lambda api_id, stage: apis.get((api_id, stage)),
            self._invoke,
            faults=self.faults,
            limits=limits,
            permits=permits,
            count=lambda name, api_id, stage: self.counted.append(f"{api_id}/{stage} {name}"),
            log=lambda group, line: self.logged.append(f"{group}: {line}"),
        )
        self.control = GatewayControl(self.gateway)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        app = web.Application()
        self.gateway.add_routes(app)
        self._runner = web.AppRunner(app)
        self.call(self._runner.setup())
        self.call(web.TCPSite(self._runner, "127.0.0.1", 0).start())
        self.port = self._runner.addresses[0][1]
        self.client = self.callback_client()

    async def _invoke(self, arn: str, payload: bytes) -> InvokeResult:
        event = json.loads(payload)
        self.events.setdefault(arn, []).append(event)
        try:
            result = await asyncio.to_thread(self.functions.get(arn, lambda event: OK), event)
        except Raised as error:
            raised = {"errorType": "Exception", "errorMessage": str(error), "stackTrace": []}
            return InvokeResult(200, json.dumps(raised).encode(), "Unhandled")
        return InvokeResult(200, json.dumps(result).encode())

    def call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def close(self) -> None:
        self.call(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def drop(self, connection_id: str) -> bool:
        async def on_its_loop() -> bool:
            return self.control.drop(connection_id)

        dropped: bool = self.call(on_its_loop())
        return dropped

    def url(self, path: str = "a1b2c3/dev", query: str = "") -> str:
        return f"ws://127.0.0.1:{self.port}/_ws/{path}{query}"

    def open(self, query: str = "", **options: Any) -> ClientConnection:
        opened: ClientConnection = connect(self.url(query=query), proxy=None, **options)
        return opened

    def callback_client(self, path: str = "a1b2c3/dev", **config: Any) -> Any:
        return boto3.client(
            "apigatewaymanagementapi",
            endpoint_url=f"http://127.0.0.1:{self.port}/_ws/{path}",
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            config=Config(**{"retries": {"total_max_attempts": 1}, **config}),
        )

    def post(self, connection_id: str, data: str | bytes) -> None:
        self.client.post_to_connection(ConnectionId=connection_id, Data=data)

    @property
    def connection_id(self) -> str:
        """The newest open connection's."""
        connections: list[ConnectionInfo] = eventually(self.control.connections)
        return connections[-1].connection_id

    def wait_for_event(self, arn: str) -> Event:
        events: list[Event] = eventually(lambda: self.events.get(arn))
        return events[-1]


def eventually(condition: Callable[[], Any]) -> Any:
    """Wait for what must come; the suite's own time-out ends it otherwise."""
    while not (result := condition()):
        time.sleep(0.005)
    return result


def two_of(house: House) -> list[ConnectionInfo]:
    """The open connections, once they are two."""
    found = house.control.connections()
    return found if len(found) == 2 else []


def end_of(client: ClientConnection, received: list[Any] | None = None) -> Close | None:
    """The close frame that a client gets in the end; None when there was none. What came before is ``received``."""
    try:
        while True:
            message = client.recv()
            if received is not None:
                received.append(message)
    except ConnectionClosed as error:
        return error.rcvd


def echo(event: Event) -> Any:
    return {"statusCode": 200, "body": event["body"]}


def failing(event: Event) -> Any:
    raise Raised("a bug")


def throttled(event: Event) -> Any:
    raise TooManyRequests("Rate Exceeded.")


def refused(house: House, query: str = "?token=t", **options: Any) -> tuple[int, dict[str, Any]]:
    options = {"origin": "https://cicada.example", **options}
    with pytest.raises(InvalidStatus) as caught, house.open(query, **options):
        pass
    response = caught.value.response
    assert response.body is not None
    return response.status_code, json.loads(response.body)


def raw_upgrade(house: House, receive_buffer_bytes: int | None = None) -> socket.socket:
    """A client that asks for an upgrade, and does nothing by itself after it."""
    raw = socket.socket()
    if receive_buffer_bytes is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    raw.connect(("127.0.0.1", house.port))
    key = base64.b64encode(os.urandom(16)).decode()
    raw.sendall(
        f"GET /_ws/a1b2c3/dev HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
    )
    return raw


@contextmanager
def houses() -> Iterator[Callable[..., House]]:
    """Builds gateways, and closes them in the end."""
    built: list[House] = []

    def build(
        limits: Limits | None = None,
        routes: dict[str, RouteConfig] | None = None,
        permits: Permits = permit_all,
        **api: Any,
    ) -> House:
        built.append(House(limits or Limits(), routes, permits, api))
        return built[-1]

    try:
        yield build
    finally:
        for house in built:
            house.close()
