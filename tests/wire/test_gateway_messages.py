"""Messages to the local WebSocket gateway, and the frames that they come in."""

import base64
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from cicada_local.gateway import (
    Limits,
    RouteConfig,
)
from tests.wire.gateway_house import OK, Event, House, echo, end_of, failing, throttled

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


def test_connections_messages_and_failures_are_counted(house: House) -> None:
    house.functions["message"] = failing
    with house.open() as client:
        client.send("{}")
        client.recv()
    assert house.counted == [f"a1b2c3/dev {name}" for name in ("ConnectCount", "MessageCount", "IntegrationError")]


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
        closed = end_of(client)
    assert closed is not None
    assert closed.code == 1009
    assert house.wait_for_event("disconnect")["requestContext"]["disconnectStatusCode"] == 1009


def test_a_message_of_128_kib_is_taken_and_a_longer_one_closes_with_1009(house: House) -> None:
    house.functions["message"] = lambda event: {**OK, "body": str(len(event["body"]))}
    frames = ["x" * 32 * 1024] * 4
    with house.open() as client:
        client.send(iter(frames))
        assert client.recv() == str(128 * 1024)
        # The gateway may close before the last frame, which is empty, has been written.
        with suppress(ConnectionClosed):
            client.send(iter([*frames, "x"]))
        closed = end_of(client)
    assert closed is not None
    assert closed.code == 1009


def test_a_message_far_over_the_limit_still_reads_its_close_frame(house: House) -> None:
    with house.open() as client:
        with suppress(ConnectionClosed):
            client.send("x" * 4 * 1024 * 1024)
        closed = end_of(client)
    assert closed is not None
    assert closed.code == 1009


def test_what_is_sent_to_a_client_comes_in_frames_of_32_kib(house: House) -> None:
    with house.open() as client:
        house.post(house.connection_id, "ü" * 50_000)
        frames = list(client.recv_streaming(decode=False))
    assert [len(frame) for frame in frames] == [32_768, 32_768, 32_768, 1_696]
    assert b"".join(frames).decode() == "ü" * 50_000


def test_text_that_is_no_utf_8_closes_with_1007(house: House) -> None:
    with house.open() as client:
        client.send(b"\xff\xfe", text=True)
        closed = end_of(client)
    assert closed is not None
    assert closed.code == 1007
    assert "message" not in house.events


def test_a_ping_is_answered(house: House) -> None:
    with house.open() as client:
        assert client.ping().wait(30)
