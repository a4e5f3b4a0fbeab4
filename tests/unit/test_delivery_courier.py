"""The courier: what it does with an outbox while the store and the sockets fail."""

from __future__ import annotations

import threading
import time

import pytest

from cicada.delivery.courier import Courier
from cicada.delivery.decide import append, begin
from cicada.delivery.outbox import Fenced, Outbox, OutboxLimits
from cicada.delivery.ports import StoreFault
from cicada.errors import AnswerTooLong, Cancelled, DeliveryUnavailable, RequestUnknown
from cicada.protocol.events import Complete, Failed, Metrics
from tests.support.memory import InMemoryConnections, InMemoryLog
from tests.support.questions import ACCEPTED, KEY, NOW_S, new_head

COMPLETE = Complete(
    attempt=1,
    answered_by="rag",
    attempted=("rag",),
    model="m",
    grounded=True,
    stop_reason="end_turn",
    metrics=Metrics(latency_ms=1, attempt_ms=1, first_chunk_ms=1),
)
QUICK = {"min_interval_s": 0, "watch_s": 0.01}


class World:
    def __init__(self, *subscribers, **limits):
        self.log = InMemoryLog()
        self.log.create(new_head(*subscribers), ACCEPTED)
        self.connections = InMemoryConnections(*subscribers)
        head = self.log.head(KEY)
        self.begun = begin(head, "rag", (), execution="x", worker="w", now_s=NOW_S)
        head = self.log.commit(head, self.begun)
        self.stopped = threading.Event()
        outbox = Outbox(
            head,
            OutboxLimits(**(QUICK | limits)),
            begun=self.begun,
            now=time.monotonic(),
            now_s=lambda: NOW_S,
        )
        self.courier = Courier(outbox, self.log, self.connections, on_failure=self.stopped.set)

    def cancel(self):
        head = self.log.head(KEY)
        self.log.commit(head, append(head, [Failed.of(Cancelled())]))


def test_a_silent_attempt_learns_that_it_was_cancelled_and_has_its_model_stopped():
    world = World()
    with pytest.raises(Fenced):
        with world.courier as courier:
            world.cancel()
            assert world.stopped.wait(30)
            courier.raise_failure()


def test_a_request_that_cannot_be_watched_is_looked_at_again():
    world = World()
    looks = []

    def before(operation):
        if operation == "head":
            looks.append(operation)
            raise StoreFault("throttled")

    with world.courier as courier:
        world.log.before = before
        deadline = time.monotonic() + 30
        while len(looks) < 3 and time.monotonic() < deadline:
            time.sleep(0.005)
        world.log.before = lambda operation: None
        courier.close(COMPLETE, timeout_s=10)
    assert world.log.head(KEY).state == "complete"


def test_a_request_that_is_deleted_meanwhile_stops_its_attempt():
    world = World()
    with world.courier as courier:
        world.log.requests.clear()
        assert world.stopped.wait(30)
        with pytest.raises(RequestUnknown):
            courier.text("x")


def test_a_last_event_that_cannot_be_stored_in_time_is_a_failure():
    world = World()

    def before(operation):
        if operation == "commit":
            raise StoreFault("down")

    world.log.before = before
    with world.courier as courier, pytest.raises(DeliveryUnavailable, match="within"):
        courier.close(COMPLETE, timeout_s=0.2)


def test_what_was_taken_is_stored_before_a_failed_attempt_is_left():
    world = World()
    with world.courier as courier:
        courier.standalone("What did Mara say next?")
        courier.text("Half an ans")
        courier.flush(timeout_s=10)
    assert world.log.head(KEY).standalone == "What did Mara say next?"
    assert len(world.log.read(KEY)[1]) == 3


def test_a_flush_gives_up_when_the_store_is_down_and_raises_what_stopped_the_delivery():
    world = World(store_budget_s=0.05)

    def before(operation):
        if operation == "commit":
            raise StoreFault("down")

    world.log.before = before
    with world.courier as courier:
        courier.text("lost")
        courier.flush(timeout_s=0.01)
        assert world.stopped.wait(30)
        with pytest.raises(DeliveryUnavailable):
            courier.flush(timeout_s=10)


def test_text_that_outgrows_the_log_stops_the_delivery():
    world = World()
    with world.courier as courier:
        courier.text("x" * 300_000)
        assert world.stopped.wait(30)
        with pytest.raises(AnswerTooLong):
            courier.text("more")


def test_a_closed_connection_that_cannot_be_forgotten_now_is_met_again():
    world = World("c1", "c2")
    del world.connections.frames["c1"]

    def before(operation):
        if operation == "set_subscribers":
            raise StoreFault("throttled")

    world.log.before = before
    with world.courier as courier:
        courier.close(COMPLETE, timeout_s=10)
    assert world.log.head(KEY).subscribers == ("c1", "c2")
    assert len(world.connections.frames["c2"]) == 2
