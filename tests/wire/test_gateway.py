"""The local WebSocket gateway, spoken to by real clients: websockets, and boto3's apigatewaymanagementapi."""

import asyncio
import base64
import hashlib
import http.client
import io
import json
import os
import re
import socket
import textwrap
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from aiohttp import web
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

import local.gateway
from local.faults import Faults
from local.functions import FunctionConfig, FunctionService, InvokeResult
from local.functions.errors import TooManyRequests
from local.gateway import ApiConfig, AuthorizerConfig, GatewayControl, Limits, RouteConfig, WebSocketGateway
from local.gateway.policy import decide

Event = dict[str, Any]
ALLOW = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}]}
OK = {"statusCode": 200}


class Raised(Exception):
    """What a scripted function raises, and the runtime reports."""


class House:
    """A gateway on a port of its own, with scripted functions behind it."""

    def __init__(self, limits: Limits, routes: dict[str, RouteConfig] | None, api: dict[str, Any]) -> None:
        self.faults = Faults()
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
            lambda api_id, stage: apis.get((api_id, stage)), self._invoke, faults=self.faults, limits=limits
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
        self.call_nothing_more()

    def call_nothing_more(self) -> None:
        self._loop.close()

    def url(self, path: str = "a1b2c3/dev", query: str = "") -> str:
        return f"ws://127.0.0.1:{self.port}/_ws/{path}{query}"

    def open(self, query: str = "", **options: Any) -> ClientConnection:
        return connect(self.url(query=query), proxy=None, **options)

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
        return eventually(self.control.connections)[-1].connection_id

    def wait_for_event(self, arn: str) -> Event:
        return eventually(lambda: self.events.get(arn))[-1]


def eventually(condition: Callable[[], Any]) -> Any:
    """Wait for what must come; the suite's own time-out ends it otherwise."""
    while not (result := condition()):
        time.sleep(0.005)
    return result


def echo(event: Event) -> Any:
    return {"statusCode": 200, "body": event["body"]}


@pytest.fixture
def build() -> Iterator[Callable[..., House]]:
    houses: list[House] = []

    def build_one(limits: Limits | None = None, routes: dict[str, RouteConfig] | None = None, **api: Any) -> House:
        houses.append(House(limits or Limits(), routes, api))
        return houses[-1]

    yield build_one
    for house in houses:
        house.close()


@pytest.fixture
def house(build: Callable[..., House]) -> House:
    return build()


@pytest.fixture
def guarded(build: Callable[..., House]) -> House:
    """With an authorizer, that allows unless it is scripted to do something else."""
    authorizer = AuthorizerConfig("authorizer", ["route.request.querystring.token", "route.request.header.Origin"])
    guarded = build(
        routes={
            "$connect": RouteConfig("connect", authorizer),
            "$disconnect": RouteConfig("disconnect"),
            "$default": RouteConfig("message", two_way=True),
        }
    )
    guarded.functions["authorizer"] = lambda event: {"principalId": "beatrice", "policyDocument": ALLOW}
    return guarded


def refused(house: House, query: str = "?token=t", **options: Any) -> tuple[int, dict[str, Any]]:
    options = {"origin": "https://cicada.example", **options}
    with pytest.raises(InvalidStatus) as caught, house.open(query, **options):
        pass
    response = caught.value.response
    assert response.body is not None
    return response.status_code, json.loads(response.body)


# --- connecting ---


def test_the_upgrade_waits_for_connect(house: House) -> None:
    begun, release = threading.Event(), threading.Event()

    def slow(event: Event) -> Any:
        begun.set()
        release.wait()
        return OK

    house.functions["connect"] = slow
    with ThreadPoolExecutor(1) as caller:
        pending = caller.submit(house.open)
        begun.wait()
        assert not pending.done()
        assert house.control.connections() == []
        release.set()
        with pending.result():
            assert len(house.control.connections()) == 1


def test_connect_gets_the_request(house: House) -> None:
    with house.open("?a=1&a=2&b=%C3%BC", additional_headers={"X-Mine": "yes"}, user_agent_header="test/1"):
        event = house.events["connect"][0]
    context = event["requestContext"]
    assert event["headers"]["X-Mine"] == "yes"
    assert event["multiValueHeaders"]["X-Mine"] == ["yes"]
    assert event["queryStringParameters"] == {"a": "2", "b": "ü"}
    assert event["multiValueQueryStringParameters"] == {"a": ["1", "2"], "b": ["ü"]}
    assert event["isBase64Encoded"] is False
    assert "body" not in event
    assert context["routeKey"] == "$connect"
    assert context["eventType"] == "CONNECT"
    assert context["messageDirection"] == "IN"
    assert (context["apiId"], context["stage"]) == ("a1b2c3", "dev")
    assert context["domainName"] == "a1b2c3.execute-api.us-east-1.amazonaws.com"
    assert context["identity"] == {"sourceIp": "127.0.0.1", "userAgent": "test/1"}
    assert re.fullmatch(r"[\w-]{15}=", context["connectionId"])
    assert context["requestId"] == context["extendedRequestId"]
    assert re.fullmatch(r"\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000", context["requestTime"])
    assert context["connectedAt"] <= context["requestTimeEpoch"]
    assert "messageId" not in context
    assert "authorizer" not in context


