"""The promises of delivery under every order of events and faults: a state machine over the production deciders."""

from __future__ import annotations

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cicada.delivery.decide import begin, with_subscriber, without_subscriber
from cicada.delivery.outbox import Fenced, Outbox, OutboxLimits, Watch
from cicada.delivery.ports import Conflict, ConnectionGone
from cicada.delivery.posting import end_request
from cicada.delivery.record import Commit, RequestSpend, Subscriber
from cicada.errors import Cancelled
from cicada.protocol.events import Complete, Failed, Metrics, StrategyFailure
from tests.support.memory import InMemoryLog
from tests.support.questions import ACCEPTED, KEY, NOW_S, new_head

LIMITS = OutboxLimits(store_budget_s=1_000)
FAILED = StrategyFailure(strategy="rag", code="stream_broken", reason="It broke off.")


workers = st.integers(0, 3)
pieces = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)
fates = st.sampled_from(["lands", "lands", "lands", "acknowledgement lost", "lost"])
outcomes = st.sampled_from(["delivered", "delivered", "delivered", "answer lost", "busy"])


class Client:
    """What DESIGN asks of a client: apply each seq once and in order, drop what it has, drop text at a fallback."""

    def __init__(self):
        self.seq = 0
        self.early = {}
        self.text = ""
        self.attempts = set()
        self.terminal = []

    def receive(self, frame):
        event = json.loads(frame)
        if event["seq"] > self.seq:
            self.early.setdefault(event["seq"], event)
        while self.seq + 1 in self.early:
            self.seq += 1
            self.apply(self.early.pop(self.seq))

    def apply(self, event):
        if event["type"] == "fallback":
            self.text, self.attempts = "", set()
        elif event["type"] == "chunk":
            self.text += event["content"]
            self.attempts.add(event["attempt"])
        elif event["type"] in ("complete", "error"):
            self.terminal.append(event["type"])


class Sockets:
    """The open connections of a :class:`Delivery`, as a port."""

    def __init__(self, delivery):
        self.delivery = delivery

    def post(self, connection_id, frame):
        if connection_id not in self.delivery.sockets:
            raise ConnectionGone(connection_id)
        self.delivery.show(self.delivery.sockets[connection_id], frame)


class Worker:
    """One attempt: its outbox, and what it does next."""

    def __init__(self, head, begun):
        self.attempt = head.attempt
        self.outbox = Outbox(head, LIMITS, begun=begun)
        self.now = 0.0
        self.said = ""
        self.closed = False
        self.stopped = False
        self.posts = []


