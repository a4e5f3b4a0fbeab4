"""What the tests of the deployed thing share: reading its answers, and waiting for what it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from cicada.delivery.decide import START_GRACE_S
from cicada_local.testing import LocalCloud
from tests.chaos.house import House
from tests.e2e.plain_client import PATIENCE_S, Socket, of

COMPLEX = "Explain what Tamsin found at the gauge tower and who read the gauge."
"""Enters at Hybrid."""
SIMPLE = "How many strokes of the fog bell did Ilse count?"
"""Enters at RAG; the first episode answers it."""
POLICY = "What are your terms for ringing the fog bell at night?"
"""Enters at CAG."""

PATIENT_S = START_GRACE_S + 1
"""After which a request that nobody works on is taken up."""

Events = list[dict[str, Any]]


def types(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def first(events: Sequence[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The first event of a type. Raises StopIteration if there is none."""
    return next(event for event in events if event["type"] == kind)


def last(events: Sequence[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The last event of a type. Raises StopIteration if there is none."""
    return next(event for event in reversed(events) if event["type"] == kind)


def answered(cloud: LocalCloud, question: str) -> Events:
    """The events of a question's answer, asked by nobody in particular."""
    with Socket(cloud.websocket_url) as socket:
        return socket.answer(question)


def failures(end: dict[str, Any]) -> list[tuple[str, str]]:
    """What a terminal event says of the strategies that failed."""
    return [(failure["strategy"], failure["code"]) for failure in end.get("failed", ())]


def whole_log(connect: Callable[..., Socket], request_id: str) -> Events:
    """A request's log as a fresh connection of the same user replays it."""
    socket = connect()
    socket.send("resume", requestId=request_id, after=0)
    socket.until("resumed")
    return of(socket.frames, request_id)


def slow_down(cloud: LocalCloud, delay_ms: int = 60) -> None:
    """A model that writes slowly enough to be interrupted."""
    cloud.arm("bedrock.slow", delay_ms=delay_ms)


def function_name(cloud: LocalCloud, part: str) -> str:
    """A function's name, by a part of its construct's."""
    return House(cloud).name_of(part)


def let_pass(cloud: LocalCloud, user: str, request_id: str, seconds: int) -> None:
    """Make a request as old as if so much time had passed: by its times in the table."""
    cloud.client("dynamodb").update_item(
        TableName=House(cloud).request_table(),
        Key={"pk": {"S": f"{request_id}#{user}"}, "sk": {"S": "head"}},
        UpdateExpression="SET lease_until = lease_until - :s, accepted_at_ms = accepted_at_ms - :ms",
        ExpressionAttributeValues={":s": {"N": str(seconds)}, ":ms": {"N": str(1000 * seconds)}},
        ConditionExpression="attribute_exists(pk)",
    )


def streams(cloud: LocalCloud) -> dict[str, int]:
    """The stand-in's counts of the model's streams."""
    counts: dict[str, int] = cloud.control("GET", "bedrock")
    return counts


def answers_by(
    socket: Socket, query: str, strategy: str, *, before: Callable[[], None] = lambda: None, **fields: Any
) -> Events:
    """Ask until a strategy has answered: it may depend on what the workers have yet to learn.

    ``before`` is called before each question: for a fault that strikes once.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        before()
        events = socket.answer(query, **fields)
        if events[-1].get("answeredBy") == strategy:
            return events
        assert time.monotonic() < deadline, f"answered by {events[-1].get('answeredBy')}, {failures(events[-1])}"
        time.sleep(0.5)


def eventually(holds: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
    """Whether something comes to hold within the time."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
