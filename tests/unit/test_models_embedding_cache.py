"""CachingEmbedder: equal texts are embedded once, by one call that all who ask for it share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.errors import ModelBusy, ModelError, ModelUnavailable
from cicada.models.embedding_cache import CachingEmbedder

PATIENCE_S = 20.0


class Model:
    """Embeds a text as its length, and notes what it was asked for; ``before`` can hold it up or fail."""

    model_id, dimensions = "a.model", 2

    def __init__(self, before: Callable[[Sequence[str]], None] = lambda _: None) -> None:
        self.asked: list[list[str]] = []
        self.budgets_s: list[float] = []
        self.before = before

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        self.asked.append(list(texts))
        self.budgets_s.append(time_budget_s)
        self.before(texts)
        return [[float(len(text)), 1.0] for text in texts]


class Gate:
    """Holds a model's calls until it is opened."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error
        self.reached, self._open = threading.Event(), threading.Event()

    def __call__(self, _: Sequence[str]) -> None:
        self.reached.set()
        assert self._open.wait(PATIENCE_S)
        if self._error is not None:
            raise self._error

    def open(self) -> None:
        self._open.set()


def ask(embedder: CachingEmbedder, *texts: str, time_budget_s: float = 60.0) -> list[list[float]]:
    return embedder.embed(texts, time_budget_s=time_budget_s)


def asking(embedder: CachingEmbedder, *texts: str) -> Future[list[list[float]]]:
    """Ask on another thread."""
    return ThreadPoolExecutor(1).submit(ask, embedder, *texts)


def waiting(embedder: CachingEmbedder, *texts: str) -> Future[list[list[float]]]:
    """Ask on another thread, and go on when it waits for a call that is under way."""
    waits = threading.Event()

    class Noticed(Future[list[float]]):
        def result(self, timeout: float | None = None) -> list[float]:
            waits.set()
            return super().result(timeout)

    for call in embedder._under_way.values():
        call.__class__ = Noticed
    answer = asking(embedder, *texts)
    assert waits.wait(PATIENCE_S)
    return answer


def test_it_is_the_model_that_it_remembers_for():
    embedder = CachingEmbedder(Model())
    assert (embedder.model_id, embedder.dimensions) == ("a.model", 2)


def test_a_text_is_embedded_once():
    model = Model()
    embedder = CachingEmbedder(model)
    assert ask(embedder, "one") == ask(embedder, "one") == [[3.0, 1.0]]
    assert model.asked == [["one"]]


def test_only_what_is_not_known_is_asked_for_and_the_order_is_kept():
    model = Model()
    embedder = CachingEmbedder(model)
    ask(embedder, "three")
    assert ask(embedder, "a", "three", "bb", "a") == [[1.0, 1.0], [5.0, 1.0], [2.0, 1.0], [1.0, 1.0]]
    assert model.asked == [["three"], ["a", "bb"]]
    assert ask(embedder) == []


def test_what_a_caller_does_to_its_vector_is_its_own_business():
    embedder = CachingEmbedder(Model())
    ask(embedder, "one")[0][0] = 99.0
    assert ask(embedder, "one") == [[3.0, 1.0]]


def test_the_texts_asked_for_last_are_kept():
    model = Model()
    embedder = CachingEmbedder(model, size=2)
    for text in ("a", "bb", "a", "ccc"):  # so bb has not been asked for the longest time
        ask(embedder, text)
    ask(embedder, "a", "ccc")
    assert model.asked == [["a"], ["bb"], ["ccc"]]
    ask(embedder, "bb")
    assert model.asked[-1] == ["bb"]


def test_who_asks_for_a_text_that_is_being_embedded_waits_for_that_call():
    gate = Gate()
    model = Model(gate)
    embedder = CachingEmbedder(model)
    first = asking(embedder, "one")
    assert gate.reached.wait(PATIENCE_S)
    second = waiting(embedder, "one")
    gate.open()
    assert first.result(PATIENCE_S) == second.result(PATIENCE_S) == [[3.0, 1.0]]
    assert model.asked == [["one"]]


