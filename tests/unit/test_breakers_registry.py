"""What circuit breakers cost, tell and survive."""

from __future__ import annotations

import logging

import pytest

from cicada.breakers.decide import Breaker
from cicada.concurrency import THREADS
from cicada.delivery.ports import StoreFault
from cicada.errors import (
    AnswerIncomplete,
    BudgetSpent,
    CacheUnavailable,
    DependencyDown,
    IndexCorrupt,
    IndexMissing,
    IndexUnavailable,
    ModelBusy,
    ModelRefused,
    ModelUnavailable,
    StreamBroken,
)
from cicada.models.ports import Stopped
from tests.support.breakers import Beside, Clock, InMemoryBreakers, board

MODEL = "model:m"
ERROR_OF = {MODEL: ModelBusy("throttled"), "index": IndexUnavailable("no answer"), "cache": CacheUnavailable("down")}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store():
    return InMemoryBreakers()


def fail(breakers, name=MODEL, times=5, error=None):
    for _ in range(times):
        breakers.failed(name, error or ERROR_OF[name])


def steps(caplog):
    return [(record.message, record.__dict__) for record in caplog.records if getattr(record, "step", "") == "fault"]


def test_while_all_goes_well_nothing_is_written_and_one_read_serves_for_seconds(clock, store):
    breakers = board(store, clock)
    for _ in range(20):
        breakers.check(["index", MODEL])
        breakers.admit(MODEL).succeeded()
        clock.pass_s(0.1)
    clock.pass_s(17)
    breakers.check(["index"])
    assert store.calls == ["read"]
    clock.pass_s(1.5)
    breakers.check(["index"])
    assert store.calls == ["read", "read"]


def test_while_something_fails_the_view_is_read_every_three_seconds(clock, store):
    breakers, other = board(store, clock), board(store, clock, "w2")
    breakers.check([MODEL])
    fail(other, times=1)
    clock.pass_s(20)
    breakers.check([MODEL])  # reads of the other's failure
    store.calls.clear()
    clock.pass_s(3)
    breakers.check([MODEL])
    assert store.calls == ["read"]
    fail(breakers, "index", times=1)
    store.calls.clear()
    clock.pass_s(3)
    breakers.check([MODEL])
    assert store.calls == ["read"]
    clock.pass_s(28)  # nothing has failed for half a minute
    breakers.check([MODEL])
    store.calls.clear()
    clock.pass_s(19)
    breakers.check([MODEL])
    assert store.calls == []


def test_what_one_worker_learns_keeps_the_others_from_trying(clock, store):
    fail(board(store, clock, "w1"))
    other = board(store, clock, "w2")
    with pytest.raises(DependencyDown, match=r"model:m keeps failing \(model_busy\)"):
        other.check(["index", MODEL])
    with pytest.raises(DependencyDown):
        other.admit(MODEL)
    other.check(["index", "cache"])


def test_failures_of_all_workers_count_together(clock, store):
    workers = [board(store, clock, f"w{n}") for n in range(5)]
    for worker in workers:
        worker.check([MODEL])  # all have the same old view
    for worker in workers[:4]:
        worker.failed(MODEL, ModelBusy("throttled"))
    assert store.breakers[MODEL].open_since_ms is None
    workers[4].failed(MODEL, ModelBusy("throttled"))
    assert store.breakers[MODEL].stage(int(clock() * 1000)) == "open"


def test_failures_that_lie_apart_open_nothing(clock, store):
    breakers = board(store, clock)
    for _ in range(20):
        fail(breakers, times=1)
        clock.pass_s(7.5)
    breakers.check([MODEL])
    assert len(store.breakers[MODEL].failures_ms) == 4


