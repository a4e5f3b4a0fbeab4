"""The delivery driver: what it does with an outbox while the store and the sockets fail."""

from __future__ import annotations

import json
import threading
import time

import pytest

from cicada.concurrency import THREADS
from cicada.delivery.decide import append
from cicada.delivery.driver import DeliveryDriver
from cicada.delivery.outbox import Fenced, Outbox, OutboxLimits, Post
from cicada.delivery.ports import ConnectionBusy, StoreFault
from cicada.delivery.record import RequestSpend, Standalone, Subscriber
from cicada.delivery.subscriber_queues import MAX_WAITING_FRAMES, SubscriberQueues
from cicada.errors import AnswerTooLong, Cancelled, DeliveryUnavailable, RequestUnknown
from cicada.protocol.events import Complete, Failed, Metrics, Sources
from tests.support.memory import InMemoryConnections, InMemoryLog
from tests.support.questions import ACCEPTED, KEY, NOW_S, beginning, following, new_head

COMPLETE = Complete(
    attempt=1,
    answered_by="rag",
    attempted=("rag",),
    model="m",
    grounded=True,
    stop_reason="end_turn",
    metrics=Metrics(latency_ms=1, attempt_ms=1, first_chunk_ms=1),
)
SOURCES = Sources(attempt=1, index_version="v1", searched=0, sources=())
QUICK = {"min_interval_s": 0, "watch_s": 0.01}


class World:
    def __init__(self, *subscribers, **limits):
        self.log = InMemoryLog()
        self.log.create(new_head(*subscribers), ACCEPTED)
        head = self.log.head(KEY)
        self.connections = InMemoryConnections(*(subscriber.connection_id for subscriber in head.subscribers))
        self.now_s = NOW_S
        self.begun = beginning(head)
        head = self.log.commit(head, self.begun)
        self.stopped = threading.Event()
        outbox = Outbox(
            head,
            OutboxLimits(**(QUICK | limits)),
            begun=self.begun,
            now=time.monotonic(),
            now_s=lambda: self.now_s,
        )
        self.driver = DeliveryDriver(
            outbox, self.log, self.connections, on_failure=self.stopped.set, now_s=lambda: self.now_s
        )

    def await_frames(self, connection_id, count):
        """Wait until a connection has so many frames."""
        deadline = time.monotonic() + 30
        while len(self.connections.frames[connection_id]) < count and time.monotonic() < deadline:
            time.sleep(0.005)
        return [json.loads(frame) for frame in self.connections.frames[connection_id]]

    def cancel(self):
        head = self.log.head(KEY)
        self.log.commit(head, append(head, [Failed.of(Cancelled())]))


def test_a_silent_attempt_learns_that_it_was_cancelled_and_has_its_model_stopped():
    world = World()
    with pytest.raises(Fenced):
        with world.driver as driver:
            world.cancel()
            assert world.stopped.wait(30)
            driver.raise_failure()


def test_a_request_that_cannot_be_watched_is_looked_at_again():
    world = World()
    looks = []

    def before(operation):
        if operation == "head":
            looks.append(operation)
            raise StoreFault("throttled")

    with world.driver as driver:
        world.log.before = before
        deadline = time.monotonic() + 30
        while len(looks) < 3 and time.monotonic() < deadline:
            time.sleep(0.005)
        world.log.before = lambda operation: None
        driver.close(COMPLETE, RequestSpend(), timeout_s=10)
    assert world.log.head(KEY).state == "complete"


def test_a_request_that_is_deleted_meanwhile_stops_its_attempt():
    world = World()
    with world.driver as driver:
        world.log.requests.clear()
        assert world.stopped.wait(30)
        with pytest.raises(RequestUnknown):
            driver.text("x")


def test_a_last_event_that_cannot_be_stored_in_time_is_a_failure():
    world = World()

    def before(operation):
        if operation == "commit":
            raise StoreFault("down")

    world.log.before = before
    with world.driver as driver, pytest.raises(DeliveryUnavailable, match="within"):
        driver.close(COMPLETE, RequestSpend(), timeout_s=0.2)


def test_what_was_taken_is_stored_before_a_failed_attempt_is_left():
    world = World()
    with world.driver as driver:
        driver.standalone(Standalone("What did Mara say next?"))
        driver.fail(RequestSpend(2, 300, 40, 0.01), timeout_s=10)
    head = world.log.head(KEY)
    assert (head.standalone, head.spent) == (Standalone("What did Mara say next?"), RequestSpend(2, 300, 40, 0.01))


def test_text_that_is_not_written_yet_is_dropped_with_its_attempt():
    world = World(min_interval_s=60)
    with world.driver as driver:
        driver.event(SOURCES)
        while len(world.log.read(KEY)[1]) < 3:
            time.sleep(0.005)
        driver.text("what a filter withheld")
        driver.event(SOURCES)
        driver.fail(RequestSpend(), timeout_s=0.05)
    assert "withheld" not in str(world.log.read(KEY))


def test_what_several_failed_attempts_spent_adds_up():
    assert RequestSpend(1, 10, 2, 0.5) + RequestSpend(1, 5, 1, 0.25) == RequestSpend(2, 15, 3, 0.75)
    assert RequestSpend(1, 10, 2, None) + RequestSpend(1, 5, 1, 0.25) == RequestSpend(2, 15, 3, None)


