"""What becomes of a request that nobody works on."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

import pytest

from cicada.answering.recovery import SWEEP_RESERVE_S, Recovery, Swept
from cicada.attempts.budgets import RequestBudget
from cicada.delivery.decide import LEASE_GRACE_S, LEASE_S, START_GRACE_S, append, end
from cicada.delivery.ports import Conflict, StoreFault
from cicada.delivery.record import LogEntry, RequestKey, RequestSpend
from cicada.errors import AnswerBlocked, RequestUnknown, WorkflowUnavailable
from cicada.protocol.events import Failed, StrategyFailure
from cicada.usage.accounts import user
from cicada.usage.reservations import Amount, Reservation
from tests.support.gates import MOST
from tests.support.memory import InMemoryConnections, InMemoryLog
from tests.support.questions import ACCEPTED, KEY, NOW_S, beginning, new_head

BROKEN = StrategyFailure(strategy="hybrid", code="stream_broken", reason="It broke off.")
LOST_S = LEASE_S + LEASE_GRACE_S + 1


def _raise(now, log, error):
    if now:
        log.after = lambda operation: None
        raise Conflict(log.requests[KEY][0], ()) if isinstance(error, Conflict) else error


class Workflow:
    def __init__(self):
        self.started = []
        self.error = None

    def start(self, key, strategy, failed=()):
        self.started.append((key, strategy, tuple(one.strategy for one in failed)))
        if self.error:
            raise self.error


class World:
    def __init__(self):
        self.log = InMemoryLog()
        self.connections = InMemoryConnections("c1")
        self.workflow = Workflow()
        self.now_s = NOW_S
        self.recovery = Recovery(
            self.log, self.connections, self.workflow, budget=RequestBudget(time_s=300), now_s=lambda: self.now_s
        )

    def accept(self, key=KEY):
        self.log.create(new_head("c1", key=key, lease_until=NOW_S + START_GRACE_S), ACCEPTED)

    def begin(self, strategy="rag", failed=(), execution="x1"):
        head = self.log.head(KEY)
        commit = beginning(head, strategy, failed, execution=execution, now_s=self.now_s)
        return self.log.commit(head, commit)

    def recover(self, by="sweep"):
        return self.recovery.recover(self.log.head(KEY), by)

    def sweep(self, remaining_s=60.0):
        return self.recovery.sweep(lambda: remaining_s)

    def told(self):
        return [json.loads(frame) for frame in self.connections.frames["c1"]]


@pytest.fixture
def world():
    world = World()
    world.accept()
    return world


def test_a_request_that_is_worked_on_is_left_alone(world):
    head = world.begin()
    world.now_s += LEASE_S + LEASE_GRACE_S
    assert world.recover() == head
    assert world.workflow.started == []


def test_a_request_that_was_never_started_is_started_where_it_enters(world):
    world.now_s += START_GRACE_S + 1
    assert world.recover().takeovers == 1
    assert world.workflow.started == [(KEY, "rag", ())]


def test_a_lost_worker_is_replaced_at_its_own_strategy_and_what_failed_before_is_not_tried_again(world):
    world.begin("hybrid")
    world.begin("rag", (BROKEN,))
    world.now_s += LOST_S
    world.recover()
    assert world.workflow.started == [(KEY, "rag", ("hybrid",))]
    after = world.begin("rag", (BROKEN,), execution="x2")
    assert [(one.strategy, one.code) for one in after.failed] == [("hybrid", "stream_broken"), ("rag", "worker_lost")]


def test_a_request_is_taken_up_once_by_itself_and_then_ended(world):
    world.begin()
    world.now_s += LOST_S
    world.recover()
    world.now_s += START_GRACE_S + 1
    assert world.recover().state == "failed"
    assert [(frame["code"], frame["retryable"]) for frame in world.told()] == [("worker_lost", True)]
    assert len(world.workflow.started) == 1


def test_a_taken_up_request_that_is_never_started_either_says_that_it_could_not_be_started(world):
    for _ in range(2):
        world.now_s += START_GRACE_S + 1
        world.recover()
    assert [frame["code"] for frame in world.told()] == ["workflow_unavailable"]


def test_a_request_past_its_time_is_ended_and_not_started_again(world):
    world.now_s += 301
    assert world.recover().state == "failed"
    assert world.workflow.started == []


def test_a_start_that_fails_ends_the_request_and_tells_what_was_tried(world):
    world.begin("hybrid")
    world.begin("rag", (BROKEN,))
    world.now_s += LOST_S
    world.workflow.error = WorkflowUnavailable("throttled")
    assert world.recover().state == "failed"
    (frame,) = world.told()
    assert frame["code"] == "workflow_unavailable"
    assert [(one["strategy"], one["code"]) for one in frame["failed"]] == [
        ("hybrid", "stream_broken"),
        ("rag", "worker_lost"),
    ]


def test_two_that_find_the_same_orphan_start_it_once(world):
    world.begin()
    world.now_s += LOST_S
    head = world.log.head(KEY)
    world.recovery.recover(head, "sweep")
    world.now_s += 1
    world.recovery.recover(head, "resume")
    assert len(world.workflow.started) == 1


@pytest.mark.parametrize("error", [StoreFault("no answer"), Conflict(new_head(), ())])
def test_a_take_over_whose_acknowledgement_was_lost_is_started_all_the_same(world, error):
    world.begin()
    world.now_s += LOST_S
    world.log.after = lambda operation: _raise(operation == "take_up", world.log, error)
    assert world.recover().takeovers == 1
    assert len(world.workflow.started) == 1


def test_an_orphan_whose_worker_writes_again_meanwhile_is_not_ended(world):
    world.begin()
    world.now_s += LOST_S
    head = replace(world.log.head(KEY), takeovers=1)
    world.log.requests[KEY] = (head, world.log.requests[KEY][1])

    def before(operation):
        if operation == "commit":
            world.log.before = lambda operation: None
            stored, entries = world.log.requests[KEY]
            world.log.requests[KEY] = (
                replace(stored, lease_until=world.now_s + 30, last_seq=3),
                (*entries, entries[-1]),
            )

    world.log.before = before
    world.recover()
    assert world.log.head(KEY).state == "open"


def test_a_sweep_takes_up_every_orphan_and_nothing_else(world):
    keys = [RequestKey("mara", str(UUID(int=n))) for n in range(5)]
    for key in keys:
        world.accept(key)
    finished = world.log.head(keys[0])
    world.log.commit(finished, append(finished, [Failed(code="x", message="y", retryable=False)]))
    world.begin()
    world.now_s += START_GRACE_S + 1
    assert world.sweep() == Swept(looked_at=5, restarted=4, ended=0)
    assert {key for key, _, _ in world.workflow.started} == set(keys[1:])
    assert world.sweep() == Swept(looked_at=5, restarted=0, ended=0)


def test_a_sweep_deletes_what_is_left_of_a_blocked_answer_once_nothing_more_can_come(world):
    head = world.begin()
    blocked = end(head, Failed.of(AnswerBlocked()), world.log.read(KEY)[1])
    world.log.commit(head, blocked)
    for after_s, left in ((START_GRACE_S + 1, True), (LOST_S, False)):
        world.now_s = NOW_S + after_s
        assert world.sweep() == Swept(looked_at=1)
        assert world.log.head(KEY).withdrawn is left
    assert world.sweep() == Swept()


def test_a_sweep_settles_what_a_lost_process_left_reserved(world):
    key = RequestKey("mara", str(UUID(int=7)))
    reserved = Reservation("2027-01", 15, MOST, (user("mara"),))
    world.log.create(new_head("c1", key=key, reservation=reserved), ACCEPTED)
    head = world.log.head(key)
    begun = world.log.commit(head, beginning(head, "rag", execution="x1", now_s=NOW_S))
    ending = append(begun, [Failed(code="x", message="y", retryable=False)])
    world.log.commit(begun, replace(ending, spent=RequestSpend(1, 900, 100, 0.02, 0.02)))
    world.now_s += START_GRACE_S + 1
    assert world.sweep().settled == 0  # its worker may still do so
    world.now_s = NOW_S + LOST_S
    assert (world.sweep().settled, world.sweep().settled) == (1, 0)
    assert world.log.settled == {key: Amount(1_000, 20_000)}


def test_a_sweep_leaves_new_requests_alone(world):
    assert world.sweep() == Swept()


def test_a_sweep_that_runs_out_of_time_leaves_the_rest_to_the_next(world):
    world.now_s += START_GRACE_S + 1
    assert world.sweep(SWEEP_RESERVE_S - 1) == Swept()
    assert world.log.head(KEY).takeovers == 0


def test_a_request_that_cannot_be_taken_up_now_does_not_stop_the_sweep(world):
    other = RequestKey("mara", str(UUID(int=7)))
    world.accept(other)
    world.now_s += START_GRACE_S + 1

    def first(operation):
        if operation == "take_up":
            world.log.before = once
            raise StoreFault("throttled")

    def once(operation):
        world.log.before = lambda operation: None
        raise StoreFault("throttled")

    world.log.before = first
    swept = world.sweep()
    assert (swept.restarted, swept.failed) == (1, 1)
    assert world.sweep().restarted == 1


def test_a_request_that_cannot_be_read_by_this_release_does_not_stop_the_sweep(world, caplog):
    other = RequestKey("mara", str(UUID(int=7)))
    world.accept(other)
    head, _ = world.log.requests[KEY]
    world.log.requests[KEY] = (head, (LogEntry(1, 0, '{"type":"of another release"}'),))
    world.now_s += START_GRACE_S + 1
    swept = world.sweep()
    assert (swept.restarted, swept.failed) == (1, 1)
    assert [line.request_id for line in caplog.records if line.step == "fault"] == [KEY.request_id]


def test_every_recovery_is_counted(world):
    counted: list[str] = []
    recovery = Recovery(
        world.log,
        world.connections,
        world.workflow,
        on_recovered=counted.append,
        on_failed=lambda: counted.append("failed"),
        now_s=lambda: world.now_s,
    )
    for _ in range(3):
        world.now_s += START_GRACE_S + 1
        recovery.recover(world.log.head(KEY), "resume")
    assert counted == ["restarted", "failed", "ended"]


def test_a_request_that_is_deleted_during_the_sweep_is_passed_over(world):
    world.now_s += START_GRACE_S + 1

    def before(operation):
        if operation == "head":
            raise RequestUnknown(KEY.request_id)

    world.log.before = before
    assert world.sweep() == Swept(looked_at=1)
