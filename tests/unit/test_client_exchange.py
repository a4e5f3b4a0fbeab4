"""What the client says about a request, and when; and a simulation of it against a server over a bad wire."""

from __future__ import annotations

import json
import random
import uuid

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cicada import errors as codes
from cicada.protocol.actions import Ask, Cancel, ClientAction, Ping, Resume
from cicada.protocol.events import (
    Accepted,
    Chunk,
    Complete,
    Failed,
    LogEvent,
    Metrics,
    Pong,
    Refused,
    Reply,
    Resumed,
    dump_event,
    event_frame,
    reply_frame,
)
from cicada.usage.limits import LimitState
from cicada_client.errors import ConnectionLost, RequestExpired, RequestRefused, RequestUnknown, Unauthorized
from cicada_client.exchange import Exchange
from cicada_client.frames import EventFrame, parse_frame
from cicada_client.request_registry import ConnectionDead, RequestRegistry
from cicada_client.timing import Timing

REQUEST = "6f1ed002-ab5a-4c2b-b52d-6f2c9a3a7d10"
TIMING = Timing(reply_s=10, silence_s=20, gap_s=1, ping_s=100, attempts=3, backoff_base_s=1, backoff_cap_s=4)
ASK = Ask(requestId=REQUEST, query="Who rang the bell?")
ACCEPTED = Accepted(route="rag", confidence=0.9, reasoning="about the script", strategy="rag")
COMPLETE = Complete(
    attempt=1,
    answered_by="rag",
    attempted=("rag",),
    model="m",
    grounded=True,
    stop_reason="end_turn",
    metrics=Metrics(latency_ms=10, attempt_ms=9, first_chunk_ms=8),
)
CANCELLED = Failed.of(codes.Cancelled())


def event(seq: int, body: LogEvent) -> EventFrame:
    parsed = parse_frame(event_frame(REQUEST, seq, dump_event(body)))
    assert isinstance(parsed, EventFrame)
    return parsed


def chunk(seq: int) -> EventFrame:
    return event(seq, Chunk(attempt=1, content=f"{seq} "))


def resumed(outcome: str, last_seq: int = 0) -> Resumed:
    return Resumed.model_validate({"requestId": REQUEST, "outcome": outcome, "lastSeq": last_seq})


def asked() -> Exchange:
    """A request whose ask went out at 0."""
    exchange = Exchange(REQUEST, ASK, TIMING, random.Random(1))
    assert exchange.connected(0) == [ASK]
    return exchange


def running() -> Exchange:
    """One that was accepted at 1."""
    exchange = asked()
    exchange.event(event(1, ACCEPTED), 1)
    return exchange


def test_a_limit_is_not_tried_again_whatever_it_is_called() -> None:
    limit = LimitState(account="user", limit="requestsMinute", most=10, left=0, resets_at_ms=60_000)
    exchange = asked()
    assert exchange.refused(Refused.of(codes.LimitReached(limit), REQUEST), 1) == []
    assert isinstance(exchange.failure, RequestRefused)
    assert (exchange.failure.code, exchange.failure.limit) == ("limit_reached", limit)
    assert exchange.deadline is None

    newer = json.loads(reply_frame(Refused.of(codes.LimitReached(limit), REQUEST)))
    newer["limit"]["limit"] = "requestsWeek"
    reply = parse_frame(json.dumps(newer))
    assert isinstance(reply, Refused)
    assert reply.limit is None


def test_an_ask_whose_acceptance_is_unknown_is_sent_again_with_its_id() -> None:
    exchange = asked()
    exchange.disconnected()
    assert exchange.connected(5) == [ASK]


def test_an_accepted_request_is_resumed_after_the_last_event_applied() -> None:
    exchange = running()
    exchange.event(chunk(2), 2)
    exchange.event(chunk(4), 2)
    exchange.disconnected()
    assert exchange.connected(5) == [Resume(requestId=REQUEST, after=2)]


def test_any_event_shows_that_the_server_has_the_request() -> None:
    exchange = asked()
    exchange.event(chunk(2), 1)
    exchange.disconnected()
    assert exchange.connected(5) == [Resume(requestId=REQUEST, after=0)]


def test_a_gap_is_given_a_moment_and_then_filled_by_a_resume() -> None:
    exchange = running()
    exchange.event(chunk(3), 5)
    assert exchange.deadline == 6
    assert exchange.tick(5.9) == []
    assert exchange.tick(6) == [Resume(requestId=REQUEST, after=1)]


