"""The client's tail of a request: whatever the wire does, it applies exactly the log."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cicada.protocol.events import (
    Accepted,
    Attempt,
    Chunk,
    Complete,
    Failed,
    Fallback,
    LogEvent,
    Metrics,
    StrategyFailure,
    Verdict,
    VerdictPassage,
    dump_event,
    event_frame,
)
from cicada_client.frames import EventFrame, GatewayFaultFrame, UnknownEvent, parse_frame
from cicada_client.tail import RequestTail

VECTORS = json.loads((Path(__file__).parents[2] / "docs" / "protocol" / "vectors.json").read_text("utf-8"))
REQUEST = "6f1ed002-ab5a-4c2b-b52d-6f2c9a3a7d10"
SOURCE = {
    "n": 1,
    "passageId": "p1",
    "collection": "script",
    "locator": {
        "kind": "script",
        "episodeId": "ep1",
        "episodeName": "One",
        "chapterId": "c1",
        "messageId": "m1",
        "speaker": "Ada",
    },
    "score": 0.9,
    "text": "The bell rang.",
}


def frame(seq: int, event: LogEvent | dict[str, Any]) -> EventFrame:
    body = json.dumps(event) if isinstance(event, dict) else dump_event(event)
    parsed = parse_frame(event_frame(REQUEST, seq, body))
    assert isinstance(parsed, EventFrame)
    return parsed


def accepted() -> Accepted:
    return Accepted(route="rag", confidence=0.9, reasoning="about the script", strategy="rag")


def test_a_verdict_is_of_its_attempt_and_goes_with_it() -> None:
    tail = RequestTail(REQUEST)
    verdict = Verdict(attempt=1, verdict="supported", given=True, for_=(VerdictPassage(n=1, strength="strong"),))
    events: list[LogEvent] = [accepted(), Attempt(attempt=1, strategy="theory_agent"), verdict]
    for seq, event in enumerate(events, 1):
        tail.feed(frame(seq, event))
    assert tail.answer().verdict == verdict
    tail.feed(frame(4, Fallback(from_="theory_agent", to="rag", code="c", reason="r")))
    assert tail.answer().verdict is None


@pytest.mark.parametrize(("code", "left"), [("answer_blocked", ""), ("stream_broken", "The bell ")])
def test_what_a_content_filter_withheld_is_dropped_and_any_other_unfinished_text_stays(code: str, left: str) -> None:
    tail = RequestTail(REQUEST)
    failed = (StrategyFailure(strategy="direct", code=code, reason="It did not finish."),)
    events: list[LogEvent] = [
        accepted(),
        Attempt(attempt=1, strategy="direct"),
        Chunk(attempt=1, content="The bell "),
        Failed(code="all_strategies_failed", message="No.", retryable=True, failed=failed),
    ]
    for seq, event in enumerate(events, 1):
        tail.feed(frame(seq, event))
    assert tail.text == left


def complete(attempt: int = 1, strategy: str = "rag") -> Complete:
    metrics = Metrics(latency_ms=10, attempt_ms=9, first_chunk_ms=8)
    return Complete.model_validate(
        {
            "attempt": attempt,
            "answeredBy": strategy,
            "attempted": [strategy],
            "model": "m",
            "grounded": True,
            "stopReason": "end_turn",
            "metrics": metrics,
        }
    )


def fed(*events: LogEvent | dict[str, Any]) -> RequestTail:
    tail = RequestTail(REQUEST)
    for seq, event in enumerate(events, start=1):
        tail.feed(frame(seq, event))
    return tail


@pytest.mark.parametrize("session", VECTORS["sessions"], ids=lambda session: session["name"])
def test_the_published_sessions_are_shown_as_they_should_be(session: dict[str, Any]) -> None:
    tail = RequestTail(REQUEST)
    for raw in session["frames"]:
        parsed = parse_frame(json.dumps(raw))
        assert isinstance(parsed, EventFrame)
        assert not isinstance(parsed.event, UnknownEvent)
        tail.feed(parsed)
    ended = tail.terminal.event.type if tail.terminal else None
    assert (tail.text, ended, tail.applied) == (session["text"], session["terminal"], session["appliedSeq"])


def test_events_that_come_early_wait_for_those_before_them() -> None:
    tail = RequestTail(REQUEST)
    assert tail.feed(frame(3, Chunk(attempt=1, content="b"))) == []
    assert tail.behind
    assert tail.feed(frame(1, accepted())) != []
    assert [applied.seq for applied in tail.feed(frame(2, Chunk(attempt=1, content="a")))] == [2, 3]
    assert (tail.text, tail.applied, tail.behind) == ("ab", 3, False)


def test_a_repeated_event_is_dropped_whether_applied_or_waiting() -> None:
    tail = RequestTail(REQUEST)
    first, third = frame(1, accepted()), frame(3, Chunk(attempt=1, content="x"))
    tail.feed(first)
    tail.feed(third)
    assert tail.feed(first) == []
    assert tail.feed(third) == []
    assert tail.applied == 1


def test_a_log_that_is_longer_than_what_came_leaves_the_tail_behind() -> None:
    tail = fed(accepted())
    tail.note_last_seq(2)
    assert tail.behind


def test_a_fallback_withdraws_the_text_the_sources_and_the_citations() -> None:
    sources = {"type": "sources", "attempt": 1, "indexVersion": "v1", "searched": 1, "sources": [SOURCE]}
    citations = {
        "type": "citations",
        "attempt": 1,
        "citations": [{"n": 1, "verdict": "verified", "sentence": "The bell rang.", "passageId": "p1"}],
    }
    tail = fed(accepted(), Attempt(attempt=1, strategy="rag"), sources, Chunk(attempt=1, content="The bell"), citations)
    answer = tail.answer()
    assert (answer.text, len(answer.sources), len(answer.citations)) == ("The bell", 1, 1)
    tail.feed(frame(6, Fallback.model_validate({"from": "rag", "to": "direct", "code": "x", "reason": "y"})))
    answer = tail.answer()
    assert (answer.text, answer.sources, answer.citations) == ("", (), ())


def test_what_is_told_of_the_search_goes_with_its_attempt() -> None:
    sources = {
        "type": "sources",
        "attempt": 1,
        "query": "What did Ada say then?",
        "reused": {"use": "contexts", "question": "What did Ada say?", "answeredAtMs": 5, "similarity": 0.9},
        "offered": True,
        "indexVersion": "v1",
        "searched": 0,
        "sources": [SOURCE],
    }
    tail = fed(accepted(), Attempt(attempt=1, strategy="cag"), sources)
    answer = tail.answer()
    assert (answer.query, answer.offered) == ("What did Ada say then?", True)
    assert answer.reused is not None
    assert answer.reused.question == "What did Ada say?"
    tail.feed(frame(4, Attempt(attempt=2, strategy="direct")))
    answer = tail.answer()
    assert (answer.query, answer.offered, answer.reused) == (None, False, None)


def test_two_attempts_are_never_joined_even_if_no_fallback_was_announced() -> None:
    tail = fed(accepted(), Chunk(attempt=1, content="one"), Chunk(attempt=2, content="two"))
    assert tail.text == "two"


def test_an_event_of_an_attempt_that_was_given_up_adds_nothing() -> None:
    tail = fed(accepted(), Chunk(attempt=2, content="two"), Chunk(attempt=1, content="zombie"))
    assert tail.text == "two"


def test_nothing_follows_the_terminal_event() -> None:
    tail = fed(accepted(), Chunk(attempt=1, content="all"), complete())
    assert tail.feed(frame(4, Chunk(attempt=1, content="more"))) == []
    assert tail.answer().complete
    assert tail.text == "all"


def test_a_complete_answer_tells_who_wrote_it_and_what_it_took() -> None:
    answer = fed(accepted(), Attempt(attempt=1, strategy="rag"), complete()).answer()
    assert (answer.route, answer.strategy, answer.model, answer.grounded) == ("rag", "rag", "m", True)
    assert answer.metrics is not None
    assert answer.metrics.latency_ms == 10


def test_a_newer_servers_terminal_event_still_ends_the_request() -> None:
    newer = {"type": "complete", "attempt": 1, "answeredBy": "graph", "model": "m9", "grounded": True}
    tail = fed(accepted(), Chunk(attempt=1, content="text"), newer)
    answer = tail.answer()
    assert (answer.complete, answer.text, answer.strategy, answer.model) == (True, "text", "graph", "m9")


def test_a_newer_servers_fallback_and_attempt_still_withdraw_the_text() -> None:
    tail = fed(
        accepted(),
        Chunk(attempt=1, content="old"),
        {"type": "fallback", "from": "graph", "to": "direct", "code": "x", "reason": "y"},
    )
    assert tail.text == ""
    tail = fed(accepted(), Chunk(attempt=1, content="old"), {"type": "attempt", "attempt": 2, "strategy": "graph"})
    assert (tail.text, tail.answer().strategy) == ("", "graph")


def test_unknown_fields_are_left_aside_and_unknown_events_handed_on() -> None:
    known = frame(1, {**json.loads(dump_event(Chunk(attempt=1, content="x"))), "colour": "red"})
    assert known.event == Chunk(attempt=1, content="x")
    assert known.raw["colour"] == "red"
    unknown = frame(2, {"type": "thought", "content": "hm"})
    assert unknown.event == UnknownEvent("thought", {"type": "thought", "content": "hm"})


def test_unknown_fields_deep_inside_are_left_aside_too() -> None:
    source = {**SOURCE, "colour": "red", "locator": {**SOURCE["locator"], "page": 3}}  # type: ignore[dict-item]
    event = frame(1, {"type": "sources", "attempt": 1, "indexVersion": "v1", "searched": 1, "sources": [source]}).event
    assert not isinstance(event, UnknownEvent)


def sources(**changes: Any) -> dict[str, Any]:
    return {"type": "sources", "attempt": 1, "indexVersion": "v1", "searched": 2, "sources": [SOURCE], **changes}


REUSED = {"use": "answer", "question": "q", "answeredAtMs": 1, "similarity": 0.9}


@pytest.mark.parametrize(
    ("event", "numbers"),
    [
        (sources(reused={**REUSED, "use": "summary"}), [1]),
        (sources(sources=[{**SOURCE, "origin": "graph"}]), [1]),
        (sources(sources=[{**SOURCE, "locator": {"kind": "video", "second": 3}}, {**SOURCE, "n": 2}]), [2]),
        (sources(sources=[SOURCE, {"n": 2}, {**SOURCE, "n": 3, "score": 7}, "?"]), [1]),
        (sources(degraded=[{"why": "of a newer server"}, 3], offered="perhaps"), [1]),
    ],
)
def test_of_sources_the_part_that_cannot_be_read_is_left_aside_alone(event: dict[str, Any], numbers: list[int]) -> None:
    answer = fed(accepted(), Attempt(attempt=1, strategy="rag"), event).answer()
    assert [source.n for source in answer.sources] == numbers
    assert (answer.reused, answer.degraded, answer.offered) == (None, (), False)


def test_a_citation_with_an_unknown_verdict_is_left_aside_alone() -> None:
    good = {"n": 1, "verdict": "verified", "sentence": "It rang [1]."}
    event = {"type": "citations", "attempt": 1, "citations": [{**good, "verdict": "likely"}, good]}
    (citation,) = fed(accepted(), event).answer().citations
    assert citation.verdict == "verified"


def test_what_is_nothing_without_its_unreadable_part_is_handed_on_unread() -> None:
    assert frame(1, sources(sources="none")).event == UnknownEvent("sources", sources(sources="none"))


@pytest.mark.parametrize(("code", "left"), [("answer_blocked", ""), ("stream_broken", "The bell ")])
@pytest.mark.parametrize("retryable", [True, "of a newer server"])
def test_what_was_withheld_is_dropped_at_an_end_of_that_code(code: str, left: str, retryable: object) -> None:
    error = {"type": "error", "code": code, "message": "m", "retryable": retryable, "failed": []}
    assert fed(accepted(), Chunk(attempt=1, content="The bell "), error).text == left


@pytest.mark.parametrize(("code", "left"), [("answer_blocked", ""), ("stream_broken", "The bell ")])
@pytest.mark.parametrize("retryable", [True, "of a newer server"])
def test_what_was_withheld_is_dropped_whichever_strategy_wrote_it(code: str, left: str, retryable: object) -> None:
    failed = [
        {"strategy": "rag", "code": "stream_broken", "reason": "r"},
        {"strategy": "graph", "code": code, "reason": "r"},
    ]
    error = {"type": "error", "code": "c", "message": "m", "retryable": retryable, "failed": failed}
    tail = fed(accepted(), Chunk(attempt=1, content="The bell "), error)
    assert tail.text == left
    assert [failure.strategy for failure in tail.answer().failed] == ["rag"]


METRICS = {"latencyMs": 10, "attemptMs": 9, "firstChunkMs": 8, "inputTokens": 3}


@pytest.mark.parametrize("who", [{"answeredBy": "graph"}, {"strategy": "direct"}])
def test_older_and_newer_servers_ends_still_tell_what_failed_and_what_it_took(who: dict[str, str]) -> None:
    failed = [{"strategy": "rag", "code": "index_missing", "reason": "r"}]
    end = {"type": "complete", "attempt": 2, "model": "m", "grounded": False, "stopReason": "end_turn"}
    answer = fed(accepted(), {**end, **who, "failed": failed, "metrics": METRICS}).answer()
    assert answer.complete
    assert [answer.strategy] == list(who.values())
    assert [failure.code for failure in answer.failed] == ["index_missing"]
    assert answer.metrics is not None
    assert (answer.metrics.latency_ms, answer.metrics.input_tokens) == (10, 3)


def test_an_older_servers_complete_is_read_as_todays() -> None:
    failed = [{"strategy": "rag", "code": "index_missing", "reason": "r"}]
    old = {"type": "complete", "attempt": 2, "strategy": "direct", "model": "m", "grounded": False}
    event = frame(1, {**old, "stopReason": "end_turn", "failed": failed, "metrics": METRICS}).event
    assert isinstance(event, Complete)
    assert (event.answered_by, event.attempted) == ("direct", ("rag", "direct"))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda part: (
        st.lists(part) | (st.dictionaries(st.sampled_from(["n", "text", "locator", "kind", "code", "strategy"]), part))
    ),
    max_leaves=6,
)


@settings(max_examples=80)
@given(
    st.sampled_from(["sources", "complete", "error", "citations", "chunk", "attempt"]),
    st.dictionaries(st.sampled_from(["attempt", "sources", "failed", "reused", "metrics", "citations"]), JUNK),
)
def test_whatever_an_event_holds_it_is_read_or_handed_on(kind: str, fields: dict[str, Any]) -> None:
    event = {
        **sources(reused=REUSED),
        **METRICS,
        "code": "c",
        "message": "m",
        "retryable": True,
        **fields,
        "type": kind,
    }
    tail = fed(accepted(), event)
    assert tail.applied == 2
    assert tail.answer().request_id == REQUEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[1]",
        "{}",
        '{"type":"chunk"}',
        '{"type":"chunk","seq":-1,"requestId":"x"}',
        '{"type":"chunk","seq":true,"requestId":"x"}',
        '{"type":"chunk","seq":1}',
        '{"type":"resumed","seq":0,"requestId":"x","outcome":"later"}',
        '{"type":"greeting","seq":0}',
        "[" * 100_000,
    ],
)
def test_a_frame_that_is_of_no_use_is_no_frame(text: str) -> None:
    assert parse_frame(text) is None


def test_the_gateways_own_complaint_is_told_apart() -> None:
    text = '{"message": "Internal server error", "connectionId":"abc=", "requestId":"Zy9="}'
    assert parse_frame(text) == GatewayFaultFrame("Internal server error")


EVENTS = st.one_of(
    st.builds(Chunk, attempt=st.integers(1, 3), content=st.text("abc", min_size=1, max_size=3)),
    st.builds(Attempt, attempt=st.integers(1, 3), strategy=st.sampled_from(["rag", "direct"])),
    st.just(Fallback.model_validate({"from": "rag", "to": "direct", "code": "c", "reason": "r"})),
    st.builds(lambda n: {"type": "novelty", "n": n}, st.integers()),
)
ENDS = st.sampled_from([complete(), Failed(code="cancelled", message="m", retryable=False)])


class Wire(RuleBasedStateMachine):
    """A server's log, a wire that loses, doubles and reorders, and the tail at its end."""

    @initialize(events=st.lists(EVENTS, max_size=12), end=ENDS)
    def start(self, events: list[LogEvent | dict[str, Any]], end: LogEvent) -> None:
        self.log = [frame(seq, event) for seq, event in enumerate([accepted(), *events, end], start=1)]
        self.written = 1
        self.wire: list[EventFrame] = [self.log[0]]
        self.tail = RequestTail(REQUEST)
        self.applied: list[EventFrame] = []
        self.heard_of = 0

    @precondition(lambda self: self.written < len(self.log))
    @rule()
    def the_server_appends_and_pushes(self) -> None:
        self.wire.append(self.log[self.written])
        self.written += 1

    @precondition(lambda self: self.wire)
    @rule(pick=st.randoms(use_true_random=False))
    def some_frame_arrives(self, pick: random.Random) -> None:
        arriving = self.wire.pop(pick.randrange(len(self.wire)))
        self.heard_of = max(self.heard_of, arriving.seq)
        self.applied += self.tail.feed(arriving)

    @precondition(lambda self: self.wire)
    @rule(pick=st.randoms(use_true_random=False))
    def a_frame_is_lost(self, pick: random.Random) -> None:
        self.wire.pop(pick.randrange(len(self.wire)))

    @precondition(lambda self: self.wire)
    @rule(pick=st.randoms(use_true_random=False))
    def a_frame_is_doubled(self, pick: random.Random) -> None:
        self.wire.append(pick.choice(self.wire))

    @rule()
    def the_client_resumes(self) -> None:
        self.wire += self.log[self.tail.applied : self.written]
        self.tail.note_last_seq(self.written)
        self.heard_of = max(self.heard_of, self.written)

    @invariant()
    def what_is_applied_is_the_log_up_to_there(self) -> None:
        assert self.applied == self.log[: len(self.applied)]
        assert self.tail.applied == len(self.applied)
        assert self.tail.answer() == fed(*(event.raw for event in self.applied)).answer()  # type: ignore[arg-type]

    @invariant()
    def it_is_behind_while_it_knows_of_an_event_that_it_lacks(self) -> None:
        if self.tail.terminal is None:
            assert self.tail.behind == (self.heard_of > self.tail.applied)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            for event in self.log[self.tail.applied :]:
                self.applied += self.tail.feed(event)
            assert self.applied == self.log
            assert self.tail.terminal == self.log[-1]
            assert not self.tail.behind


Wire.TestCase.settings = settings(max_examples=80, stateful_step_count=40)
TestAnyInterleavingAppliesExactlyTheLog = Wire.TestCase
