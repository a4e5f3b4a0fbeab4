"""Waiting for what another thread does, and embedding a query in the time that its search has."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from cicada.errors import ModelBusy, ModelUnavailable, OutOfTime
from cicada.models.ports import Stopped
from cicada.retrieval.background import run_in_background, wait_for
from cicada.retrieval.ports import SearchQuery, TimeLimit
from cicada.retrieval.query_vectors import EMBED_BUDGET_S, embedding_time_s, query_vector
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder


def query(left_s=None, mode="hybrid"):
    limits: dict[str, Any] = {} if left_s is None else {"limits": TimeLimit(lambda: left_s)}
    return SearchQuery("fog bell", mode=mode, **limits, readable=EVERYTHING)


@pytest.fixture
def held():
    event = threading.Event()
    yield event
    event.set()


def test_what_comes_in_time_is_given_and_what_fails_is_raised():
    assert wait_for(run_in_background(lambda: 7, "test"), 20) == 7
    failed: Future[int] = Future()
    failed.set_exception(TimeoutError("its own"))
    with pytest.raises(TimeoutError, match="its own"):
        wait_for(failed, 20)


def test_what_does_not_come_is_waited_for_no_longer(held):
    with pytest.raises(OutOfTime):
        wait_for(run_in_background(held.wait, "test"), 0.01)
    with pytest.raises(OutOfTime):
        wait_for(run_in_background(held.wait, "test"), -1)


def test_what_ends_just_when_its_time_is_over_is_taken():
    class EndsJustNow(Future[str]):
        def done(self):
            if not super().done():
                self.set_result("just in time")
            return True

    assert wait_for(EndsJustNow(), 0.0) == "just in time"


def test_nobody_waits_for_what_is_not_wanted_any_more(held):
    stopped: Future[None] = Future()
    stopped.set_result(None)
    with pytest.raises(Stopped):
        wait_for(run_in_background(held.wait, "test"), 20, stopped=stopped)


@pytest.mark.parametrize(
    ("asked", "time_s"),
    [
        (query(), EMBED_BUDGET_S),
        (query(left_s=100), EMBED_BUDGET_S),
        (query(left_s=10), 5),
        (query(left_s=10, mode="dense"), EMBED_BUDGET_S),
        (query(left_s=3, mode="dense"), 3),
        (query(left_s=0), 0),
    ],
)
def test_a_search_that_can_go_on_by_words_embeds_for_half_of_its_time(asked, time_s):
    assert embedding_time_s(asked) == time_s


def test_an_embedding_call_that_outlasts_its_budget_is_not_waited_for(held):
    class Hung(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            held.wait(20)
            raise ModelBusy("at last")

    with pytest.raises(ModelUnavailable, match="timed out"):
        query_vector(Hung(), query(left_s=0.1))


def test_what_the_embedder_says_in_time_is_what_is_told():
    class Busy(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            assert time_budget_s == 1.0
            raise ModelBusy("throttled")

    with pytest.raises(ModelBusy):
        query_vector(Busy(), query(left_s=2))
    assert query_vector(WordEmbedder(), query(left_s=2)).tolist() == query_vector(WordEmbedder(), query()).tolist()