def test_a_gap_that_closes_by_itself_needs_no_resume() -> None:
    exchange = running()
    exchange.event(chunk(3), 5)
    exchange.event(chunk(2), 5.5)
    assert exchange.tick(7) == []


def test_a_replay_of_which_a_part_was_lost_is_asked_for_again_ever_more_patiently() -> None:
    exchange = running()
    exchange.event(chunk(3), 5)
    waits = []
    now = 5.0
    while exchange.failure is None:
        due = exchange.deadline
        assert due is not None
        waits.append(due - now)
        now = due
        if exchange.tick(now):
            exchange.resumed(resumed("live", 3), now)
    assert waits == [1, 2, 4, 8]
    assert isinstance(exchange.failure, ConnectionLost)


def test_connections_that_break_at_once_bring_no_storm_of_resumes() -> None:
    exchange = running()
    exchange.disconnected()
    assert exchange.connected(5) == [Resume(requestId=REQUEST, after=1)]
    exchange.event(chunk(2), 5.1)
    exchange.disconnected()
    assert exchange.connected(5.2) == []
    exchange.disconnected()
    assert exchange.connected(5.4) == []
    assert exchange.deadline == 6
    assert exchange.tick(5.9) == []
    assert exchange.tick(6) == [Resume(requestId=REQUEST, after=2)]


def test_a_resume_that_is_refused_is_not_repeated_within_the_pause() -> None:
    exchange = Exchange(REQUEST, None, Timing(gap_s=1, backoff_base_s=0.25), random.Random(1))
    exchange.connected(0)
    exchange.refused(Refused.of(codes.DeliveryUnavailable(), REQUEST), 0.1)
    assert exchange.deadline == 1
    assert exchange.tick(1) == [Resume(requestId=REQUEST, after=0)]


def test_a_cancel_waits_for_no_resume() -> None:
    exchange = running()
    exchange.disconnected()
    exchange.connected(5)
    exchange.disconnected()
    assert exchange.connected(5.2) == []
    assert exchange.cancel(5.3) == [Cancel(requestId=REQUEST)]
    assert exchange.tick(6) == []
    exchange.disconnected()
    assert exchange.connected(6.1) == [Cancel(requestId=REQUEST)]


def test_silence_on_an_open_request_leads_to_a_resume() -> None:
    exchange = running()
    assert exchange.deadline == 21
    assert exchange.tick(21) == [Resume(requestId=REQUEST, after=1)]
    exchange.resumed(resumed("live", 1), 22)
    assert exchange.deadline == 42


def test_a_finished_request_whose_end_did_not_arrive_is_resumed_again() -> None:
    exchange = running()
    exchange.tick(21)
    exchange.resumed(resumed("finished", 1), 22)
    assert exchange.tick(23) == [Resume(requestId=REQUEST, after=1)]


def test_a_connection_that_brings_no_reply_has_stalled() -> None:
    exchange = asked()
    assert exchange.tick(9.9) == []
    exchange.tick(10)
    assert exchange.stalled


def test_a_lost_reply_alone_does_not_condemn_the_connection() -> None:
    exchange = running()
    exchange.tick(21)  # a resume whose reply will not come
    exchange.event(chunk(2), 25)
    assert exchange.tick(31) == []
    assert not exchange.stalled
    assert exchange.deadline == 45


@pytest.mark.parametrize(("outcome", "failure"), [("unknown", RequestUnknown), ("expired", RequestExpired)])
def test_a_request_that_cannot_be_resumed_ends_with_a_clear_failure(outcome: str, failure: type[Exception]) -> None:
    exchange = Exchange(REQUEST, None, TIMING, random.Random(1))
    assert exchange.connected(0) == [Resume(requestId=REQUEST, after=0)]
    exchange.resumed(resumed(outcome), 1)
    assert isinstance(exchange.failure, failure)
    assert exchange.deadline is None


def test_an_ask_that_is_refused_for_good_ends_with_the_servers_words() -> None:
    exchange = asked()
    exchange.refused(Refused.of(codes.RequestConflict(), REQUEST, "query: differs"), 1)
    assert isinstance(exchange.failure, RequestRefused)
    assert exchange.failure.code == "request_conflict"
    assert "query: differs" in str(exchange.failure)


def test_an_expired_request_that_is_asked_again_has_expired() -> None:
    exchange = asked()
    exchange.refused(Refused.of(codes.RequestExpired(), REQUEST), 1)
    assert isinstance(exchange.failure, RequestExpired)