def test_failures_of_an_open_breaker_are_not_written(clock, store):
    breakers = board(store, clock)
    fail(breakers)
    written = len(store.calls)
    fail(breakers, times=50)
    assert len(store.calls) == written


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (MODEL, ModelRefused("no access")),
        (MODEL, AnswerIncomplete("max_tokens")),
        (MODEL, BudgetSpent("no call left")),
        (MODEL, Stopped()),
        (MODEL, GeneratorExit()),
        ("index", IndexMissing("nothing is published")),
        ("index", ModelUnavailable("the question could not be embedded")),
        ("cache", ModelUnavailable("the question could not be embedded")),
        ("cache", IndexUnavailable("another's")),
    ],
)
def test_what_is_no_failure_of_the_dependency_is_not_counted(clock, store, name, error):
    fail(board(store, clock), name, 20, error)
    assert store.breakers == {}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (MODEL, ModelBusy("throttled")),
        (MODEL, ModelUnavailable("no answer")),
        (MODEL, StreamBroken("cut")),
        ("embedder:e", ModelUnavailable("no answer")),
        ("index", IndexUnavailable("no answer")),
        ("index", IndexCorrupt("checksum")),
        ("cache", CacheUnavailable("throttled")),
    ],
)
def test_what_is_its_failure_is(clock, store, name, error):
    fail(board(store, clock), name, 5, error)
    assert store.breakers[name].cause == error.code


def test_one_worker_probes_and_the_others_wait_for_what_it_finds(clock, store):
    first, second = board(store, clock, "w1"), board(store, clock, "w2")
    fail(first)
    second.check(["index"])
    clock.pass_s(5)
    first.check([MODEL])  # it may be tried
    probe = first.admit(MODEL)
    with pytest.raises(DependencyDown):
        second.admit(MODEL)
    probe.succeeded()
    clock.pass_s(3)
    second.admit(MODEL)


def test_a_probe_that_tells_nothing_leaves_its_place_at_once(clock, store):
    breakers = board(store, clock)
    fail(breakers)
    clock.pass_s(5)
    breakers.admit(MODEL).failed(Stopped())
    breakers.admit(MODEL).released()
    assert store.breakers[MODEL].openings == 1
    breakers.admit(MODEL).succeeded()
    assert store.breakers[MODEL].open_since_ms is None


def test_a_dependency_that_answers_with_a_refusal_is_there_again(clock, store):
    breakers = board(store, clock)
    fail(breakers)
    clock.pass_s(5)
    breakers.admit(MODEL).failed(ModelRefused("invalid request"))
    assert store.breakers[MODEL].open_since_ms is None


def test_a_probe_whose_worker_dies_expires(clock, store):
    breakers = board(store, clock)
    fail(breakers)
    clock.pass_s(5)
    dead = breakers.admit(MODEL)
    clock.pass_s(59)
    with pytest.raises(DependencyDown):
        breakers.admit(MODEL)
    clock.pass_s(2)
    breakers.admit(MODEL)
    successor = store.breakers[MODEL].probe
    dead.failed(ModelBusy("late"))
    assert (store.breakers[MODEL].probe, store.breakers[MODEL].openings) == (successor, 1)


def test_a_slow_probe_closes_the_breaker_though_its_time_is_over(clock, store):
    breakers = board(store, clock)
    fail(breakers)
    clock.pass_s(5)
    slow = breakers.admit(MODEL)
    clock.pass_s(70)
    breakers.admit(MODEL)
    slow.succeeded()
    assert store.breakers[MODEL].open_since_ms is None


def test_a_probe_of_an_earlier_outage_closes_nothing(clock, store):
    breakers = board(store, clock)
    fail(breakers)
    clock.pass_s(5)
    old = breakers.admit(MODEL)
    clock.pass_s(70)
    breakers.admit(MODEL).succeeded()
    fail(breakers)
    old.succeeded()
    assert store.breakers[MODEL].open_since_ms is not None


def test_each_call_has_one_outcome(clock, store):
    breakers = board(store, clock)
    fail(breakers)
    clock.pass_s(5)
    with breakers.admit(MODEL) as call:
        call.succeeded()
        call.failed(ModelBusy("afterwards"))
    call.released()
    call.succeeded()
    assert store.breakers[MODEL] == Breaker(revision=store.breakers[MODEL].revision)