def test_an_api_without_a_connect_route_lets_everybody_in(build: Callable[..., House]) -> None:
    house = build(routes={"$default": RouteConfig("message", two_way=True)})
    house.functions["message"] = echo
    with house.open() as client:
        client.send("hello")
        assert client.recv() == "hello"


def test_a_connect_that_answers_another_status_refuses_with_it(house: House) -> None:
    house.functions["connect"] = lambda event: {"statusCode": 418, "body": '{"because": "tea"}'}
    assert refused(house) == (418, {"because": "tea"})
    assert house.control.connections() == []
    assert "disconnect" not in house.events


def failing(event: Event) -> Any:
    raise Raised("a bug")


def throttled(event: Event) -> Any:
    raise TooManyRequests("Rate Exceeded.")


@pytest.mark.parametrize("behaviour", [failing, throttled, lambda event: "no proxy response", lambda event: {}])
def test_a_connect_that_fails_refuses_with_502(house: House, behaviour: Callable[[Event], Any]) -> None:
    house.functions["connect"] = behaviour
    status, body = refused(house)
    assert status == 502
    assert body["message"] == "Internal server error"
    assert set(body) == {"message", "connectionId", "requestId"}


def test_a_connect_that_takes_too_long_refuses_with_504(build: Callable[..., House]) -> None:
    house = build(Limits(integration_timeout_s=0.05))
    release = threading.Event()
    house.functions["connect"] = lambda event: release.wait() and OK
    assert refused(house)[0] == 504
    release.set()


def test_a_connection_cannot_be_posted_to_inside_its_own_connect(house: House) -> None:
    failures: list[str] = []

    def post_to_itself(event: Event) -> Any:
        with pytest.raises(house.client.exceptions.GoneException) as caught:
            house.post(event["requestContext"]["connectionId"], "too early")
        failures.append(caught.value.response["Error"]["Code"])
        return OK

    house.functions["connect"] = post_to_itself
    with house.open():
        house.post(house.connection_id, "in time")
    assert failures == ["GoneException"]


def test_a_subprotocol_is_the_one_that_connect_returns(house: House) -> None:
    with house.open(subprotocols=["cicada", "token"]) as client:
        assert client.subprotocol is None
        assert "Sec-WebSocket-Protocol" in house.events["connect"][0]["headers"]
    house.functions["connect"] = lambda event: {**OK, "headers": {"Sec-WebSocket-Protocol": "cicada"}}
    with house.open(subprotocols=["cicada", "token"]) as client:
        assert client.subprotocol == "cicada"


def test_no_extension_is_negotiated(house: House) -> None:
    with house.open(compression="deflate") as client:
        assert client.response is not None
        assert "Sec-WebSocket-Extensions" not in client.response.headers


