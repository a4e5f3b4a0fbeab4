"""What a pipeline's own calls to models may take of a request: time, calls, tokens and cost, until it is stopped."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.answering.rag import RagStrategy
from cicada.attempts.budgets import (
    RETRIEVAL_CALLS_A_CALL,
    RETRIEVAL_SHARE,
    AttemptBudget,
    RequestBudget,
    retrieval_budget,
    retrieval_share,
)
from cicada.attempts.chain import MAX_MODEL_CALLS
from cicada.breakers.guards import GuardedRetriever
from cicada.delivery.record import RequestSpend
from cicada.errors import AnswerMalformed, BudgetSpent, DependencyDown, IndexUnavailable, ModelUnavailable
from cicada.models.ports import Filled, Stopped, Usage
from cicada.retrieval.pipelines.expansion import HypotheticalPassage, Wordings
from cicada.retrieval.pipelines.model_reranker import Marks, ModelReranker, PassageMarks
from cicada.retrieval.pipelines.retriever import PipelineRetriever
from cicada.retrieval.ports import SearchQuery
from cicada.rights import EVERYTHING
from tests.support.answers import asked
from tests.support.breakers import Clock, InMemoryBreakers, board
from tests.support.pipelines import (
    MODEL_ID,
    USAGE,
    ScriptedModel,
    ScriptedReranker,
    ScriptedRetriever,
    document,
    pipelines_over,
    run,
    writing,
)
from tests.support.questions import UNUSED

QUESTION = "fog bell"
A = document("a")


def attempt_budget(*, calls=2, left_s=60.0, **budget):
    whole = RequestBudget(**({"retrieval_share": RETRIEVAL_SHARE} | budget))
    return AttemptBudget("rag", calls=calls, deadline=time.monotonic() + left_s, budget=whole)


def search(allowed, retriever=None, name="advanced", **parts):
    """Search as a strategy does, within what an attempt may spend."""
    over = pipelines_over(retriever or ScriptedRetriever({QUESTION: (A,)}), **parts)
    strategy = RagStrategy(PipelineRetriever(over, name), UNUSED, UNUSED, top_k=20, min_score=0.0, prompt_passages=10)
    return strategy.search(asked(QUESTION), allowed)


def marker():
    """Marks every passage alike, of however many it is shown."""
    every = [Marks(n=n, direct_relevance=5, completeness=5, specificity=5) for n in range(1, 11)]
    return ScriptedModel({PassageMarks: lambda prompt: PassageMarks(marks=every)})


@pytest.fixture
def held():
    """What a model waits for; let go at the end, so that no thread outlives its test."""
    event = threading.Event()
    yield event
    event.set()


# --- the stop ---


def test_an_answer_that_nobody_wants_any_more_is_not_searched_for(held):
    allowed = attempt_budget()

    def stops(_):
        allowed.stop()
        return held

    model = ScriptedModel({Wordings: stops, HypotheticalPassage: held})
    retriever = ScriptedRetriever({QUESTION: (A,)})
    with pytest.raises(Stopped):
        search(allowed, retriever, model=model)
    assert (model.stopped.is_set(), retriever.asked) == (True, [])
    assert [(call.model_id, call.fault) for call in allowed.made] == [(MODEL_ID, "out_of_time")] * 2


def test_after_the_stop_no_stage_begins():
    allowed = attempt_budget()

    def stops(_):
        allowed.stop()
        return Wordings(queries=["foghorn"])

    reranker = ScriptedReranker(lambda _: 1.0)
    model = ScriptedModel({Wordings: stops, HypotheticalPassage: HypotheticalPassage(passage="x")})
    with pytest.raises(Stopped):
        search(allowed, model=model, reranker=reranker)
    assert reranker.asked == []


def test_a_search_is_not_waited_for_after_the_stop(held):
    allowed = attempt_budget()
    threading.Timer(0.05, allowed.stop).start()
    with pytest.raises(Stopped):
        search(allowed, ScriptedRetriever({QUESTION: held}), "standard")


def test_marking_that_nobody_wants_any_more_is_given_up(held):
    allowed = attempt_budget()

    def stops(_):
        allowed.stop()
        return held

    model = ScriptedModel({PassageMarks: stops})
    with pytest.raises(Stopped):
        search(allowed, name="rerank", reranker=ModelReranker(model))
    assert model.stopped.is_set()


# --- time ---


def test_stages_share_the_time_that_the_attempt_has_left():
    model = writing("foghorn")
    retriever = ScriptedRetriever({QUESTION: (A,)})
    search(attempt_budget(left_s=2.0), retriever, model=model)
    assert 0 < max(model.budgets_s) <= 0.5
    assert 0 < retriever.query(QUESTION).limits.time_left_s() <= 2.0


def test_the_pipelines_own_time_holds_where_the_attempt_has_more():
    model = writing("foghorn")
    search(attempt_budget(left_s=600.0), model=model)
    assert 0 < max(model.budgets_s) <= 2.5


# --- calls, tokens, cost ---


@given(
    st.integers(1, 1_000_000),
    st.floats(0.001, 10.0),
    st.lists(st.integers(0, 2), min_size=1, max_size=4),
    st.booleans(),
)
def test_whatever_attempts_there_are_the_requests_bounds_hold(tokens, usd, allotted, with_models):
    allotted = [calls for at, calls in enumerate(allotted) if sum(allotted[: at + 1]) <= MAX_MODEL_CALLS]
    budget = RequestBudget(tokens=tokens, cost_usd=usd, retrieval_share=RETRIEVAL_SHARE if with_models else 0.0)
    most = sum(calls * (budget.tokens_a_call + budget.retrieval_tokens_a_call) for calls in allotted)
    dear = sum(calls * (budget.cost_usd_a_call + budget.retrieval_cost_usd_a_call) for calls in allotted)
    assert most <= tokens
    assert dear <= usd * 1.000001


def test_a_first_attempts_retrieval_may_take_a_quarter_of_the_requests_bounds():
    budget = RequestBudget(tokens=80_000, cost_usd=0.4, retrieval_share=RETRIEVAL_SHARE)
    assert budget.tokens_a_call == 10_000
    assert budget.cost_usd_a_call == pytest.approx(0.05)
    stage_budget = retrieval_budget(2, budget)
    stage_budget.allow("somebody.unknown-v1", Usage(15_000, 4_000))
    with pytest.raises(BudgetSpent, match=r"2000 tokens; (the limit is )?1000"):
        stage_budget.allow("somebody.unknown-v1", Usage(2_000))
    stage_budget.allow("somebody.unknown-v1", Usage(1_000))


def test_a_retrievals_calls_may_cost_their_share_and_no_more():
    stage_budget = retrieval_budget(1, RequestBudget(cost_usd=0.016, retrieval_share=RETRIEVAL_SHARE))
    stage_budget.allow("amazon.rerank-v1:0", Usage(queries=2))
    with pytest.raises(BudgetSpent, match="USD"):
        stage_budget.allow("amazon.rerank-v1:0", Usage(queries=1))


def test_a_retrieval_has_its_own_number_of_calls():
    stage_budget = retrieval_budget(2, RequestBudget(retrieval_share=RETRIEVAL_SHARE))
    for _ in range(2 * RETRIEVAL_CALLS_A_CALL):
        stage_budget.call()
    with pytest.raises(BudgetSpent):
        stage_budget.call()


def test_a_plain_search_takes_nothing_from_the_answers_share():
    assert (retrieval_share("standard"), retrieval_share("rerank"), retrieval_share("advanced")) == (
        0.0,
        RETRIEVAL_SHARE,
        RETRIEVAL_SHARE,
    )
    assert RequestBudget().tokens_a_call == 30_000


def test_a_retrievals_calls_are_none_of_the_answers():
    allowed = attempt_budget(calls=2)
    search(allowed, model=writing("foghorn"), reranker=ScriptedReranker(lambda _: 0.9))
    assert (allowed.calls_left, allowed.spent.calls) == (2, 3)


def test_a_stage_that_may_not_call_its_model_is_left_out_and_says_so():
    model = writing("foghorn")
    allowed = attempt_budget(calls=0)
    found = search(allowed, model=model, reranker=ScriptedReranker(lambda _: 0.9))
    assert [hit.passage for hit in found.hits] == [A]
    assert [one.code for one in found.degraded] == [
        "query_expansion_incomplete",
        "hyde_incomplete",
        "rerank_incomplete",
    ]
    assert {call.fault for call in allowed.made} == {"budget_spent"}
    assert allowed.spent == RequestSpend()


def test_passages_beyond_the_retrievals_share_keep_their_places_and_that_is_said():
    documents = tuple(document(f"d{n:02}", "fog " * 400) for n in range(30))
    allowed = attempt_budget(calls=1, tokens=60_000)
    reranker = ModelReranker(marker(), at_once=1)
    found = search(allowed, ScriptedRetriever({QUESTION: documents}), "rerank", reranker=reranker)
    (lack,) = found.degraded
    assert lack.code == "rerank_incomplete"
    assert "of 30 passages could not be re-ranked" in lack.message
    assert {call.fault for call in allowed.made} == {None, "budget_spent"}
    assert sum(call.calls for call in allowed.made) == 1


# --- the account ---


def test_what_a_retrieval_took_that_failed_is_noted_all_the_same():
    allowed = attempt_budget()
    with pytest.raises(IndexUnavailable):
        search(allowed, ScriptedRetriever({QUESTION: IndexUnavailable("down")}), model=writing("foghorn"))
    assert [(call.purpose, call.model_id, call.usage) for call in allowed.made] == [("retrieval", MODEL_ID, USAGE)] * 2


def test_a_bug_in_one_stage_does_not_lose_what_the_one_beside_it_took():
    def broken(_):
        raise RuntimeError("a bug")

    allowed = attempt_budget()
    model = ScriptedModel({Wordings: broken, HypotheticalPassage: HypotheticalPassage(passage="x y")})
    with pytest.raises(RuntimeError):
        search(allowed, model=model)
    assert len(allowed.made) == 2


class Misfitting:
    """A model that takes two calls for a batch, and gives nothing that fits."""

    model_id = MODEL_ID
    max_tokens = 500

    def __init__(self) -> None:
        self.calls = 0

    def fill(self, prompt, form, *, time_budget_s, call_scope):
        for _ in range(2):
            call_scope.call()
            self.calls += 1
        error = AnswerMalformed("no")
        error.usage = Usage(3_000, 1_000)
        raise error


def test_every_call_of_a_re_ranking_that_fails_is_counted():
    retriever = ScriptedRetriever({QUESTION: tuple(document(f"d{n}") for n in range(50))})
    model = Misfitting()
    over = pipelines_over(retriever, reranker=ModelReranker(model, at_once=1))
    (use,) = run(over, pipeline="rerank", enable_captions=False).model_uses
    assert (use.calls, use.input_tokens, use.output_tokens) == (model.calls, 5 * 3_000, 5 * 1_000)
    assert model.calls == 10


def test_a_re_ranking_that_is_not_even_tried_took_no_call_and_cost_nothing():
    class Down(ScriptedReranker):
        def rerank(self, query, texts, *, time_budget_s, call_scope):
            raise DependencyDown("open")

    over = pipelines_over(ScriptedRetriever({QUESTION: (A,)}), reranker=Down(lambda _: 1.0))
    (use,) = run(over, pipeline="rerank", enable_captions=False).model_uses
    assert (use.calls, use.cost_usd) == (0, 0.0)


def test_a_model_that_is_asked_by_a_stage_that_is_over_is_not_called(held):
    class Slow(ScriptedModel):
        @property
        def model_id(self):
            held.wait(20)
            return MODEL_ID

        def fill(self, prompt, form, *, time_budget_s, call_scope):
            try:
                call_scope.call()
                called.append(form)
            except Stopped:
                refused.set()
                raise
            return Filled(Wordings(queries=["foghorn"]), USAGE, 1)

    called: list[Any] = []
    refused = threading.Event()
    over = pipelines_over(ScriptedRetriever({QUESTION: (A,)}), model=Slow({}), clock=lambda: 0.0)  # it does begin
    response = run(over, time_budget_s=0.2, enable_hyde=False, enable_rerank=False, enable_captions=False)
    held.set()
    assert refused.wait(20)
    assert (called, response.model_uses) == ([], ())


# --- the index's breaker ---


def test_a_whole_retrieval_is_one_probe_of_an_index_that_works_again():
    clock, store = Clock(), InMemoryBreakers()
    breakers = board(store, clock)
    for _ in range(5):
        breakers.failed("index", IndexUnavailable("down"))
    clock.pass_s(130)
    texts = (QUESTION, "foghorn", "mist signal", "The made-up passage.")
    retriever = ScriptedRetriever(dict.fromkeys(texts, (A,)))
    over = pipelines_over(retriever, model=writing("foghorn", "mist signal"))
    guarded = GuardedRetriever(PipelineRetriever(over, "advanced"), breakers)
    found = guarded.search(SearchQuery(QUESTION, min_score=0.0, readable=EVERYTHING))
    assert sorted(query.text for query in retriever.asked) == sorted(texts)
    assert [one.code for one in found.degraded] == ["rerank_incomplete"]
    assert store.breakers["index"].open_since_ms is None


def test_while_the_index_is_left_alone_no_wording_is_asked_for():
    breakers = board(InMemoryBreakers(), Clock())
    for _ in range(5):
        breakers.failed("index", IndexUnavailable("down"))
    model = ScriptedModel({Wordings: ModelUnavailable("never asked")})
    over = pipelines_over(ScriptedRetriever({QUESTION: (A,)}), model=model)
    with pytest.raises(DependencyDown):
        GuardedRetriever(PipelineRetriever(over, "advanced"), breakers).search(
            SearchQuery(QUESTION, readable=EVERYTHING)
        )
    assert model.prompts == []