def test_the_last_resort_is_tried_though_its_breaker_is_open(clock, store):
    breakers = board(store, clock)
    fail(breakers)
    breakers.admit(MODEL, last_resort=True).succeeded()
    assert store.breakers[MODEL].stage(int(clock() * 1000)) == "open"  # what was no probe closes nothing
    clock.pass_s(5)
    breakers.admit(MODEL, last_resort=True).succeeded()
    assert store.breakers[MODEL].stage(int(clock() * 1000)) == "closed"


# --- the store fails ---


def down(operation):
    raise StoreFault("throttled")


def test_while_the_store_is_down_every_breaker_counts_as_closed(clock, store, caplog):
    store.before = down
    breakers = board(store, clock)
    fail(breakers, times=20)
    breakers.check([MODEL, "index", "cache"])
    breakers.admit(MODEL).succeeded()
    assert store.breakers == {}
    assert any(message == "breakers could not be read" for message, _ in steps(caplog))


def test_an_open_breaker_that_cannot_be_claimed_lets_the_call_go(clock, store):
    breakers = board(store, clock)
    fail(breakers)
    store.before = down
    clock.pass_s(5)
    breakers.admit(MODEL)


def test_a_claim_whose_acknowledgement_is_lost_still_closes_the_breaker(clock, store):
    breakers = board(store, clock)
    fail(breakers)
    clock.pass_s(5)
    store.after = down
    probe = breakers.admit(MODEL)
    store.after = lambda operation: None
    probe.succeeded()
    assert store.breakers[MODEL].open_since_ms is None


def test_a_store_that_always_has_something_newer_holds_nobody_up(clock, store):
    breakers = board(store, clock)

    def overtake(operation):
        if operation == "swap":
            stands = store.breakers.get(MODEL, Breaker())
            store.breakers[MODEL] = Breaker(revision=stands.revision + 1)

    store.before = overtake
    fail(breakers, times=1)
    breakers.check([MODEL])


# --- the view ---


def test_a_new_worker_waits_a_moment_for_its_first_view(clock, store):
    fail(board(store, clock))
    new = board(store, clock, "w2", concurrency=THREADS, first_read_s=30)
    with pytest.raises(DependencyDown):
        new.check([MODEL])


def test_but_not_for_a_store_that_does_not_answer(clock, store):
    fail(board(store, clock))
    beside = Beside(at_once=False)
    new = board(store, clock, "w2", concurrency=beside, first_read_s=0)
    new.check([MODEL])
    beside.catch_up()
    with pytest.raises(DependencyDown):
        new.check([MODEL])


def test_no_second_read_begins_while_one_is_under_way(clock, store):
    beside = Beside(at_once=False)
    breakers = board(store, clock, concurrency=beside, first_read_s=0)
    for _ in range(5):
        breakers.refresh_soon()
        clock.pass_s(5)
    assert len(beside.waiting) == 1


def test_a_worker_that_slept_long_reads_anew_and_waits_for_it(clock, store):
    beside = Beside(at_once=False)
    breakers = board(store, clock, concurrency=beside, first_read_s=0)
    breakers.check([MODEL])
    clock.pass_s(3600)  # with a read under way that may never end
    fail(board(store, clock, "w2"))
    beside.at_once = True
    with pytest.raises(DependencyDown):
        breakers.check([MODEL])


def test_a_clock_that_is_set_back_stops_no_reads(clock, store):
    breakers = board(store, clock)
    breakers.check([MODEL])
    clock.pass_s(-3600)
    breakers.check([MODEL])
    assert store.calls == ["read", "read"]


