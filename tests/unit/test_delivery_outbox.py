"""What one attempt writes and posts, and when."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.delivery.decide import LEASE_S, tried
from cicada.delivery.outbox import Fenced, Outbox, OutboxLimits, Wait, Watch, split_text
from cicada.delivery.record import MAX_LOG_BYTES, Changed, Commit, RequestSpend, Standalone
from cicada.errors import AnswerTooLong, DeliveryUnavailable
from cicada.protocol.events import MAX_EVENT_BYTES, Complete, Metrics, StrategyFailure
from tests.support.questions import NOW_S, beginning, new_head

COMPLETE = Complete(
    attempt=1,
    answered_by="rag",
    attempted=("rag",),
    model="m",
    grounded=True,
    stop_reason="end_turn",
    metrics=Metrics(latency_ms=1, attempt_ms=1, first_chunk_ms=1),
)


def begun(*subscribers, **changes):
    return new_head(*subscribers, attempt=1, last_seq=2, **changes)


def after(head, commit):
    return replace(head, last_seq=commit.last_seq, state=commit.state, log_bytes=head.log_bytes + commit.added_bytes)


def next_commit(outbox: Outbox, now: float) -> Commit:
    commit = outbox.next(now)
    assert isinstance(commit, Commit)
    return commit


def deliver(outbox, now):
    """Let one commit land."""
    commit = next_commit(outbox, now)
    return outbox.committed(after(outbox.head, commit), now)


def events(commit):
    return [json.loads(body) for body in commit.bodies]


def test_text_that_arrives_while_a_commit_is_in_flight_goes_out_as_one_event():
    outbox = Outbox(begun())
    outbox.text("The ")
    first = outbox.next(0.0)
    for piece in ("bell ", "rang ", "twice."):
        outbox.text(piece)
    outbox.committed(after(outbox.head, first), 0.05)
    second = outbox.next(1.0)
    assert [event["content"] for event in events(first) + events(second)] == ["The ", "bell rang twice."]


def test_at_most_ten_commits_a_second():
    outbox = Outbox(begun())
    commits = 0
    for tick in range(1000):
        now = tick / 1000
        outbox.text("x")
        commit = outbox.next(now)
        if isinstance(commit, Commit):
            outbox.committed(after(outbox.head, commit), now)
            commits += 1
    assert commits <= 11


def test_the_first_text_and_the_last_event_do_not_wait():
    outbox = Outbox(begun())
    outbox.text("Yes.")
    deliver(outbox, 0.0)
    outbox.text(" Twice.")
    assert isinstance(outbox.next(0.01), Wait)
    outbox.close(COMPLETE, RequestSpend())
    last = next_commit(outbox, 0.01)
    assert [event["type"] for event in events(last)] == ["chunk", "complete"]
    assert last.state == "complete"


def test_an_event_stands_after_the_text_that_came_before_it():
    outbox = Outbox(begun())
    outbox.text("one")
    outbox.event(COMPLETE)
    outbox.text("two")
    assert [event["type"] for event in events(outbox.next(0.0))] == ["chunk", "complete", "chunk"]


def test_a_commit_that_may_be_lost_is_made_again_the_same_and_ever_later():
    outbox = Outbox(begun())
    outbox.text("a")
    first = outbox.next(0.0)
    outbox.store_failed(0.0)
    outbox.text("b")
    waits = []
    now = 0.0
    for _ in range(6):
        wait = outbox.next(now)
        assert isinstance(wait, Wait)
        waits.append(wait.seconds)
        now += wait.seconds
        assert outbox.next(now) == first
        outbox.store_failed(now)
    assert waits == sorted(waits)
    assert waits[-1] == OutboxLimits().max_interval_s


def test_a_store_that_fails_for_too_long_fails_the_attempt():
    outbox = Outbox(begun(), OutboxLimits(store_budget_s=5))
    outbox.text("a")
    outbox.next(0.0)
    outbox.store_failed(0.0)
    outbox.store_failed(4.9)
    with pytest.raises(DeliveryUnavailable):
        outbox.store_failed(5.0)


def test_a_store_that_recovers_starts_a_new_budget():
    outbox = Outbox(begun(), OutboxLimits(store_budget_s=5))
    outbox.text("a")
    outbox.next(0.0)
    outbox.store_failed(0.0)
    deliver(outbox, 4.0)
    outbox.text("b")
    assert isinstance(outbox.next(8.0), Commit)
    outbox.store_failed(8.0)


def test_a_lost_acknowledgement_counts_as_landed():
    outbox = Outbox(begun("c1"))
    outbox.text("a")
    commit = next_commit(outbox, 0.0)
    outbox.store_failed(0.0)
    posts = outbox.conflicted(after(outbox.head, commit), commit.entries(), 1.0)
    assert [post.subscriber.connection_id for post in posts] == ["c1"]
    assert outbox.idle


def test_a_successor_fences_the_attempt():
    outbox = Outbox(begun())
    outbox.text("a")
    outbox.next(0.0)
    with pytest.raises(Fenced):
        outbox.conflicted(replace(outbox.head, attempt=2, last_seq=4), (), 0.0)


def test_every_subscriber_gets_every_frame_in_order():
    outbox = Outbox(begun("c1", "c2"))
    outbox.text("a")
    outbox.close(COMPLETE, RequestSpend())
    posts = deliver(outbox, 0.0)
    assert [post.subscriber.connection_id for post in posts] == ["c1", "c2"]
    assert [json.loads(frame)["seq"] for frame in posts[0].frames] == [3, 4]
    assert posts[0].frames == posts[1].frames


def test_a_slow_reader_is_left_alone_for_a_while_but_hears_the_end():
    outbox = Outbox(begun("slow"))
    outbox.text("a")
    deliver(outbox, 0.0)
    assert outbox.posted("slow", "busy", 0.0) is False
    outbox.text("b")
    assert deliver(outbox, 1.0) == ()
    outbox.text("c")
    assert len(deliver(outbox, 2.5)) == 1
    outbox.posted("slow", "busy", 2.5)
    outbox.close(COMPLETE, RequestSpend())
    assert len(deliver(outbox, 3.0)) == 1


def test_a_reader_that_stays_slow_is_left_alone_longer():
    limits = OutboxLimits(suspend_s=2, max_suspend_s=4)
    outbox = Outbox(begun("slow"), limits)
    now = 0.0
    silent = []
    for expected in (2, 4, 4):
        outbox.text("a")
        assert len(deliver(outbox, now)) == 1
        outbox.posted("slow", "busy", now)
        outbox.text("b")
        silent.append(len(deliver(outbox, now + expected - 0.1)))
        now += expected
    assert silent == [0, 0, 0]


@pytest.mark.parametrize("outcome", ["gone", "expired"])
def test_a_connection_that_is_closed_or_expired_is_to_be_forgotten(outcome):
    outbox = Outbox(begun("c1"))
    assert outbox.posted("c1", outcome, 0.0) is True
    assert outbox.posted("c1", "delivered", 0.0) is False


def test_an_answer_that_outgrows_the_log_is_an_error_not_a_crash():
    outbox = Outbox(begun(log_bytes=MAX_LOG_BYTES - 100))
    outbox.text("x" * 200)
    with pytest.raises(AnswerTooLong):
        outbox.next(0.0)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(12, 40))
def test_text_is_cut_between_characters_and_nothing_is_lost(text, max_bytes):
    parts = split_text(text, max_bytes)
    assert "".join(parts) == text
    assert all(0 < len(json.dumps(part, ensure_ascii=False).encode()) - 2 <= max_bytes for part in parts)


@pytest.mark.parametrize("character", ["x", "あ", '"', "\x01", "\n"])
def test_long_text_goes_out_in_events_that_fit_the_wire(character):
    outbox = Outbox(begun())
    text = character * 40_000
    outbox.text(text)
    commit = next_commit(outbox, 0.0)
    assert "".join(event["content"] for event in events(commit)) == text
    assert max(len(body.encode()) for body in commit.bodies) < MAX_EVENT_BYTES


def test_the_begin_of_the_attempt_is_posted_before_anything_else():
    commit = beginning(new_head("c1", "c2"), execution="x1", worker="w1")
    posts = Outbox(begun("c1", "c2"), begun=commit).opening()
    assert [post.subscriber.connection_id for post in posts] == ["c1", "c2"]
    assert json.loads(posts[0].frames[0])["type"] == "attempt"


def test_a_silent_attempt_looks_at_its_request_every_half_second():
    outbox = Outbox(begun())
    looks = []
    now = 0.0
    while now < 3:
        step = outbox.next(now)
        if isinstance(step, Watch):
            looks.append(round(now, 3))
            outbox.watched(outbox.head)
        else:
            assert isinstance(step, Wait)
            now += step.seconds
    assert looks == [0.5, 1.0, 1.5, 2.0, 2.5]


def test_an_attempt_that_writes_need_not_look():
    outbox = Outbox(begun())
    for tick in range(30):
        outbox.text("x")
        deliver(outbox, tick / 5)
        assert isinstance(outbox.next(tick / 5 + 0.15), Wait)


@pytest.mark.parametrize("changes", [{"state": "failed"}, {"state": "complete"}, {"attempt": 2}])
def test_a_silent_attempt_notices_that_it_is_superseded(changes):
    outbox = Outbox(begun())
    assert isinstance(outbox.next(0.6), Watch)
    with pytest.raises(Fenced):
        outbox.watched(replace(outbox.head, **changes))


def test_every_write_moves_the_lease_on():
    outbox = Outbox(begun(), now_s=lambda: NOW_S + 100)
    outbox.text("x")
    assert next_commit(outbox, 0.0).lease_until == NOW_S + 100 + LEASE_S


def test_a_silent_attempt_renews_its_lease_in_time():
    outbox = Outbox(begun(), now=7.0, now_s=lambda: NOW_S + 15)
    assert isinstance(outbox.next(21.9), Watch)
    beat = next_commit(outbox, 22.0)
    assert (beat.bodies, beat.lease_until) == ((), NOW_S + 15 + LEASE_S)
    outbox.committed(after(outbox.head, beat), 22.1)
    assert outbox.idle
    assert outbox.first_chunk_at is None
    assert not isinstance(outbox.next(22.2), type(beat))


def test_a_heartbeat_that_may_be_lost_is_made_again():
    outbox = Outbox(begun())
    beat = outbox.next(LEASE_S / 2)
    outbox.store_failed(LEASE_S / 2)
    wait = outbox.next(LEASE_S / 2)
    assert isinstance(wait, Wait)
    assert outbox.next(LEASE_S / 2 + wait.seconds) == beat


def test_what_was_changed_is_written_at_once_each_time_with_what_was_changed_before():
    outbox = Outbox(begun())
    for now, (told, all_told) in enumerate([("a", ("a",)), ("b", ("a", "b"))]):
        outbox.changed(told)
        commit = next_commit(outbox, float(now))
        assert (commit.changed, commit.bodies) == (Changed(1, all_told), ())
        outbox.committed(after(outbox.head, commit), float(now))
    outbox.changed("a")
    assert outbox.idle


def test_the_next_attempt_tells_what_the_last_one_has_changed_and_later_ones_keep_the_word():
    failures = [StrategyFailure(strategy="theory_agent", code="c", reason="It failed.")]
    head = replace(begun(), strategy="theory_agent", changed=Changed(1, ("a", "b")))
    told = "It failed. What it had changed by then is kept: a; b."
    (first,) = tried(head, failures)
    assert first.reason == told
    failures.append(StrategyFailure(strategy="rag", code="c", reason="It failed too."))
    later = replace(head, attempt=2, strategy="rag", failed=(first,))
    assert [one.reason for one in tried(later, failures)] == [told, "It failed too."]


def test_a_completed_question_is_written_at_once_or_with_what_waits():
    outbox = Outbox(begun())
    outbox.standalone(Standalone("What did Mara say next?"))
    assert not outbox.idle
    commit = next_commit(outbox, 0.0)
    assert (commit.standalone, commit.bodies) == (Standalone("What did Mara say next?"), ())
    outbox.committed(after(outbox.head, commit), 0.0)
    outbox.text("x")
    assert next_commit(outbox, 1.0).standalone is None
