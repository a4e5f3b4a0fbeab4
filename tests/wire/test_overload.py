"""A burst that the function behind the gateway cannot take: every question is answered or refused by name."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest

from cicada.answering.action_handlers import ActionHandlers
from cicada.answering.recovery import Recovery
from cicada.delivery.connections import ApiGatewayConnections
from cicada.delivery.decide import append
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.delivery.record import RequestKey
from cicada.identity import Caller
from cicada.protocol.actions import parse_action
from cicada.protocol.events import Complete, Metrics
from cicada_client import CicadaClient, InvalidQuestion, RequestRefused
from cicada_client.timing import Timing
from tests.support.gates import open_gate
from tests.support.memory import InMemoryConnections, InMemoryLog
from tests.support.profiles import profile_counter
from tests.support.questions import UNUSED, beginning
from tests.wire.gateway_house import House, Raised, houses

QUESTIONS = 200
AT_ONCE = 5
"""Frames that the function takes at a time; Lambda throttles what is more, and API Gateway says so in its own words."""
PATIENT = Timing(attempts=100, backoff_base_s=0.02, backoff_cap_s=0.5, reply_s=30.0, silence_s=1.0, gap_s=0.5)


class Processor:
    """The message processor with a bound on how many frames it handles at once, and a workflow that answers at once."""

    def __init__(self, house: House) -> None:
        self.log = InMemoryLog()
        self.connections = ApiGatewayConnections(house.client)
        self.intake = ActionHandlers(
            self.log,
            self.connections,
            Recovery(self.log, self.connections, self),
            profile_counter(time.time),
            open_gate(self.log),
            retention_s=3600,
        )
        self.throttled = 0
        self.started: list[str] = []
        self._free = threading.Semaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._house = house

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        if not self._free.acquire(blocking=False):
            self.throttled += 1
            raise Raised("Rate Exceeded.")
        try:
            time.sleep(0.002)  # the store's, so that frames overlap
            context = event["requestContext"]
            caller = Caller("mara", context["connectionId"], context["requestId"])
            with self._lock:
                reply = self.intake.handle(parse_action(event["body"]), caller)
            return {"statusCode": 200, "body": reply}
        finally:
            self._free.release()

    def start(self, key: RequestKey, strategy: str, failed: Any = ()) -> None:
        """Answer: the workflow and its worker in one."""
        self.started.append(key.request_id)
        head = self.log.head(key)
        head = self.log.commit(head, beginning(head, "direct", now_s=int(time.time())))
        metrics = Metrics(latency_ms=1, attempt_ms=1, first_chunk_ms=1)
        done = Complete(
            attempt=1, answered_by="direct", attempted=("direct",), model="m", grounded=False, stop_reason="end_turn",
            metrics=metrics,
        )  # fmt: skip
        self.log.commit(head, append(head, (done,)))


@pytest.fixture
def house() -> Iterator[House]:
    with houses() as build:
        yield build()


def ask_all(url: str, timing: Timing) -> list[Any]:
    """What becomes of each of so many questions that are asked at once over one connection."""

    async def asking() -> list[Any]:
        async with CicadaClient(url, timing=timing) as client:
            asked = (client.answer(f"Question {n}?") for n in range(QUESTIONS))
            return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(asking())


def test_of_200_questions_at_once_each_is_answered_though_most_frames_are_not_taken_at_first(house: House) -> None:
    processor = house.functions["message"] = Processor(house)
    outcomes = ask_all(house.url(), PATIENT)
    assert processor.throttled > 0
    assert [one for one in outcomes if isinstance(one, BaseException)] == []
    assert len({one.request_id for one in outcomes}) == QUESTIONS
    assert len(processor.started) == len(set(processor.started)) == QUESTIONS  # each is one request, however often sent


def test_what_is_never_taken_is_refused_by_name(house: House) -> None:
    def full(event: dict[str, Any]) -> Any:
        raise Raised("Rate Exceeded.")

    house.functions["message"] = full
    outcomes = ask_all(house.url(), Timing(backoff_base_s=0.001, backoff_cap_s=0.002, attempts=2, reply_s=30.0))
    assert {type(one) for one in outcomes} == {RequestRefused}
    assert {one.code for one in outcomes} == {"gateway_fault"}


@contextmanager
def silent_server() -> Iterator[str]:
    """Takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_store_that_does_not_answer_in_time_is_a_refusal_with_the_questions_id() -> None:
    quick = STORE_CONFIG.merge(type(STORE_CONFIG)(connect_timeout=0.1, read_timeout=0.1))
    with silent_server() as url:
        client = boto3.client(
            "dynamodb", endpoint_url=url, region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s",
            config=quick,
        )  # fmt: skip
        log = DynamoDbLog(client, "requests")
        connections = InMemoryConnections()
        intake = ActionHandlers(
            log,
            connections,
            Recovery(log, connections, UNUSED),
            profile_counter(time.time),
            open_gate(log),
            retention_s=60,
        )
        for action in ("ask", "resume", "cancel"):
            frame = {"action": action, "requestId": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"}
            frame |= {"query": "Who rang?"} if action == "ask" else {}
            reply = json.loads(intake.handle(parse_action(json.dumps(frame)), Caller("mara", "c1", "f1")))
            assert (reply["code"], reply["retryable"]) == ("delivery_unavailable", True)
            assert reply["requestId"] == frame["requestId"]


def test_a_message_that_would_close_the_connection_is_refused_before_it_is_sent(house: House) -> None:
    async def asking() -> None:
        async with CicadaClient(house.url()) as client:
            await client.profiles.create(
                "theory",
                "T",
                {f"f{n}": "\x01" * 1_000 for n in range(20)},
                statement="\x01" * 500,
                episodes=["\x01" * 128] * 20,
            )

    with pytest.raises(InvalidQuestion, match="bytes of 131,072"):
        asyncio.run(asking())
    assert house.events.get("message", []) == []