def test_a_refusal_that_may_pass_is_tried_again_after_a_pause_and_not_for_ever() -> None:
    exchange = asked()
    now = 0.0
    for _ in range(TIMING.attempts):
        exchange.refused(Refused.of(codes.DeliveryUnavailable(), REQUEST), now)
        assert exchange.deadline is not None
        assert now <= exchange.deadline <= now + TIMING.backoff_cap_s
        now = exchange.deadline
        assert exchange.tick(now) == [ASK]
    exchange.refused(Refused.of(codes.DeliveryUnavailable(), REQUEST), now)
    assert isinstance(exchange.failure, RequestRefused)


def test_the_gateways_own_failure_is_tried_again_where_a_reply_is_awaited() -> None:
    waiting, quiet = asked(), running()
    waiting.fault("Internal server error", 2)
    quiet.fault("Internal server error", 2)
    assert waiting.deadline is not None
    assert waiting.tick(waiting.deadline) == [ASK]
    assert quiet.deadline == 21


def test_the_gateways_failures_are_borne_as_long_as_others_get_on() -> None:
    exchange, now = asked(), 1.0
    for progress in (*range(1, 5 * TIMING.attempts), *[5 * TIMING.attempts] * 2):
        exchange.fault("Internal server error", now, progress)
        if exchange.failure is None:
            assert exchange.deadline is not None
            now = exchange.deadline
            assert exchange.tick(now) == [ASK]
    assert isinstance(exchange.failure, RequestRefused)


def test_an_ask_that_is_accepted_after_all_is_not_sent_again() -> None:
    exchange = asked()
    exchange.fault("Internal server error", 1)
    exchange.event(event(1, ACCEPTED), 1.1)
    assert exchange.tick(2) == []
    assert exchange.deadline == 1.1 + TIMING.silence_s


def test_a_refusal_that_answers_nothing_of_this_request_changes_nothing() -> None:
    exchange = running()
    exchange.refused(Refused.of(codes.InvalidMessage(), REQUEST), 2)
    assert exchange.failure is None


def test_cancel_waits_until_the_server_has_the_request_lest_it_overtake_the_ask() -> None:
    exchange = asked()
    assert exchange.cancel(0.5) == []
    assert exchange.event(event(1, ACCEPTED), 1) == [Cancel(requestId=REQUEST)]
    exchange.event(event(2, CANCELLED), 2)
    assert exchange.ended
    assert exchange.log[-1].event == CANCELLED


def test_a_second_cancel_sends_nothing() -> None:
    exchange = running()
    assert exchange.cancel(2) == [Cancel(requestId=REQUEST)]
    assert exchange.cancel(3) == []


def test_a_cancel_whose_reply_comes_before_other_events_waits_for_them() -> None:
    exchange = running()
    exchange.cancel(2)
    exchange.event(event(4, CANCELLED), 3)
    assert not exchange.ended
    assert exchange.tick(4) == [Resume(requestId=REQUEST, after=1)]
    exchange.event(chunk(2), 5)
    exchange.event(chunk(3), 5)
    assert exchange.ended


def test_a_cancel_without_a_connection_is_sent_on_the_next() -> None:
    exchange = running()
    exchange.disconnected()
    assert exchange.cancel(2) == []
    assert exchange.connected(5) == [Cancel(requestId=REQUEST)]


def test_a_cancel_is_sent_again_on_a_new_connection() -> None:
    exchange = running()
    exchange.cancel(2)
    exchange.disconnected()
    assert exchange.connected(5) == [Cancel(requestId=REQUEST)]


def test_a_cancelled_request_that_the_server_never_got_ends_as_cancelled() -> None:
    exchange = asked()
    exchange.cancel(0.5)
    exchange.disconnected()
    assert exchange.connected(5) == [Cancel(requestId=REQUEST)]
    exchange.refused(Refused.of(codes.RequestUnknown(), REQUEST), 6)
    assert [(frame.seq, frame.event) for frame in exchange.log] == [(0, CANCELLED)]
    assert exchange.log[0].raw["code"] == "cancelled"


def test_a_request_that_is_cancelled_before_it_was_sent_is_never_sent() -> None:
    exchange = Exchange(REQUEST, ASK, TIMING, random.Random(1))
    assert exchange.cancel(0) == []
    assert exchange.ended
    assert exchange.log[-1].event == CANCELLED


def test_an_idle_connection_is_pinged_and_given_up_if_nothing_answers() -> None:
    board = RequestRegistry(TIMING, lambda _: None)
    board.opened(0)
    assert board.deadline() == 100
    board.tick(100)
    assert list(board.outgoing) == [Ping()]
    board.received(reply_frame(Pong()), 101)
    assert board.deadline() == 201
    board.tick(201)
    with pytest.raises(ConnectionDead):
        board.tick(211)