def test_a_view_that_lags_behind_does_not_undo_what_is_known(clock, store):
    beside = Beside(at_once=False)
    breakers = board(store, clock, concurrency=beside, first_read_s=0)
    breakers.refresh_soon()
    old = dict(store.breakers)
    fail(breakers)
    store.read = lambda: old | {MODEL: Breaker(revision=1)}
    beside.catch_up()
    with pytest.raises(DependencyDown):
        breakers.check([MODEL])


def test_an_old_view_of_an_open_breaker_is_corrected_by_the_claim(clock, store):
    beside = Beside(at_once=False)
    sleeper = board(store, clock, "w1", concurrency=beside, first_read_s=0)
    fail(sleeper)
    clock.pass_s(5)
    board(store, clock, "w2").admit(MODEL).succeeded()
    sleeper.admit(MODEL).failed(ModelBusy("once"))
    assert (store.breakers[MODEL].open_since_ms, len(store.breakers[MODEL].failures_ms)) == (None, 1)


# --- what is told ---


def test_openings_closings_and_skips_are_told_in_the_story_and_to_the_metrics(clock, store, caplog):
    caplog.set_level(logging.INFO, "cicada")
    heard = []
    breakers = board(store, clock, on_happening=lambda name, happening: heard.append((name, happening)))
    fail(breakers)
    with pytest.raises(DependencyDown):
        breakers.check([MODEL])
    clock.pass_s(5)
    breakers.admit(MODEL).failed(ModelBusy("throttled"))
    clock.pass_s(10)
    breakers.admit(MODEL).succeeded()
    assert heard == [(MODEL, "opened"), (MODEL, "skipped"), (MODEL, "opened"), (MODEL, "closed")]
    told = steps(caplog)
    assert [fields["code"] for _, fields in told] == [
        "breaker_opened",
        "dependency_down",
        "breaker_opened",
        "breaker_closed",
    ]
    assert all(fields["dependency"] == MODEL for _, fields in told)
    assert "next try in 10.0 s" in told[2][1]["why"]
    assert "after 15.0 s" in told[3][1]["why"]


def test_each_opening_is_told_by_the_one_worker_that_caused_it(clock, store):
    heard = []
    workers = [board(store, clock, f"w{n}", on_happening=lambda *what: heard.append(what)) for n in range(3)]
    for n in range(9):
        workers[n % 3].failed(MODEL, ModelBusy("throttled"))
    assert heard == [(MODEL, "opened")]


def test_the_states_of_all_breakers_are_there_to_be_shown(clock, store):
    breakers = board(store, clock)
    fail(breakers, "index", 2)
    fail(breakers)
    model, index = sorted(breakers.states(), key=lambda state: state.name, reverse=True)
    assert (index.name, index.stage, index.recent_failures, index.open_since_s) == ("index", "closed", 2, None)
    assert (model.name, model.stage, model.openings, model.cause) == (MODEL, "open", 1, "model_busy")
    assert (model.open_since_s, model.retry_at_s, model.probing) == (clock(), clock() + 5, False)
    clock.pass_s(31)
    breakers.admit(MODEL)
    index, model = breakers.states()
    assert (index.recent_failures, index.retry_at_s) == (0, None)
    assert (model.stage, model.probing) == ("half_open", True)


def test_the_jitter_only_ever_shortens_a_rest(clock, store):
    fail(board(store, clock, share=lambda: 0.999))
    assert 3.75 < store.breakers[MODEL].retry_at_ms / 1000 - clock() < 5


def test_a_call_that_goes_well_wipes_the_failures_before_it(clock, store):
    first, second = board(store, clock, "w1"), board(store, clock, "w2")
    for _ in range(3):
        fail(first, times=4)
        clock.pass_s(4)
        second.admit(MODEL).succeeded()
        assert store.breakers[MODEL].failures_ms == ()
    assert first.allows(MODEL)


def test_a_call_that_was_under_way_when_the_breaker_opened_does_not_close_it(clock, store):
    breakers = board(store, clock)
    late = breakers.admit(MODEL)
    fail(breakers)
    late.succeeded()
    assert not breakers.allows(MODEL)