@pytest.mark.parametrize("path", ["a1b2c3/prod", "nobody/dev"])
def test_an_unknown_api_or_stage_is_forbidden(house: House, path: str) -> None:
    with pytest.raises(InvalidStatus) as caught, connect(house.url(path), proxy=None):
        pass
    assert caught.value.response.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "8", "Sec-WebSocket-Key": "eHg="},
        {"Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "eHg="},
    ],
)
def test_a_request_that_is_no_upgrade_is_refused(house: House, headers: dict[str, str]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", house.port)
    connection.request("GET", "/_ws/a1b2c3/dev", headers=headers)
    assert connection.getresponse().status == 426
    connection.close()
    assert house.events == {}


def test_a_url_over_4096_characters_is_refused(house: House) -> None:
    with pytest.raises(InvalidStatus) as caught, house.open("?token=" + "x" * 4096):
        pass
    assert caught.value.response.status_code == 414


def test_a_client_that_leaves_while_it_is_connecting_is_disconnected(house: House) -> None:
    begun, release = threading.Event(), threading.Event()

    def slow(event: Event) -> Any:
        begun.set()
        release.wait()
        return OK

    house.functions["connect"] = slow
    impatient = raw_upgrade(house)
    begun.wait()
    impatient.close()
    release.set()
    event = house.wait_for_event("disconnect")
    assert event["requestContext"]["disconnectStatusCode"] == 1006
    assert house.control.connections() == []


# --- authorizers ---


def test_the_authorizer_is_asked_before_connect(guarded: House) -> None:
    with guarded.open("?token=secret", origin="https://cicada.example"):
        asked = guarded.events["authorizer"][0]
    assert asked["type"] == "REQUEST"
    assert asked["methodArn"] == "arn:aws:execute-api:us-east-1:123456789012:a1b2c3/dev/$connect"
    assert asked["headers"]["Origin"] == "https://cicada.example"
    assert asked["queryStringParameters"] == {"token": "secret"}
    assert asked["stageVariables"] == {}
    assert asked["requestContext"]["routeKey"] == "$connect"
    connected = guarded.events["connect"][0]["requestContext"]
    assert asked["requestContext"]["connectionId"] == connected["connectionId"]


def test_the_authorizers_context_is_in_every_later_event_as_strings(guarded: House) -> None:
    guarded.functions["authorizer"] = lambda event: {
        "principalId": "beatrice",
        "policyDocument": ALLOW,
        "context": {"subject": "beatrice", "expires_at": 1_800_000_000, "admin": False, "share": 0.5},
    }
    guarded.functions["message"] = echo
    with guarded.open("?token=t", origin="o") as client:
        client.send("hello")
        client.recv()
    disconnected = guarded.wait_for_event("disconnect")
    for event in (guarded.events["connect"][0], guarded.events["message"][0], disconnected):
        seen = dict(event["requestContext"]["authorizer"])
        assert isinstance(seen.pop("integrationLatency"), int)
        assert seen == {
            "principalId": "beatrice",
            "subject": "beatrice",
            "expires_at": "1800000000",
            "admin": "false",
            "share": "0.5",
        }


@pytest.mark.parametrize(("query", "origin"), [("", "o"), ("?token=", "o"), ("?token=t", None)])
def test_a_missing_identity_source_is_401_without_asking(guarded: House, query: str, origin: str | None) -> None:
    status, body = refused(guarded, query, origin=origin)
    assert (status, body["message"]) == (401, "Unauthorized")
    assert guarded.events == {}


def test_an_authorizer_that_raises_unauthorized_is_401(guarded: House) -> None:
    def unauthorized(event: Event) -> Any:
        raise Raised("Unauthorized")

    guarded.functions["authorizer"] = unauthorized
    assert refused(guarded)[0] == 401
    assert "connect" not in guarded.events


@pytest.mark.parametrize(
    "statements",
    [
        [{"Effect": "Deny", "Action": "execute-api:Invoke", "Resource": "*"}],
        [*ALLOW["Statement"], {"Effect": "Deny", "Action": "*", "Resource": "*"}],
        [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "arn:aws:execute-api:*:*:other/*"}],
        [],
    ],
)
def test_a_policy_that_does_not_allow_is_403(guarded: House, statements: list[Any]) -> None:
    policy = {"Version": "2012-10-17", "Statement": statements}
    guarded.functions["authorizer"] = lambda event: {"principalId": "b", "policyDocument": policy}
    status, body = refused(guarded)
    assert (status, body["message"]) == (403, "Forbidden")
    assert "connect" not in guarded.events


@pytest.mark.parametrize(
    "result",
    [
        None,
        {"principalId": "b"},
        {"policyDocument": ALLOW},
        {"principalId": "b", "policyDocument": {"Statement": [{"Effect": "allow"}]}},
        {"principalId": "b", "policyDocument": ALLOW, "context": {"groups": ["nested"]}},
        {"principalId": "b", "policyDocument": ALLOW, "context": {"large": "x" * 8192}},
    ],
)
def test_an_authorizer_that_answers_what_is_none_is_500(guarded: House, result: Any) -> None:
    guarded.functions["authorizer"] = lambda event: result
    assert refused(guarded)[0] == 500


def test_an_authorizer_that_fails_is_500(guarded: House) -> None:
    guarded.functions["authorizer"] = failing
    assert refused(guarded)[0] == 500


RESOURCE = "arn:aws:execute-api:us-east-1:123456789012:a1b2c3/dev/$connect"