class Delivery(RuleBasedStateMachine):
    @initialize()
    def accept(self):
        self.log = InMemoryLog()
        self.log.create(new_head("c0"), ACCEPTED)
        self.workers = []
        self.clients = {0: Client()}
        self.sockets = {"c0": 0}
        self.clients[0].receive(new_head().frame(1, ACCEPTED))
        self.connection_count = 1

    # --- workers ---

    @rule(outcomes=st.lists(outcomes, max_size=3), failed=st.sampled_from([(), (FAILED,)]))
    def begin_attempt(self, outcomes, failed):
        head, _ = self.log.read(KEY)
        number = head.attempt + 1
        commit = begin(head, "rag", failed, execution="x", worker=f"w{number}", now_s=NOW_S)
        if not isinstance(commit, Commit):
            assert head.state != "open"
            return
        after = self.log.commit(head, commit)
        worker = Worker(after, commit)
        worker.posts = list(worker.outbox.opening())
        self.workers.append(worker)
        for outcome in outcomes:
            self.post(worker, outcome)

    def running(self, index):
        alive = [worker for worker in self.workers if not worker.stopped]
        return alive[index % len(alive)] if alive else None

    @rule(index=workers, piece=pieces, fate=fates, outcomes=st.lists(outcomes, max_size=3))
    def write_text(self, index, piece, fate, outcomes):
        """A piece of text arrives, is committed, and some of its posts go out at once."""
        worker = self.running(index)
        if worker and not worker.closed:
            worker.outbox.text(piece)
            worker.said += piece
            self.work(worker, fate, outcomes)

    @rule(index=workers)
    def finish_answer(self, index):
        worker = self.running(index)
        if worker and not worker.closed:
            worker.closed = True
            worker.outbox.close(
                Complete(
                    attempt=worker.attempt,
                    answered_by="rag",
                    attempted=("rag",),
                    model="m",
                    grounded=False,
                    stop_reason="end_turn",
                    metrics=Metrics(latency_ms=0, attempt_ms=0, first_chunk_ms=0),
                ),
                RequestSpend(),
            )

    @rule(index=workers, fate=fates, outcomes=st.lists(outcomes, max_size=3))
    def go_on(self, index, fate, outcomes):
        worker = self.running(index)
        if worker:
            self.work(worker, fate, outcomes)

    def work(self, worker, fate, outcomes):
        if not worker.posts:
            self.commit(worker, fate)
        for outcome in outcomes:
            self.post(worker, outcome)

    def commit(self, worker, fate):
        step = worker.outbox.next(worker.now)
        while not isinstance(step, Commit):
            if worker.outbox.idle:
                self.watch(worker)
                return
            worker.now += step.seconds
            step = worker.outbox.next(worker.now)
        if fate == "lost":
            worker.outbox.store_failed(worker.now)
            return
        try:
            head = self.log.commit(worker.outbox.head, step)
            if fate == "acknowledgement lost":
                worker.outbox.store_failed(worker.now)
                return
            worker.posts = list(worker.outbox.committed(head, worker.now))
        except Conflict as conflict:
            try:
                worker.posts = list(worker.outbox.conflicted(conflict.head, conflict.entries, worker.now))
            except Fenced:
                worker.stopped = True

    def watch(self, worker):
        try:
            worker.outbox.watched(self.log.head(KEY))
        except Fenced:
            worker.stopped = True

    @rule(index=workers, seconds=st.floats(0, 60))
    def wait(self, index, seconds):
        """Time passes for a worker that has nothing to write: it renews its lease, or finds out that it is late."""
        worker = self.running(index)
        if worker and worker.outbox.idle and not worker.posts:
            worker.now += seconds
            step = worker.outbox.next(worker.now)
            if isinstance(step, Watch):
                self.watch(worker)
            elif isinstance(step, Commit):
                self.commit(worker, "lands")

    def post(self, worker, outcome):
        if not worker.posts:
            return
        post = worker.posts.pop(0)
        connection_id = post.subscriber.connection_id
        client = self.sockets.get(connection_id)
        if client is None:
            assert worker.outbox.posted(connection_id, "gone", worker.now)
            head = self.log.head(KEY)
            self.log.set_subscribers(head, without_subscriber(head.subscribers, connection_id))
            return
        for frame in post.frames if outcome != "busy" else ():
            self.show(client, frame)
        worker.outbox.posted(connection_id, "delivered" if outcome == "delivered" else "busy", worker.now)

    @rule(index=workers)
    def kill(self, index):
        worker = self.running(index)
        if worker:
            worker.stopped = True

    @rule()
    def cancel(self):
        end_request(
            self.log,
            Sockets(self),
            self.log.head(KEY),
            Failed.of(Cancelled()),
            still=lambda head: True,
            now_s=lambda: NOW_S,
        )

    def show(self, client, frame):
        """I6: nothing is shown that is not stored."""
        event = json.loads(frame)
        _, entries = self.log.read(KEY)
        assert entries[event["seq"] - 1].frame(KEY.request_id) == frame
        self.clients[client].receive(frame)

    # --- connections ---

    @rule(client=st.integers(0, 2))
    def drop(self, client):
        self.sockets = {name: owner for name, owner in self.sockets.items() if owner != client}

    @rule(client=st.integers(0, 2), replayed=st.integers(0, 9))
    def resume(self, client, replayed):
        """A resume may itself break off after some frames."""
        state = self.clients.setdefault(client, Client())
        name = f"c{self.connection_count}"
        self.connection_count += 1
        self.sockets[name] = client
        head = self.log.head(KEY)
        self.log.set_subscribers(head, with_subscriber(head.subscribers, Subscriber(name)))
        _, entries = self.log.read(KEY)
        for entry in [entry for entry in entries if entry.seq > state.seq][:replayed]:
            self.show(client, entry.frame(KEY.request_id))

    # --- invariants ---

    @invariant()
    def the_log_has_no_gap_and_ends_once(self):
        head, entries = self.log.read(KEY)
        assert [entry.seq for entry in entries] == list(range(1, head.last_seq + 1))
        assert [entry.attempt for entry in entries] == sorted(entry.attempt for entry in entries)
        terminal = [i for i, entry in enumerate(entries) if json.loads(entry.body)["type"] in ("complete", "error")]
        assert terminal == ([len(entries) - 1] if head.state != "open" else [])

    @invariant()
    def a_client_shows_a_prefix_of_one_attempt(self):
        said = {worker.attempt: worker.said for worker in self.workers}
        for client in self.clients.values():
            assert len(client.attempts) <= 1
            assert len(client.terminal) <= 1
            for attempt in client.attempts:
                assert said[attempt].startswith(client.text)

    def teardown(self):
        """Once the faults are over, the last attempt finishes, and a client that resumes has the whole of it."""
        last = self.workers[-1] if self.workers else None
        finishing = last is not None and not last.stopped and self.log.head(KEY).state == "open"
        if finishing:
            assert last is not None
            if not last.closed:
                self.finish_answer(len([worker for worker in self.workers if not worker.stopped]) - 1)
            last.posts = []
            while not last.outbox.idle:
                self.commit(last, "lands")
                last.posts = []
        head, entries = self.log.read(KEY)
        whole = Client()
        for entry in entries:
            whole.receive(entry.frame(KEY.request_id))
        for client in self.clients.values():
            for entry in entries[client.seq :]:
                client.receive(entry.frame(KEY.request_id))
            assert (client.seq, client.text, client.terminal) == (len(entries), whole.text, whole.terminal)
        if finishing:
            assert head.state == "complete"
        if head.state == "complete":
            assert whole.text == next(worker.said for worker in self.workers if worker.attempt == head.attempt)


TestDelivery = Delivery.TestCase
TestDelivery.settings = settings(max_examples=100, stateful_step_count=50)
