"""A response between application and Runtime API: whatever is sent arrives once, in order, or ends with an error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada_http.bridge.events import HttpRequest
from cicada_http.bridge.exchange import ApplicationBroke, Exchange
from cicada_http.bridge.lifespan import Lifespan, StartFailed
from cicada_http.bridge.runtime_api import Failure

START = {"type": "http.response.start", "status": 200, "headers": []}
FAILED = Failure("Function.Failed", "It failed.")


class Api:
    """Notes what the Runtime API is told."""

    def __init__(self):
        self.told = []

    async def begin(self, request_id, prelude):
        self.told.append(("begin", prelude["statusCode"]))
        return self

    async def write(self, content):
        if content:
            self.told.append(("write", content))

    async def finish(self):
        self.told.append(("finish",))

    async def abort(self, failure):
        self.told.append(("abort", failure.type))

    async def fail(self, request_id, failure):
        self.told.append(("fail", failure.type))


def sent(*messages, method="GET", failing=False):
    api: Any = Api()
    exchange = Exchange(api, "id", HttpRequest({"method": method}, b"asked"))

    async def run():
        for message in messages:
            await exchange.send(message)
        if failing and not exchange.complete:
            await exchange.fail(FAILED)

    asyncio.run(run())
    return api.told, exchange


def body(content=b"", more=True):
    return {"type": "http.response.body", "body": content, "more_body": more}


@given(st.lists(st.binary(max_size=4), max_size=6), st.booleans())
def test_a_response_is_what_the_application_sent_or_ends_with_an_error(pieces, failing):
    messages = [START, *(body(piece) for piece in pieces)]
    told, exchange = sent(*messages, *([] if failing else [body(more=False)]), failing=failing)
    text = b"".join(event[1] for event in told if event[0] == "write")
    assert [event[0] for event in told].count("begin") <= 1
    assert exchange.complete
    if not failing:
        assert told[-1] == ("finish",)
        assert text == (b"".join(pieces) or b"\n")
    else:
        assert text == b"".join(pieces)
        assert told[-1][0] == ("abort" if text else "fail")


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_has_none(status):
    told, _ = sent({**START, "status": status}, body(b"ignored", more=False))
    assert told == [("begin", status), ("finish",)]


def test_a_head_request_gets_no_body():
    told, _ = sent(START, body(b"ignored", more=False), method="HEAD")
    assert told == [("begin", 200), ("finish",)]


@pytest.mark.parametrize(
    "messages",
    [
        (body(b"early"),),
        (START, START),
        (START, body(b"all", more=False), body(b"late")),
        ({"type": "http.response.push"},),
    ],
)
def test_messages_out_of_order_are_refused(messages):
    with pytest.raises(ApplicationBroke):
        sent(*messages)


def test_the_request_is_received_once_and_a_disconnect_after_the_end():
    api: Any = Api()
    exchange = Exchange(api, "id", HttpRequest({"method": "POST"}, b"asked"))

    async def run():
        assert await exchange.receive() == {"type": "http.request", "body": b"asked", "more_body": False}
        waiting = asyncio.create_task(exchange.receive())
        await asyncio.sleep(0)
        assert not waiting.done()
        await exchange.send(START)
        await exchange.send(body(b"x", more=False))
        assert await waiting == {"type": "http.disconnect"}

    asyncio.run(run())


def test_an_application_without_a_lifespan_is_served():
    async def app(scope, receive, send):
        assert scope["type"] == "http"

    async def run():
        async with Lifespan(app) as lifespan:
            assert lifespan.state == {}

    asyncio.run(run())


def test_an_application_that_cannot_start_says_why():
    async def app(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no address"})

    async def run():
        async with Lifespan(app):
            raise AssertionError("it did not start")

    with pytest.raises(StartFailed, match="no address"):
        asyncio.run(run())