@pytest.mark.parametrize(
    ("statement", "decision"),
    [
        ({"Effect": "Allow", "Action": "execute-api:*", "Resource": "arn:aws:execute-api:*:*:a1b2c3/*"}, "allow"),
        ({"Effect": "Allow", "Action": ["x:Y", "EXECUTE-API:invoke"], "Resource": [RESOURCE]}, "allow"),
        ({"Effect": "Allow", "Action": "*", "Resource": RESOURCE.replace("dev", "d?v")}, "allow"),
        ({"Effect": "Allow", "Action": "*", "Resource": RESOURCE.replace("dev", "d??v")}, "implicit deny"),
        ({"Effect": "Allow", "Action": "*", "Resource": RESOURCE.upper()}, "implicit deny"),
        ({"Effect": "Allow", "NotAction": "s3:*", "NotResource": "arn:aws:s3:::*"}, "allow"),
        ({"Effect": "Allow", "Action": "*", "NotResource": "*"}, "implicit deny"),
        ({"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"Bool": {}}}, "implicit deny"),
        ({"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": {"Bool": {}}}, "explicit deny"),
    ],
)
def test_a_policys_patterns_decide(statement: Any, decision: str) -> None:
    assert decide({"Statement": statement}, "execute-api:Invoke", RESOURCE) == decision


# --- messages ---


def test_a_message_is_an_event(house: House) -> None:
    house.functions["message"] = echo
    with house.open() as client:
        client.send('{"action": "ask", "query": "wer?"}')
        client.recv()
        connected = house.events["connect"][0]["requestContext"]
    event = house.events["message"][0]
    context = event["requestContext"]
    assert event["body"] == '{"action": "ask", "query": "wer?"}'
    assert event["isBase64Encoded"] is False
    assert "headers" not in event
    assert (context["routeKey"], context["eventType"]) == ("$default", "MESSAGE")
    assert context["connectionId"] == connected["connectionId"]
    assert context["connectedAt"] == connected["connectedAt"]
    assert context["requestId"] != connected["requestId"]
    assert context["messageId"]


@pytest.mark.parametrize(
    ("body", "route"),
    [
        ('{"action": "ask"}', "ask"),
        ('{"action": "resume"}', "$default"),
        ('{"action": "$connect"}', "$default"),
        ('{"action": "$disconnect"}', "$default"),
        ('{"action": {"ask": 1}}', "$default"),
        ('{"action": 7}', "7"),
        ('["ask"]', "$default"),
        ("ask", "$default"),
        ("[" * 20_000, "$default"),
        (b'{"action": "ask"}', "$default"),
    ],
)
def test_the_selection_expression_chooses_the_route(build: Callable[..., House], body: str | bytes, route: str) -> None:
    keys = ("$connect", "$disconnect", "$default", "ask", "7")
    house = build(routes={key: RouteConfig(f"for {key}", two_way=True) for key in keys})
    with house.open() as client:
        client.send(body)
        event = house.wait_for_event(f"for {route}")
        assert event["requestContext"]["routeKey"] == route


def test_an_expression_may_name_several_fields(build: Callable[..., House]) -> None:
    house = build(
        routes={"chat/ask": RouteConfig("ask"), "$default": RouteConfig("message")},
        route_selection_expression="${request.body.service.name}/${request.body.action}",
    )
    with house.open() as client:
        client.send('{"service": {"name": "chat"}, "action": "ask"}')
        assert house.wait_for_event("ask")
        client.send('{"action": "ask"}')
        assert house.wait_for_event("message")


def test_a_message_without_a_route_is_forbidden(build: Callable[..., House]) -> None:
    house = build(routes={"$connect": RouteConfig("connect"), "ask": RouteConfig("message", two_way=True)})
    with house.open() as client:
        client.send('{"action": "other"}')
        answer = json.loads(client.recv())
        assert answer.pop("connectionId") == house.connection_id
        assert answer.pop("requestId")
        assert answer == {"message": "Forbidden"}


def test_a_binary_message_comes_in_base64(house: House) -> None:
    with house.open() as client:
        client.send(b"\x00\xff")
        event = house.wait_for_event("message")
    assert event["isBase64Encoded"] is True
    assert base64.b64decode(event["body"]) == b"\x00\xff"


def test_the_function_of_a_two_way_route_answers_the_client(house: House) -> None:
    house.functions["message"] = echo
    with house.open() as client:
        client.send("hällo")
        assert client.recv() == "hällo"


def test_a_two_way_answer_is_sent_whatever_its_status(house: House) -> None:
    house.functions["message"] = lambda event: {"statusCode": 500, "body": "what went wrong"}
    with house.open() as client:
        client.send("hello")
        assert client.recv() == "what went wrong"


def test_an_answer_in_base64_is_sent_as_binary(house: House) -> None:
    house.functions["message"] = lambda event: {**OK, "body": "AP8=", "isBase64Encoded": True}
    with house.open() as client:
        client.send("hello")
        assert client.recv() == b"\x00\xff"


def test_an_empty_answer_sends_nothing(house: House) -> None:
    house.functions["message"] = lambda event: OK if event["body"] == "first" else echo(event)
    with house.open() as client:
        client.send("first")
        house.wait_for_event("message")
        client.send("second")
        assert client.recv() == "second"


def test_a_one_way_route_sends_errors_only(build: Callable[..., House]) -> None:
    house = build(routes={"$default": RouteConfig("message")})
    house.functions["message"] = lambda event: failing(event) if event["body"] == "fail" else echo(event)
    with house.open() as client:
        client.send("hello")
        house.wait_for_event("message")
        client.send("fail")
        assert json.loads(client.recv())["message"] == "Internal server error"


@pytest.mark.parametrize(
    "behaviour",
    [
        failing,
        throttled,
        lambda event: "no proxy response",
        lambda event: {"body": "no status"},
        lambda event: {**OK, "body": {"not": "a string"}},
        lambda event: {**OK, "body": "%", "isBase64Encoded": True},
    ],
)
def test_a_function_that_fails_is_told_to_the_client(house: House, behaviour: Callable[[Event], Any]) -> None:
    house.functions["message"] = behaviour
    with house.open() as client:
        client.send("hello")
        answer = json.loads(client.recv())
        context = house.events["message"][0]["requestContext"]
        assert answer == {
            "message": "Internal server error",
            "connectionId": context["connectionId"],
            "requestId": context["requestId"],
        }
        house.functions["message"] = echo
        client.send("still here")
        assert client.recv() == "still here"


def test_a_function_over_the_integration_time_is_told_to_the_client(build: Callable[..., House]) -> None:
    house = build(Limits(integration_timeout_s=0.05))
    release = threading.Event()
    house.functions["message"] = lambda event: release.wait() and echo(event)
    with house.open() as client:
        client.send("hello")
        assert json.loads(client.recv())["message"] == "Internal server error"
        release.set()
        house.functions["message"] = echo
        client.send("the late answer is lost")
        assert client.recv() == "the late answer is lost"


def test_messages_of_one_connection_run_at_once(house: House) -> None:
    together = threading.Barrier(2)

    def meet(event: Event) -> Any:
        together.wait()
        return echo(event)

    house.functions["message"] = meet
    with house.open() as client:
        client.send("one")
        client.send("two")
        assert {client.recv(), client.recv()} == {"one", "two"}


# --- frames ---


def test_a_message_in_fragments_is_put_together(house: House) -> None:
    with house.open() as client:
        client.send(iter(["one ", "two ", "three"]))
        assert house.wait_for_event("message")["body"] == "one two three"


def test_a_frame_of_32_kib_is_taken_and_a_longer_one_closes_with_1009(house: House) -> None:
    house.functions["message"] = lambda event: {**OK, "body": str(len(event["body"]))}
    with house.open() as client:
        client.send("x" * 32 * 1024)
        assert client.recv() == str(32 * 1024)
        client.send("x" * (32 * 1024 + 1))
        with pytest.raises(ConnectionClosed) as caught:
            client.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009
    assert house.wait_for_event("disconnect")["requestContext"]["disconnectStatusCode"] == 1009


def test_a_message_of_128_kib_is_taken_and_a_longer_one_closes_with_1009(house: House) -> None:
    house.functions["message"] = lambda event: {**OK, "body": str(len(event["body"]))}
    frames = ["x" * 32 * 1024] * 4
    with house.open() as client:
        client.send(iter(frames))
        assert client.recv() == str(128 * 1024)
        client.send(iter([*frames, "x"]))
        with pytest.raises(ConnectionClosed) as caught:
            client.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009


def test_a_message_far_over_the_limit_still_reads_its_close_frame(house: House) -> None:
    with house.open() as client, pytest.raises(ConnectionClosed) as caught:
        client.send("x" * 4 * 1024 * 1024)
        client.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009


def test_what_is_sent_to_a_client_comes_in_frames_of_32_kib(house: House) -> None:
    with house.open() as client:
        house.post(house.connection_id, "ü" * 50_000)
        frames = list(client.recv_streaming(decode=False))
    assert [len(frame) for frame in frames] == [32_768, 32_768, 32_768, 1_696]
    assert b"".join(frames).decode() == "ü" * 50_000


def test_text_that_is_no_utf_8_closes_with_1007(house: House) -> None:
    with house.open() as client:
        client.send(b"\xff\xfe", text=True)
        with pytest.raises(ConnectionClosed) as caught:
            client.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1007
    assert "message" not in house.events


def test_a_ping_is_answered(house: House) -> None:
    with house.open() as client:
        assert client.ping().wait(30)


# --- closing ---


def test_a_client_that_closes_is_disconnected_with_its_code(house: House) -> None:
    with house.open() as client:
        connection_id = house.connection_id
        client.close(4001, "enough")
    event = house.wait_for_event("disconnect")
    context = event["requestContext"]
    assert (context["routeKey"], context["eventType"]) == ("$disconnect", "DISCONNECT")
    assert context["connectionId"] == connection_id
    assert (context["disconnectStatusCode"], context["disconnectReason"]) == (4001, "enough")
    assert event["isBase64Encoded"] is False
    assert house.control.connections() == []


def test_a_close_without_a_status_is_1005(house: House) -> None:
    with house.open() as client:
        client.socket.sendall(b"\x88\x80\x00\x00\x00\x00")  # an empty close frame, masked with zeros
        context = house.wait_for_event("disconnect")["requestContext"]
    assert context["disconnectStatusCode"] == 1005
    assert context["disconnectReason"] == "Client-side close frame status not set"


def test_a_lost_connection_is_1006(house: House) -> None:
    with house.open() as client:
        client.socket.shutdown(socket.SHUT_RDWR)
        context = house.wait_for_event("disconnect")["requestContext"]
    assert context["disconnectStatusCode"] == 1006


def test_a_disconnect_function_that_fails_harms_nobody(house: House) -> None:
    house.functions["disconnect"] = failing
    with house.open():
        pass
    house.wait_for_event("disconnect")
    with house.open():
        assert len(house.control.connections()) == 1


def test_an_idle_connection_is_closed_with_1001_whatever_it_pings(build: Callable[..., House]) -> None:
    house = build(Limits(idle_s=0.3))
    with house.open() as client, pytest.raises(ConnectionClosed) as caught:
        while True:
            client.ping()
            time.sleep(0.02)
    assert caught.value.rcvd is not None
    assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (1001, "Going away")
    assert house.wait_for_event("disconnect")["requestContext"]["disconnectStatusCode"] == 1001


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_message_in_either_direction_keeps_a_connection(build: Callable[..., House], direction: str) -> None:
    house = build(Limits(idle_s=1.0))
    with house.open() as client:
        connection_id = house.connection_id
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            if direction == "in":
                client.send("here")
            else:
                house.post(connection_id, "there")
            time.sleep(0.05)
        assert house.connection_id == connection_id


def test_a_connection_ends_at_its_age_however_busy(build: Callable[..., House]) -> None:
    house = build(Limits(lifetime_s=0.3))
    house.functions["message"] = echo
    with house.open() as client, pytest.raises(ConnectionClosed) as caught:
        while True:
            client.send("hello")
            client.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1001


def test_a_client_that_ignores_the_close_is_cut(build: Callable[..., House]) -> None:
    house = build(Limits(idle_s=0.05))
    deaf = raw_upgrade(house)
    assert deaf.recv(4096).startswith(b"HTTP/1.1 101")
    assert house.wait_for_event("disconnect")["requestContext"]["disconnectStatusCode"] == 1001
    deaf.close()


def test_a_gateway_that_closes_tells_its_clients(build: Callable[..., House]) -> None:
    house = build()
    with house.open() as client:
        house.call(house.gateway.close())
        with pytest.raises(ConnectionClosed) as caught:
            client.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1001
    assert refused(house)[0] == 403


# --- the callback API ---


def test_posts_arrive_in_order(house: House) -> None:
    with house.open() as client:
        for number in range(50):
            house.post(house.connection_id, f"nr {number} ü")
        assert [client.recv() for _ in range(50)] == [f"nr {number} ü" for number in range(50)]


def test_a_post_that_is_no_text_arrives_as_binary(house: House) -> None:
    with house.open() as client:
        house.post(house.connection_id, b"\x00\xff")
        assert client.recv() == b"\x00\xff"


def test_a_closed_connection_is_gone(house: House) -> None:
    with house.open():
        connection_id = house.connection_id
    house.wait_for_event("disconnect")
    with pytest.raises(house.client.exceptions.GoneException) as caught:
        house.post(connection_id, "anybody?")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 410


def test_a_connection_that_never_was_is_gone(house: House) -> None:
    with pytest.raises(house.client.exceptions.GoneException):
        house.post("L0SM9cOFvHcCIhw=", "anybody?")


def test_a_connection_of_another_api_is_gone(house: House) -> None:
    with house.open():
        other = house.callback_client("other/dev")
        with pytest.raises(other.exceptions.GoneException):
            other.post_to_connection(ConnectionId=house.connection_id, Data=b"wrong door")


@pytest.mark.parametrize("connection_id", ["nobody", "L0SM9cOFvHcCIhw", "x" * 64, "L0SM9cOFvHcC Ihw="])
def test_a_malformed_connection_id_is_a_bad_request(house: House, connection_id: str) -> None:
    with pytest.raises(ClientError) as caught:
        house.post(connection_id, "anybody?")
    assert caught.value.response["Error"]["Code"] == "BadRequestException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_a_post_of_128_kib_is_taken_and_a_larger_one_is_refused(house: House) -> None:
    with house.open(max_size=None) as client:
        house.post(house.connection_id, b"x" * 131_072)
        assert len(client.recv()) == 131_072
        with pytest.raises(house.client.exceptions.PayloadTooLargeException) as caught:
            house.post(house.connection_id, b"x" * 131_073)
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413


def test_a_post_to_an_unknown_stage_is_forbidden(house: House) -> None:
    stranger = house.callback_client("a1b2c3/prod")
    with pytest.raises(stranger.exceptions.ForbiddenException):
        stranger.post_to_connection(ConnectionId="L0SM9cOFvHcCIhw=", Data=b"x")


def test_a_post_without_a_signature_is_refused(house: House) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", house.port)
    connection.request("POST", "/_ws/a1b2c3/dev/@connections/L0SM9cOFvHcCIhw%3D", b"x")
    response = connection.getresponse()
    assert response.status == 403
    assert response.headers["x-amzn-ErrorType"] == "MissingAuthenticationTokenException"
    assert set(json.loads(response.read())) == {"message", "connectionId", "requestId"}
    connection.close()


def test_a_client_that_does_not_read_makes_posts_fail_until_it_does(build: Callable[..., House]) -> None:
    house = build(Limits(send_buffer_bytes=200_000))
    slow = raw_upgrade(house, receive_buffer_bytes=4096)
    connection_id = eventually(house.control.connections)[0].connection_id
    accepted = 0
    with pytest.raises(house.client.exceptions.LimitExceededException) as caught:
        while True:
            house.post(connection_id, b"x" * 30_000)
            accepted += 30_000
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
    assert house.control.connections()[0].unsent_bytes <= 200_000
    received = 0
    while received < accepted:
        received += len(slow.recv(65_536))
    eventually(lambda: house.control.connections()[0].unsent_bytes == 0)
    house.post(connection_id, b"y" * 30_000)
    slow.close()


def test_a_connection_is_described(house: House) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    with house.open(user_agent_header="test/1"):
        house.post(house.connection_id, "hello")
        described = house.client.get_connection(ConnectionId=house.connection_id)
    assert before <= described["ConnectedAt"] <= described["LastActiveAt"] <= datetime.now(UTC)
    assert described["Identity"] == {"SourceIp": "127.0.0.1", "UserAgent": "test/1"}


def test_a_connection_can_be_deleted(house: House) -> None:
    with house.open() as client:
        connection_id = house.connection_id
        answer = house.client.delete_connection(ConnectionId=connection_id)
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204
        with pytest.raises(house.client.exceptions.GoneException):
            house.client.get_connection(ConnectionId=connection_id)
        with pytest.raises(ConnectionClosed) as caught:
            client.recv()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1000
    assert house.wait_for_event("disconnect")["requestContext"]["disconnectStatusCode"] == 1000


# --- faults and control ---


def test_the_gone_fault_can_be_limited_to_one_connection(house: House) -> None:
    with house.open() as one, house.open() as two:
        first, second = (info.connection_id for info in house.control.connections())
        house.faults.arm("gateway.gone", connection=first)
        with pytest.raises(house.client.exceptions.GoneException):
            house.post(first, "lost")
        house.post(second, "arrives")
        assert two.recv() == "arrives"
        house.faults.disarm()
        house.post(first, "arrives too")
        assert one.recv() == "arrives too"


def test_the_busy_fault(house: House) -> None:
    with house.open() as client:
        house.faults.arm("gateway.busy", times=1)
        with pytest.raises(house.client.exceptions.LimitExceededException):
            house.post(house.connection_id, "lost")
        house.post(house.connection_id, "arrives")
        assert client.recv() == "arrives"


def test_the_slow_fault_outlasts_a_callers_patience(house: House) -> None:
    impatient = house.callback_client(read_timeout=0.2)
    with house.open():
        house.faults.arm("gateway.slow", times=1, delay_ms=2_000)
        with pytest.raises(HTTPClientError):
            impatient.post_to_connection(ConnectionId=house.connection_id, Data=b"x")


def test_the_lost_acknowledgement_fault_delivers_and_does_not_say_so(house: House) -> None:
    with house.open() as client:
        house.faults.arm("gateway.lost_ack", times=1)
        with pytest.raises(HTTPClientError):
            house.post(house.connection_id, "delivered all the same")
        assert client.recv() == "delivered all the same"


def test_a_caller_that_retries_after_a_lost_acknowledgement_delivers_twice(house: House) -> None:
    retrying = house.callback_client(retries={"total_max_attempts": 2})
    with house.open() as client:
        house.faults.arm("gateway.lost_ack", times=1)
        retrying.post_to_connection(ConnectionId=house.connection_id, Data=b"again")
        assert [client.recv(), client.recv()] == ["again", "again"]


@pytest.mark.parametrize("after", [1, 3])
def test_the_drop_fault_cuts_a_connection_after_so_many_posts(house: House, after: int) -> None:
    house.faults.arm("gateway.drop", times=1, after=after)
    received = []
    with house.open() as client:
        connection_id = house.connection_id
        for number in range(after):
            house.post(connection_id, str(number))
        with pytest.raises(ConnectionClosed) as caught:
            while True:
                received.append(client.recv())
    assert received == [str(number) for number in range(after)]
    assert caught.value.rcvd is None, "there was no close frame"
    assert house.wait_for_event("disconnect")["requestContext"]["disconnectStatusCode"] == 1006
    with pytest.raises(house.client.exceptions.GoneException):
        house.post(connection_id, "too late")
    with house.open() as client:
        for number in range(2 * after):
            house.post(house.connection_id, str(number))
        assert [client.recv() for _ in range(2 * after)] == [str(number) for number in range(2 * after)]


def test_connections_can_be_listed_and_dropped(house: House) -> None:
    with house.open() as client, house.open():
        first, second = house.control.connections()
        house.post(first.connection_id, "hello")
        assert client.recv() == "hello"
        assert house.control.connections()[0].posts == 1
        assert (first.api_id, first.stage) == ("a1b2c3", "dev")
        assert house.control.drop(first.connection_id)
        with pytest.raises(ConnectionClosed) as caught:
            client.recv()
        assert caught.value.rcvd is None
        assert [info.connection_id for info in house.control.connections()] == [second.connection_id]
        assert not house.control.drop(first.connection_id)


# --- with the Lambda service behind it ---

STREAMER = """
    import json, os
    import boto3

    callback = boto3.client("apigatewaymanagementapi")

    def handler(event, context):
        connection_id = event["requestContext"]["connectionId"]
        for word in json.loads(event["body"])["words"]:
            callback.post_to_connection(ConnectionId=connection_id, Data=word.encode())
        return {"statusCode": 200, "body": "all said"}
"""


def test_a_real_function_answers_through_the_callback_api(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as unfinished:
        unfinished.writestr("handler.py", textwrap.dedent(STREAMER))
    code = archive.getvalue()
    arn = "arn:aws:lambda:us-east-1:123456789012:function:streamer"
    function = FunctionConfig(
        "streamer", arn, "handler.handler", code, hashlib.sha256(code).hexdigest(), timeout_s=30.0, memory_mb=256
    )
    api = ApiConfig("a1b2c3", "dev", {"$default": RouteConfig(arn, two_way=True)})

    async def converse() -> list[str | bytes]:
        app = web.Application()
        runner = web.AppRunner(app)
        ports: list[int] = []
        faults = Faults()
        functions = FunctionService(
            {"streamer": function}.get,
            work_dir=tmp_path,
            endpoint_url="http://127.0.0.1:9",
            overrides=lambda config: {
                "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI": f"http://127.0.0.1:{ports[0]}/_ws/a1b2c3/dev"
            },
            faults=faults,
        )
        functions.add_routes(app)
        WebSocketGateway(lambda api_id, stage: api, functions.invoke, faults=faults).add_routes(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ports.append(runner.addresses[0][1])

        def talk() -> list[str | bytes]:
            with connect(f"ws://127.0.0.1:{ports[0]}/_ws/a1b2c3/dev", proxy=None) as client:
                client.send(json.dumps({"words": ["one", "two", "three"]}))
                return [client.recv() for _ in range(4)]

        try:
            return await asyncio.to_thread(talk)
        finally:
            await runner.cleanup()

    assert asyncio.run(converse()) == ["one", "two", "three", "all said"]


# --- the conformance list ---


def test_every_line_of_the_conformance_list_names_its_tests() -> None:
    listed = (Path(local.gateway.__file__).with_name("CONFORMANCE.md")).read_text()
    named = re.findall(r"`(test_\w+)`", listed)
    assert len(named) > 30
    assert [name for name in named if name not in globals()] == []
    rows = [line for line in listed.split("## Known")[0].splitlines() if line.startswith("| ") and "---" not in line]
    assert [row for row in rows[1:] if "`test_" not in row] == []


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