def test_a_connection_retires_at_its_age_and_lets_an_open_request_end_first() -> None:
    timing = Timing(retire_s=50, retire_grace_s=10)
    board = RequestRegistry(timing, lambda _: None)
    board.opened(0)
    assert not board.retired(49)
    assert board.retired(50)
    board.add(Exchange(REQUEST, ASK, timing, random.Random(1)), 49)
    assert not board.retired(59)
    assert board.retired(60)


def test_a_token_that_is_not_accepted_any_more_concerns_the_whole_connection() -> None:
    board = RequestRegistry(TIMING, lambda _: None)
    board.opened(0)
    with pytest.raises(Unauthorized):
        board.received(reply_frame(Refused.of(codes.Unauthorized())), 1)


class _Server:
    """Keeps the contract of delivery, for any number of requests and one connection at a time."""

    def __init__(self) -> None:
        self.logs: dict[str, list[LogEvent]] = {}
        self.tailed: set[str] = set()
        """The requests that the current connection is a subscriber of."""

    def answer(self, action: ClientAction) -> list[str]:
        """The frames that an action leads to: pushes, then the reply."""
        match action:
            case Ping():
                return [reply_frame(Pong())]
            case Ask(request_id=request_id):
                pushes = self._tail(request_id, 1) if request_id in self.logs else []
                self.logs.setdefault(request_id, [ACCEPTED])
                self.tailed.add(request_id)
                return [*pushes, self._frame(request_id, 1)]
            case Resume(request_id=request_id) | Cancel(request_id=request_id) if request_id not in self.logs:
                reply: Reply = Refused.of(codes.RequestUnknown(), request_id)
                if isinstance(action, Resume):
                    reply = Resumed(request_id=request_id, outcome="unknown")
                return [reply_frame(reply)]
            case Resume(request_id=request_id, after=after):
                outcome = "finished" if self.ended(request_id) else "live"
                last_seq = len(self.logs[request_id])
                reply = Resumed.model_validate({"requestId": request_id, "outcome": outcome, "lastSeq": last_seq})
                return [*self._tail(request_id, after), reply_frame(reply)]
            case Cancel(request_id=request_id):
                if not self.ended(request_id):
                    self.logs[request_id].append(CANCELLED)
                return [self._frame(request_id, len(self.logs[request_id]))]
        raise AssertionError(f"not expected: {action}")

    def append(self, request_id: str, body: LogEvent) -> list[str]:
        """Persist, then push."""
        self.logs[request_id].append(body)
        return [self._frame(request_id, len(self.logs[request_id]))] if request_id in self.tailed else []

    def ended(self, request_id: str) -> bool:
        return self.logs[request_id][-1] in (COMPLETE, CANCELLED)

    def open(self) -> list[str]:
        return [request_id for request_id in self.logs if not self.ended(request_id)]

    def _tail(self, request_id: str, after: int) -> list[str]:
        self.tailed.add(request_id)
        return [self._frame(request_id, seq) for seq in range(after + 1, len(self.logs[request_id]) + 1)]

    def _frame(self, request_id: str, seq: int) -> str:
        return event_frame(request_id, seq, dump_event(self.logs[request_id][seq - 1]))