def test_two_callers_that_wait_for_each_others_texts_both_get_them():
    meet = threading.Barrier(2, timeout=PATIENCE_S)
    model = Model()
    embedder = CachingEmbedder(model)
    ours: dict[str, Future[list[list[float]]]] = {}

    def before(texts: Sequence[str]) -> None:
        if texts[0] == "a":  # "bb" is asked for once "a" is under way
            ours["second"] = asking(embedder, "bb", "a")
        meet.wait()

    model.before = before
    assert ask(embedder, "a") == [[1.0, 1.0]]
    assert ours["second"].result(PATIENCE_S) == [[2.0, 1.0], [1.0, 1.0]]
    assert model.asked == [["a"], ["bb"]]


def test_a_failure_is_shared_by_those_who_wait_and_then_forgotten():
    gate = Gate(ModelBusy("throttled"))
    model = Model(gate)
    embedder = CachingEmbedder(model)
    first = asking(embedder, "one")
    assert gate.reached.wait(PATIENCE_S)
    second = waiting(embedder, "one")
    gate.open()
    for failed in (first, second):
        with pytest.raises(ModelBusy, match="throttled"):
            failed.result(PATIENCE_S)
    assert model.asked == [["one"]]
    model.before = lambda _: None
    assert ask(embedder, "one") == [[3.0, 1.0]]


def test_nobody_is_left_waiting_when_a_call_is_torn_down():
    gate = Gate(SystemExit())
    embedder = CachingEmbedder(Model(gate))
    first = asking(embedder, "one")
    assert gate.reached.wait(PATIENCE_S)
    second = waiting(embedder, "one")
    gate.open()
    with pytest.raises(ModelUnavailable, match="cancelled"):
        second.result(PATIENCE_S)
    with pytest.raises(SystemExit):
        first.result(PATIENCE_S)


def test_who_waits_for_anothers_call_waits_no_longer_than_its_own_budget():
    gate = Gate()
    embedder = CachingEmbedder(Model(gate))
    first = asking(embedder, "one")
    assert gate.reached.wait(PATIENCE_S)
    with pytest.raises(ModelUnavailable, match="time budget"):
        ask(embedder, "one", time_budget_s=0.01)
    gate.open()
    assert first.result(PATIENCE_S) == [[3.0, 1.0]]


def test_time_spent_on_ones_own_texts_counts_against_the_wait_for_others():
    now_s = 0.0
    gate = Gate()
    model = Model(gate)
    embedder = CachingEmbedder(model, clock=lambda: now_s)
    first = asking(embedder, "one")
    assert gate.reached.wait(PATIENCE_S)

    def slow(_: Sequence[str]) -> None:
        nonlocal now_s
        now_s = 61.0

    model.before = slow
    with pytest.raises(ModelUnavailable, match="time budget"):
        ask(embedder, "one", "another", time_budget_s=60.0)
    gate.open()
    first.result(PATIENCE_S)
    assert ask(embedder, "another") == [[7.0, 1.0]]
    assert model.asked == [["one"], ["another"]]


def test_the_callers_budget_is_the_calls():
    model = Model()
    ask(CachingEmbedder(model), "one", time_budget_s=4.5)
    assert model.budgets_s == [4.5]


def test_a_calls_own_timeout_is_not_taken_for_the_budget():
    gate = Gate(TimeoutError("of the socket"))
    embedder = CachingEmbedder(Model(gate))
    first = asking(embedder, "one")
    assert gate.reached.wait(PATIENCE_S)
    second = waiting(embedder, "one")
    gate.open()
    for failed in (first, second):
        with pytest.raises(TimeoutError, match="of the socket"):
            failed.result(PATIENCE_S)


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), max_size=12), st.integers(1, 4), st.data())
def test_whatever_is_asked_every_text_gets_its_vector(asks, size, data):
    model = Model()
    embedder = CachingEmbedder(model, size=size)
    for texts in asks:
        fails = data.draw(st.booleans())
        model.before = _fail if fails else lambda _: None
        try:
            assert ask(embedder, *texts) == [[1.0, 1.0]] * len(texts)
        except ModelError:
            assert fails
    assert all(len(set(asked)) == len(asked) for asked in model.asked)


def _fail(_: Sequence[str]) -> None:
    raise ModelBusy("throttled")
