"""Connecting to the local WebSocket gateway."""

import http.client
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus, NegotiationError
from websockets.sync.client import connect

from cicada_local.gateway import (
    Limits,
    RouteConfig,
)
from tests.wire.gateway_house import (
    OK,
    Event,
    House,
    echo,
    eventually,
    failing,
    raw_upgrade,
    refused,
    throttled,
)


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
            assert eventually(house.control.connections)


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


@pytest.mark.parametrize("offered", [None, ["another"]])
def test_a_subprotocol_that_was_not_offered_is_sent_too_and_fails_the_handshake(
    house: House, offered: list[str] | None
) -> None:
    house.functions["connect"] = lambda event: {**OK, "headers": {"Sec-WebSocket-Protocol": "cicada"}}
    with pytest.raises(NegotiationError), house.open(subprotocols=offered):
        pass


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