class BadWire(RuleBasedStateMachine):
    """The request registry and exchanges against the server: frames lost, doubled, reordered; connections cut."""

    @initialize(seed=st.integers())
    def start(self, seed: int) -> None:
        self.timing = Timing(reply_s=5, silence_s=7, gap_s=1, ping_s=30, attempts=10_000)
        self.rng = random.Random(seed)
        self.server = _Server()
        self.board = RequestRegistry(self.timing, lambda _: None)
        self.exchanges: list[Exchange] = []
        self.cancelled: set[str] = set()
        self.resumed_at: dict[str, float] = {}
        self.to_server: list[ClientAction] = []
        self.to_client: list[str] = []
        self.now = 0.0

    @rule()
    def ask(self) -> None:
        request_id = str(uuid.UUID(int=self.rng.getrandbits(128)))
        exchange = Exchange(request_id, Ask(requestId=request_id, query="?"), self.timing, self.rng)
        self.exchanges.append(exchange)
        self.board.add(exchange, self.now)
        self._flush()

    @precondition(lambda self: self.board.opened_at is None)
    @rule()
    def connect(self) -> None:
        self.board.opened(self.now)
        self._flush()

    @precondition(lambda self: self.board.opened_at is not None)
    @rule()
    def cut(self) -> None:
        self.board.lost()
        self.server.tailed.clear()
        self.to_client.clear()  # what was sent to the server may still get there

    @precondition(lambda self: self.to_server)
    @rule(lost=st.booleans(), faulty=st.booleans())
    def an_action_is_handled(self, lost: bool, faulty: bool) -> None:
        action = self.to_server.pop(0)
        if lost:
            return
        frames = self.server.answer(action)
        if faulty:  # the function did its work, and the gateway failed to say so
            frames[-1] = '{"message":"Internal server error"}'
        if self.board.opened_at is not None:
            self.to_client += frames
        else:
            self.server.tailed.clear()

    @precondition(lambda self: self.server.open())
    @rule(pick=st.randoms(use_true_random=False), last=st.booleans())
    def an_answer_goes_on(self, pick: random.Random, last: bool) -> None:
        request_id = pick.choice(self.server.open())
        body = COMPLETE if last else Chunk(attempt=1, content=f"{len(self.server.logs[request_id])} ")
        self.to_client += self.server.append(request_id, body)

    @precondition(lambda self: self.to_client)
    @rule(pick=st.randoms(use_true_random=False), how=st.sampled_from(["first", "any", "lost", "doubled"]))
    def a_frame_arrives(self, pick: random.Random, how: str) -> None:
        index = 0 if how == "first" else pick.randrange(len(self.to_client))
        text = self.to_client[index] if how == "doubled" else self.to_client.pop(index)
        if how != "lost" and self.board.opened_at is not None:
            self.board.received(text, self.now)
            self._flush()

    @precondition(lambda self: any(not exchange.ended for exchange in self.exchanges))
    @rule(pick=st.randoms(use_true_random=False))
    def cancel(self, pick: random.Random) -> None:
        exchange = pick.choice([exchange for exchange in self.exchanges if not exchange.ended])
        self.cancelled.add(exchange.request_id)
        self.board.cancel(exchange.request_id, self.now)
        self._flush()

    @rule(seconds=st.floats(0.1, 10))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self._tick()

    def _tick(self) -> None:
        if self.board.opened_at is None:
            return
        try:
            self.board.tick(self.now)
        except ConnectionDead:
            self.cut()
        self._flush()

    def _flush(self) -> None:
        for action in self.board.outgoing:
            if isinstance(action, Resume):
                assert self.now >= self.resumed_at.get(action.request_id, -1.0) + self.timing.gap_s - 1e-9
                self.resumed_at[action.request_id] = self.now
        self.to_server += self.board.outgoing
        self.board.outgoing.clear()

    @invariant()
    def every_client_log_is_the_servers_up_to_there(self) -> None:
        for exchange in getattr(self, "exchanges", []):
            log = self.server.logs.get(exchange.request_id, [])
            applied = [frame for frame in exchange.log if frame.seq]
            assert [frame.seq for frame in applied] == list(range(1, len(applied) + 1))
            assert [frame.event for frame in applied] == log[: len(applied)]
            assert exchange.failure is None

    def teardown(self) -> None:
        """With the faults gone every request comes to its end, and to exactly its log."""
        if not hasattr(self, "server"):
            return
        for _ in range(200):
            if self.board.opened_at is None:
                self.connect()
            while self.to_server or self.to_client:
                if self.to_server:
                    self.to_client += self.server.answer(self.to_server.pop(0))
                else:
                    self.board.received(self.to_client.pop(0), self.now)
                    self._flush()
            for request_id in self.server.open():
                self.to_client += self.server.append(request_id, COMPLETE)
            if not self.to_client:
                if not self.board.busy:
                    break
                self.now = max(self.now, self.board.deadline())
                self._tick()
        for exchange in self.exchanges:
            assert exchange.ended
            unasked = [frame.seq for frame in exchange.log] == [0]
            assert not unasked or exchange.request_id in self.cancelled
            if not unasked:
                log = [json.loads(dump_event(body)) for body in self.server.logs[exchange.request_id]]
                seen = [
                    {name: frame.raw[name] for name in frame.raw if name not in ("requestId", "seq")}
                    for frame in exchange.log
                ]
                assert seen == log
        self.every_client_log_is_the_servers_up_to_there()


BadWire.TestCase.settings = settings(max_examples=80, stateful_step_count=50)
TestOverABadWireEveryRequestComesToItsEnd = BadWire.TestCase