def test_settling_gives_up_when_the_store_is_down_and_raises_what_stopped_the_delivery():
    world = World(store_budget_s=0.5)

    def before(operation):
        if operation == "commit":
            raise StoreFault("down")

    world.log.before = before
    with world.driver as driver:
        driver.event(SOURCES)
        driver.fail(RequestSpend(), timeout_s=0.01)
        assert world.stopped.wait(30)
        with pytest.raises(DeliveryUnavailable):
            driver.fail(RequestSpend(), timeout_s=10)


def test_text_that_outgrows_the_log_stops_the_delivery():
    world = World()
    with world.driver as driver:
        driver.text("x" * 300_000)
        assert world.stopped.wait(30)
        with pytest.raises(AnswerTooLong):
            driver.text("more")


def test_a_closed_connection_that_cannot_be_forgotten_now_is_met_again():
    world = World("c1", "c2")
    del world.connections.frames["c1"]

    def before(operation):
        if operation == "set_subscribers":
            raise StoreFault("throttled")

    world.log.before = before
    with world.driver as driver:
        driver.close(COMPLETE, RequestSpend(), timeout_s=10)
    assert world.log.head(KEY).subscribers == following("c1", "c2")
    assert len(world.connections.frames["c2"]) == 2


def test_a_subscriber_whose_token_expires_is_told_so_and_gets_nothing_more():
    world = World(Subscriber("c1", NOW_S + 60), Subscriber("c2", NOW_S + 600))
    with world.driver as driver:
        driver.text("The bell ")
        world.await_frames("c1", 2)
        world.await_frames("c2", 2)
        world.now_s = NOW_S + 60
        driver.text("rang twice.")
        world.await_frames("c1", 3)
        driver.close(COMPLETE, RequestSpend(), timeout_s=10)
    expired, renewed = (world.await_frames(name, 0) for name in ("c1", "c2"))
    assert [frame["seq"] for frame in expired] == [2, 3, 0]
    assert (expired[-1]["type"], expired[-1]["code"]) == ("error", "unauthorized")
    assert [frame["seq"] for frame in renewed] == [2, 3, 4, 5]
    assert world.log.head(KEY).subscribers == (Subscriber("c2", NOW_S + 600),)
    assert world.log.head(KEY).state == "complete"


def test_the_expiry_counts_when_a_frame_is_posted_not_when_it_was_queued():
    reports = []
    now_s = NOW_S
    blocked, release = threading.Event(), threading.Event()
    connections = InMemoryConnections("c1")

    def before(connection_id):
        blocked.set()
        release.wait(30)

    connections.before = before
    lanes = SubscriberQueues(
        connections, THREADS, lambda connection_id, outcome: reports.append(outcome), lambda: now_s
    )
    lanes.send(Post(Subscriber("c1", NOW_S + 1), ('"one"', '"two"', '"three"')))
    assert blocked.wait(30)
    now_s = NOW_S + 1
    release.set()
    assert lanes.finish(timeout_s=30)
    assert reports == ["delivered", "expired"]
    assert [json.loads(frame) for frame in connections.frames["c1"]][:1] == ["one"]
    assert [json.loads(frame)["code"] for frame in connections.frames["c1"][1:]] == ["unauthorized"]


def test_a_reader_that_hangs_holds_up_neither_the_log_nor_the_watch_nor_the_others():
    world = World("slow", "quick")
    hung = threading.Event()
    release = threading.Event()

    def before(connection_id):
        if connection_id == "slow":
            hung.set()
            release.wait(30)
            raise ConnectionBusy("no answer in time")

    world.connections.before = before
    with pytest.raises(Fenced):
        with world.driver as driver:
            assert hung.wait(30)
            driver.text("The bell rang.")
            deadline = time.monotonic() + 30
            while len(world.connections.frames["quick"]) < 2 and time.monotonic() < deadline:
                time.sleep(0.005)
            assert len(world.connections.frames["quick"]) == 2
            world.cancel()
            assert world.stopped.wait(30)
            release.set()
            driver.raise_failure()


def test_a_reader_that_falls_far_behind_counts_as_busy_and_others_get_everything():
    reports = []
    release = threading.Event()
    connections = InMemoryConnections("slow", "quick")
    connections.before = lambda connection_id: release.wait(30) if connection_id == "slow" else None
    lanes = SubscriberQueues(
        connections, THREADS, lambda connection_id, outcome: reports.append((connection_id, outcome)), lambda: NOW_S
    )
    for n in range(MAX_WAITING_FRAMES + 2):
        for name in ("slow", "quick"):
            lanes.send(Post(Subscriber(name), (f"{name}-{n}",)))
        if n == 0:
            time.sleep(0.01)
    assert ("slow", "busy") in reports
    release.set()
    assert lanes.finish(timeout_s=30)
    assert connections.frames["quick"] == [f"quick-{n}" for n in range(MAX_WAITING_FRAMES + 2)]
    got = [int(frame.split("-")[1]) for frame in connections.frames["slow"]]
    assert got == sorted(got)
    assert len(got) < MAX_WAITING_FRAMES


def test_what_cannot_be_posted_in_time_is_given_up():
    release = threading.Event()
    connections = InMemoryConnections("slow")
    connections.before = lambda connection_id: release.wait(30)
    lanes = SubscriberQueues(connections, THREADS, lambda connection_id, outcome: None, lambda: NOW_S)
    lanes.send(Post(Subscriber("slow"), ("one", "two", "three")))
    assert not lanes.finish(timeout_s=0.01)
    release.set()
    assert lanes.finish(timeout_s=30)
    assert len(connections.frames["slow"]) <= 1
