"""Answers whose readers come and go."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from websockets.exceptions import InvalidStatus

from tests.e2e.plain_client import applied, of, whole
from tests.e2e.reading import SIMPLE, slow_down, whole_log


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6, 9])
def test_an_answer_survives_a_socket_dropped_after_k_events(cloud, connect, k):
    slow_down(cloud, 35)
    first = connect()
    request_id = first.ask(SIMPLE)
    while len(of(first.frames, request_id)) < k:
        first.receive()
    first.close()
    second = connect()
    seen = of(first.frames, request_id)
    second.send("resume", requestId=request_id, after=seen[-1]["seq"])
    while not whole(of(first.frames + second.frames, request_id)):
        second.receive()
    events = of(first.frames + second.frames, request_id)
    assert events[-1]["type"] == "complete"
    assert events == whole_log(connect, request_id)
    assert not {event["seq"] for event in of(second.frames, request_id)} & {event["seq"] for event in seen}


def test_a_connection_cut_by_the_network_is_forgotten_and_the_answer_goes_on(cloud, connect):
    slow_down(cloud)
    socket = connect()
    request_id = socket.ask(SIMPLE)
    socket.until("chunk")
    for connection in cloud.connections():
        cloud.drop(connection["connection_id"])
    deadline = time.monotonic() + 60
    while not whole(log := whole_log(connect, request_id)):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert log[-1]["type"] == "complete"


def test_a_finished_answer_can_be_read_again(connect):
    socket = connect()
    events = socket.answer("Hello!")
    again = connect()
    again.send("resume", requestId=events[0]["requestId"], after=0)
    resumed = again.until("resumed")
    assert (resumed["outcome"], resumed["lastSeq"], resumed["seq"]) == ("finished", len(events), 0)
    assert of(again.frames, events[0]["requestId"]) == events


LIFETIMES_S = (4, 15, 60)
"""Of a token that is to expire while an answer is read: on a busy machine a short one may expire before it begins."""


def test_events_stop_when_the_token_expires_and_go_on_with_a_fresh_one(cloud, connect):
    slow_down(cloud, 500)
    other = connect()
    for lasts_s in LIFETIMES_S:
        with suppress(InvalidStatus):
            first = connect(lasts_s=lasts_s)
            request_id = first.ask(SIMPLE)
            if first.until("chunk", "error")["type"] == "chunk":
                break
    other.send("resume", requestId=request_id, after=0)
    other.until("resumed")
    refused = first.until("error")
    assert (refused["seq"], refused["requestId"], refused["code"]) == (0, None, "unauthorized")
    seen = of(first.frames, request_id)
    assert not whole(seen)
    other.until("chunk", request_id=request_id)  # the answer itself goes on
    second = connect()
    second.send("resume", requestId=request_id, after=seen[-1]["seq"])
    second.until("resumed")
    second.send("cancel", requestId=request_id)
    second.until("error", request_id=request_id)
    events = of(first.frames + second.frames, request_id)
    assert events == other.events(request_id) == whole_log(connect, request_id)
    assert not {event["seq"] for event in of(second.frames, request_id)} & {event["seq"] for event in seen}
    first.send("ping")
    assert first.receive()["code"] == "unauthorized"  # and nothing came between


def test_two_subscribers_see_the_same_events(cloud, connect):
    slow_down(cloud)
    first, second = connect(), connect()
    request_id = first.ask(SIMPLE)
    first.until("attempt")
    second.send("resume", requestId=request_id, after=0)
    assert second.until("resumed")["outcome"] == "live"
    assert first.events(request_id) == second.events(request_id)


@pytest.mark.parametrize("fault", ["gateway.lost_ack", "gateway.busy"])
def test_posts_that_fail_lose_nothing(cloud, connect, fault):
    cloud.arm(fault, times=2)
    socket = connect()
    request_id = socket.ask(SIMPLE)
    deadline = time.monotonic() + 60
    while not whole(of(socket.frames, request_id)):
        assert time.monotonic() < deadline
        try:
            socket.receive(2)
        except TimeoutError:
            socket.send("resume", requestId=request_id, after=applied(of(socket.frames, request_id)))
    events = socket.events(request_id)
    assert events == whole_log(connect, request_id)
    assert events[-1]["type"] == "complete"


def test_a_throttled_log_delays_the_answer_and_loses_nothing(cloud, connect):
    slow_down(cloud)
    socket = connect()
    request_id = socket.ask(SIMPLE)
    socket.until("sources")
    cloud.arm("dynamodb.throttle", times=4)
    events = socket.events(request_id)
    assert events[-1]["type"] == "complete"
    assert events == whole_log(connect, request_id)
