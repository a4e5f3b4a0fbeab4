"""What the message processor does with each action."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cicada import __version__
from cicada.answering.action_handlers import ActionHandlers
from cicada.answering.recovery import Recovery
from cicada.delivery.decide import LEASE_GRACE_S, LEASE_S, START_GRACE_S, append
from cicada.delivery.ports import ConnectionBusy, StoreFault
from cicada.delivery.record import MAX_SUBSCRIBERS, RequestKey, Subscriber
from cicada.errors import SpendingStopped, WorkflowUnavailable
from cicada.identity import Caller
from cicada.protocol.actions import parse_action
from cicada.protocol.events import Chunk, Complete, Metrics
from cicada.usage.limits import LimitState
from cicada.usage.reservations import NOTHING
from tests.support.gates import open_gate
from tests.support.memory import InMemoryConnections, InMemoryLog
from tests.support.profiles import profile_counter
from tests.support.questions import NOW_S, REQUEST_ID, beginning, following

RETENTION_S = 3600


class Workflow:
    def __init__(self):
        self.started = []
        self.error = None

    def start(self, key, strategy, failed=()):
        if self.error:
            raise self.error
        self.started.append((key.request_id, strategy))


class World:
    def __init__(self):
        self.log = InMemoryLog()
        self.connections = InMemoryConnections("c1", "c2", "c3", "c4", "c5")
        self.workflow = Workflow()
        self.now_s = NOW_S
        self.frames = 0
        self.counted: list[str] = []
        self.recovery = Recovery(self.log, self.connections, self.workflow, now_s=lambda: self.now_s)
        self.action_handlers = ActionHandlers(
            self.log,
            self.connections,
            self.recovery,
            profile_counter(lambda: self.now_s),
            open_gate(self.log, now_s=lambda: self.now_s),
            retention_s=RETENTION_S,
            on_accepted=lambda: self.counted.append("accepted"),
            on_failed=lambda: self.counted.append("failed"),
            now_s=lambda: self.now_s,
        )

    def send(self, action, *, connection="c1", subject="mara", frame=None, expires_at=None, **fields):
        self.frames += 1
        body = {"action": action} | ({} if action == "ping" else {"requestId": REQUEST_ID}) | fields
        caller = Caller(subject, connection, frame or f"frame-{self.frames}", expires_at=expires_at)
        return json.loads(self.action_handlers.handle(parse_action(json.dumps(body)), caller))

    def ask(self, **fields):
        return self.send("ask", **({"query": "Who locked the boathouse?"} | fields))

    def pushed(self, connection="c1"):
        return [json.loads(frame) for frame in self.connections.frames[connection]]

    @property
    def key(self):
        return RequestKey("mara", REQUEST_ID)

    def begin(self):
        head = self.log.head(self.key)
        commit = beginning(head, execution="x1", worker="w1")
        return self.log.commit(head, commit)

    def append(self, *events):
        head = self.log.head(self.key)
        return self.log.commit(head, append(head, events))


CHUNK = Chunk(attempt=1, content="Mara did.")
COMPLETE = Complete(
    attempt=1,
    answered_by="rag",
    attempted=("rag",),
    model="m",
    grounded=True,
    stop_reason="end_turn",
    metrics=Metrics(latency_ms=1, attempt_ms=1, first_chunk_ms=1),
)


@pytest.fixture
def world():
    return World()


def test_what_a_question_is_limited_to_is_stored_with_it(world):
    limits = {"collections": ["a"], "episodes": ["ep1"], "documents": ["b/c.md"], "sections": ["One > Two"]}
    world.ask(**limits)
    question = world.log.head(world.key).question
    assert {name: list(getattr(question, name)) for name in limits} == limits
    again = world.ask(**limits | {"documents": ["other.md"]})
    assert again["code"] == "request_conflict"


def test_an_ask_is_accepted_with_its_route_and_starts_the_workflow(world):
    reply = world.ask()
    assert (reply["type"], reply["seq"], reply["requestId"]) == ("accepted", 1, REQUEST_ID)
    assert (reply["route"], reply["strategy"]) == ("rag", "rag")
    assert reply["reasoning"]
    assert world.workflow.started == [(REQUEST_ID, "rag")]
    assert world.log.head(world.key).subscribers == following("c1")


def test_no_word_of_a_question_is_logged(world, caplog):
    caplog.set_level("DEBUG")
    reply = world.ask(query="オズウィンは十時五分に何を見ましたか。")
    assert any(record.message == "request accepted" for record in caplog.records)
    logged = " ".join(str(vars(record)) for record in caplog.records)
    assert not set("オズウィン十時五分何見") & set(logged)
    assert reply["reasoning"] not in logged


def test_small_talk_enters_at_direct(world):
    assert world.ask(query="Hello there!")["strategy"] == "direct"
    assert world.workflow.started == [(REQUEST_ID, "direct")]


def test_a_route_enters_at_its_own_strategy_where_the_chain_has_it(world):
    reply = world.ask(query="Compare the first and the second episode, and explain how the alibis differ.")
    assert (reply["route"], reply["strategy"]) == ("hybrid", "hybrid")


def test_the_same_request_twice_is_one_request(world):
    first = world.ask()
    second = world.ask()
    assert second == first
    assert len(world.workflow.started) == 1


def test_a_repeated_ask_from_another_tab_is_told_all_that_has_happened(world):
    first = world.ask()
    world.begin()
    world.append(CHUNK)
    assert world.ask(connection="c2") == first
    assert [frame["seq"] for frame in world.pushed("c2")] == [2, 3]
    assert world.log.head(world.key).subscribers == following("c1", "c2")


def test_the_same_request_id_for_another_question_is_refused(world):
    world.ask()
    reply = world.ask(query="Who opened it?")
    assert (reply["type"], reply["seq"], reply["code"]) == ("error", 0, "request_conflict")
    assert reply["requestId"] == REQUEST_ID


def test_a_create_whose_acknowledgement_was_lost_still_starts_the_workflow(world):
    world.log.after = lambda operation: (_ for _ in ()).throw(StoreFault("no answer"))
    assert world.ask(frame="f1")["code"] == "delivery_unavailable"
    world.log.after = lambda operation: None
    assert world.ask(frame="f1")["type"] == "accepted"
    assert len(world.workflow.started) == 1


def test_a_request_whose_workflow_cannot_be_started_is_ended_at_once(world):
    world.workflow.error = WorkflowUnavailable("throttled")
    assert world.ask()["type"] == "accepted"
    assert world.log.head(world.key).state == "failed"
    assert [frame["code"] for frame in world.pushed()] == ["workflow_unavailable"]


def test_a_resume_replays_what_was_missed_and_then_follows(world):
    world.ask()
    world.begin()
    world.append(CHUNK)
    reply = world.send("resume", connection="c2", after=1)
    assert (reply["type"], reply["outcome"], reply["lastSeq"], reply["seq"]) == ("resumed", "live", 3, 0)
    assert [frame["seq"] for frame in world.pushed("c2")] == [2, 3]
    assert world.append(CHUNK).subscribers == following("c1", "c2")


def test_a_resume_of_a_finished_answer_replays_its_end_and_subscribes_to_nothing(world):
    world.ask()
    world.begin()
    world.append(CHUNK, COMPLETE)
    reply = world.send("resume", connection="c2", after=0)
    assert (reply["outcome"], reply["lastSeq"]) == ("finished", 4)
    assert [frame["type"] for frame in world.pushed("c2")] == ["accepted", "attempt", "chunk", "complete"]
    assert world.log.head(world.key).subscribers == following("c1")


def test_an_event_that_comes_between_subscribing_and_reading_is_not_lost(world):
    world.ask()
    world.begin()

    def after(operation):
        if operation == "set_subscribers":
            world.log.after = lambda operation: None
            assert world.append(CHUNK).subscribers == following("c1", "c2")

    world.log.after = after
    world.send("resume", connection="c2", after=2)
    assert [frame["seq"] for frame in world.pushed("c2")] == [3]


@pytest.mark.parametrize("action", ["resume", "cancel"])
def test_another_users_request_is_unknown(world, action):
    world.ask()
    world.begin()
    reply = world.send(action, subject="eve", connection="c2")
    assert reply.get("outcome", reply.get("code")) in ("unknown", "request_unknown")
    assert world.pushed("c2") == []
    assert world.log.head(world.key).subscribers == following("c1")
    assert world.log.head(world.key).state == "open"


def test_two_users_may_use_the_same_request_id(world):
    world.ask()
    assert world.ask(subject="eve", query="Something else?")["type"] == "accepted"
    assert len(world.workflow.started) == 2


def test_an_expired_request_says_so_however_it_is_touched(world):
    world.ask()
    world.now_s += RETENTION_S
    assert world.send("resume")["outcome"] == "expired"
    assert world.send("cancel")["code"] == "request_expired"
    assert world.ask()["code"] == "request_expired"


def test_the_newest_subscribers_are_kept(world):
    world.ask()
    world.begin()
    for connection in ("c2", "c3", "c4"):
        world.send("resume", connection=connection, after=2)
    subscribers = world.log.head(world.key).subscribers
    assert len(subscribers) == MAX_SUBSCRIBERS
    assert subscribers == following("c2", "c3", "c4")


def test_subscribers_that_change_meanwhile_are_decided_anew(world):
    world.ask()
    world.begin()
    raced: list[str] = []

    def before(operation):
        if operation == "set_subscribers" and not raced:
            raced.append(operation)
            world.log.set_subscribers(world.log.head(world.key), following("c1", "c5"))

    world.log.before = before
    world.send("resume", connection="c2", after=2)
    assert world.log.head(world.key).subscribers == following("c1", "c5", "c2")


def test_a_cancel_ends_the_answer_for_everybody_and_is_told_so(world):
    world.ask()
    world.begin()
    world.send("resume", connection="c2", after=2)
    reply = world.send("cancel")
    assert (reply["type"], reply["code"], reply["seq"]) == ("error", "cancelled", 3)
    assert world.pushed("c2")[-1] == reply
    assert world.log.head(world.key).state == "failed"


def test_a_cancelled_request_is_settled_at_once_unless_its_worker_knows_what_it_spent(world):
    world.ask()
    world.send("cancel")
    assert world.log.settled == {world.key: NOTHING}
    other = "00000000-0000-4000-8000-000000000001"
    world.send("ask", requestId=other, query="Who locked the boathouse?")
    key = RequestKey("mara", other)
    head = world.log.head(key)
    world.log.commit(head, replace(beginning(head, execution="x1", worker="w1"), lease_until=NOW_S + LEASE_S))
    world.send("cancel", requestId=other)
    assert key not in world.log.settled


def test_a_cancel_that_comes_too_late_is_told_what_came_first(world):
    world.ask()
    world.begin()
    world.append(CHUNK, COMPLETE)
    reply = world.send("cancel")
    assert (reply["type"], reply["seq"]) == ("complete", 4)


def test_a_cancel_that_races_with_the_answer_is_decided_by_the_log(world):
    world.ask()
    world.begin()
    raced: list[str] = []

    def before(operation):
        if operation == "commit" and not raced:
            raced.append(operation)
            world.append(CHUNK, COMPLETE)

    world.log.before = before
    assert world.send("cancel")["type"] == "complete"


def test_an_accepted_request_that_was_never_started_is_started_by_a_resume(world):
    world.ask()
    world.workflow.started.clear()
    world.now_s += START_GRACE_S - 1
    world.send("resume")
    assert world.workflow.started == []
    world.now_s += 2
    assert world.send("resume")["outcome"] == "live"
    assert world.workflow.started == [(REQUEST_ID, "rag")]


def test_a_request_that_was_never_started_is_started_once_however_many_resume(world):
    world.ask()
    world.workflow.started.clear()
    world.now_s += START_GRACE_S + 1
    for connection in ("c1", "c2", "c3", "c1"):
        world.send("resume", connection=connection)
    assert len(world.workflow.started) == 1


def test_a_start_that_was_only_seen_to_fail_ends_nothing(world):
    def start(key, strategy, failed=()):
        world.begin()
        raise WorkflowUnavailable("no answer")

    world.workflow.start = start
    world.ask()
    assert world.log.head(world.key).state == "open"


def test_a_replay_that_takes_too_long_is_cut_short_and_can_be_gone_on_with(world):
    world.ask()
    world.begin()
    world.append(CHUNK, CHUNK, CHUNK, COMPLETE)
    ticks = iter(range(0, 1000, 2))
    slow = ActionHandlers(
        world.log,
        world.connections,
        world.recovery,
        profile_counter(),
        open_gate(world.log),
        retention_s=RETENTION_S,
        now_s=lambda: world.now_s,
        monotonic=lambda: next(ticks),
    )
    world.action_handlers = slow
    first = world.send("resume", connection="c2", after=0)
    assert (first["outcome"], first["lastSeq"]) == ("live", 6)
    got = [frame["seq"] for frame in world.pushed("c2")]
    assert got == list(range(1, len(got) + 1))
    assert len(got) < 6
    while world.send("resume", connection="c2", after=got[-1])["outcome"] != "finished":
        got = [frame["seq"] for frame in world.pushed("c2")]
    assert [frame["seq"] for frame in world.pushed("c2")] == [1, 2, 3, 4, 5, 6]


def test_a_replay_that_the_connection_refuses_is_not_called_finished(world):
    world.ask()
    world.begin()
    world.append(CHUNK, COMPLETE)

    def before(connection_id):
        raise ConnectionBusy("full")

    world.connections.before = before
    assert world.send("resume", connection="c2", after=0)["outcome"] == "live"


def test_a_request_that_lost_its_worker_is_taken_up_by_a_resume_once_and_then_ended(world):
    world.ask()
    world.begin()
    world.workflow.started.clear()
    world.now_s += LEASE_S + LEASE_GRACE_S
    world.send("resume", after=2)
    assert world.workflow.started == []
    world.now_s += 1
    assert world.send("resume", connection="c2", after=2)["outcome"] == "live"
    assert world.workflow.started == [(REQUEST_ID, "rag")]
    world.now_s += START_GRACE_S + 1
    assert world.send("resume", connection="c2", after=2)["outcome"] == "finished"
    assert {frame["code"] for frame in world.pushed("c2")} == {"worker_lost"}
    assert len(world.workflow.started) == 1


def test_a_ping_is_answered(world):
    assert world.send("ping") == {"requestId": None, "seq": 0, "type": "pong", "release": __version__}


@pytest.mark.parametrize("operation", ["create", "head", "read"])
def test_a_store_that_is_down_refuses_openly(world, operation):
    if operation != "create":
        world.ask()

    def before(called):
        if called == operation:
            raise StoreFault("down")

    world.log.before = before
    reply = world.ask() if operation == "create" else world.send("resume")
    assert (reply["type"], reply["seq"], reply["code"], reply["retryable"]) == (
        "error",
        0,
        "delivery_unavailable",
        True,
    )


def test_what_a_user_asked_in_one_tenant_is_unknown_in_another(world):
    ask = parse_action(json.dumps({"action": "ask", "requestId": REQUEST_ID, "query": "Who?"}))
    resume = parse_action(json.dumps({"action": "resume", "requestId": REQUEST_ID}))
    world.action_handlers.handle(ask, Caller("mara", "c1", "f1", "club"))
    assert (
        json.loads(world.action_handlers.handle(resume, Caller("mara", "c2", "f2", "school")))["outcome"] == "unknown"
    )
    assert json.loads(world.action_handlers.handle(resume, Caller("mara", "c2", "f3", "club")))["outcome"] == "live"


# --- tokens that expire ---


def test_a_subscriber_is_kept_with_the_expiry_of_its_token(world):
    world.ask(expires_at=NOW_S + 60)
    world.begin()
    world.send("resume", connection="c2", after=2, expires_at=NOW_S + 90)
    subscribers = world.log.head(world.key).subscribers
    assert subscribers == (Subscriber("c1", NOW_S + 60), Subscriber("c2", NOW_S + 90))


def test_an_action_during_which_the_token_expires_is_refused_and_can_be_sent_again(world):
    def after(operation):
        if operation == "create":
            world.now_s = NOW_S + 1

    world.log.after = after
    refused = world.ask(expires_at=NOW_S + 1)
    assert (refused["type"], refused["seq"], refused["code"]) == ("error", 0, "unauthorized")
    assert refused["requestId"] == REQUEST_ID
    assert world.ask(connection="c2", expires_at=NOW_S + 600)["type"] == "accepted"
    assert len(world.workflow.started) == 1


@pytest.mark.parametrize("posted", [0, 1, 2, 3])
def test_a_replay_ends_when_the_token_expires_and_goes_on_with_a_fresh_one(world, posted):
    world.ask()
    world.begin()
    world.append(*(CHUNK.model_copy(update={"content": f"{n} "}) for n in range(3)))
    world.connections.before = lambda connection_id: setattr(world, "now_s", world.now_s + 1)
    refused = world.send("resume", connection="c2", after=2, expires_at=NOW_S + posted)
    *replayed, last = world.pushed("c2")
    if posted == 3:
        replayed.append(last)
    else:
        assert (last["seq"], last["code"], last["requestId"]) == (0, "unauthorized", None)
    assert [frame["seq"] for frame in replayed] == list(range(3, 3 + posted))
    assert refused["code"] == "unauthorized"
    resumed = world.send("resume", connection="c3", after=2 + posted, expires_at=NOW_S + 600)
    assert (resumed["outcome"], resumed["lastSeq"]) == ("live", 5)
    assert [frame["seq"] for frame in replayed + world.pushed("c3")] == [3, 4, 5]


def test_a_cancellation_reaches_no_subscriber_whose_token_has_expired(world):
    world.ask(expires_at=NOW_S + 60)
    world.begin()
    world.send("resume", connection="c2", after=2, expires_at=NOW_S + 600)
    world.now_s = NOW_S + 60
    assert world.send("cancel", connection="c3", expires_at=NOW_S + 600)["code"] == "cancelled"
    assert [frame["code"] for frame in world.pushed("c1")] == ["unauthorized"]
    assert [frame["code"] for frame in world.pushed("c2")] == ["cancelled"]
    assert world.log.head(world.key).subscribers == (Subscriber("c2", NOW_S + 600),)


def test_a_new_question_is_counted_once_however_often_it_comes():
    world = World()
    world.ask(frame="f1")
    world.ask(frame="f2")
    assert world.counted == ["accepted"]


def test_a_question_that_the_table_does_not_take_is_counted_as_failed():
    world = World()

    def before(operation):
        if operation == "create":
            raise StoreFault("throttled")

    world.log.before = before
    assert world.ask()["code"] == "delivery_unavailable"
    assert world.counted == ["failed"]


def test_a_question_that_a_limit_refuses_is_no_failure(monkeypatch):
    world = World()

    def refuse(*_, **__):
        raise SpendingStopped(LimitState(account="deployment", limit="stopped"))

    monkeypatch.setattr(world.log, "create", refuse)
    assert world.ask()["code"] == "spending_stopped"
    assert world.counted == []
