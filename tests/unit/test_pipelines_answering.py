"""A pipeline behind the strategies: its models' cost is the answer's, and what keeps failing is left alone."""

from __future__ import annotations

import logging

import pytest

from cicada.answering.rag import RagStrategy
from cicada.attempts.budgets import RETRIEVAL_SHARE
from cicada.breakers.guards import FAIR_BUDGET_S, GuardedForms, GuardedReranker
from cicada.errors import DependencyDown, ModelUnavailable, StreamBroken
from cicada.models.ports import Prompt, Unbounded, Usage
from cicada.retrieval.pipelines.expansion import HypotheticalPassage, Wordings
from cicada.retrieval.pipelines.retriever import PipelineRetriever
from cicada.retrieval.ports import SearchQuery
from cicada.rights import EVERYTHING
from cicada.semantic_cache.cache import NoEarlierAnswers
from tests.support.answers import asked, new_budget, parts
from tests.support.breakers import Clock, InMemoryBreakers, board
from tests.support.pipelines import (
    MODEL_ID,
    ScriptedModel,
    ScriptedReranker,
    ScriptedRetriever,
    document,
    pipelines_over,
    writing,
)
from tests.support.questions import ScriptedModel as Writer

QUESTION = "Who locked the boathouse?"
BOATHOUSE = document("boathouse", "Mara locked the boathouse at ten.")
PROMPT = Prompt("", "Who?")


@pytest.fixture
def store():
    return InMemoryBreakers()


@pytest.fixture
def breakers(store):
    return board(store, Clock())


def outage(breakers, model_id):
    for _ in range(5):
        breakers.failed(f"model:{model_id}", ModelUnavailable("down"))


def test_what_a_pipelines_models_take_is_part_of_the_answers_cost_and_story(caplog):
    caplog.set_level(logging.INFO, "cicada")
    over = pipelines_over(
        ScriptedRetriever({QUESTION: (BOATHOUSE,)}),
        model=writing("who shut the boathouse"),
        reranker=ScriptedReranker(lambda _: 0.9),
    )
    through = PipelineRetriever(over, "advanced")
    attempt_budget = new_budget(retrieval_share=RETRIEVAL_SHARE)
    answering = RagStrategy(through, NoEarlierAnswers(), Writer("Mara [1]."), top_k=5, min_score=0.5, prompt_passages=5)
    retrieved, _, _ = parts(answering.answer(asked(QUESTION), attempt_budget))
    assert [source.passage_id for source in retrieved.sources] == ["boathouse"]
    assert [(call.purpose, call.model_id) for call in attempt_budget.made] == [
        ("retrieval", MODEL_ID),
        ("retrieval", MODEL_ID),
        ("retrieval", "amazon.rerank-v1:0"),
        ("answer", "local.extractive"),
    ]
    assert attempt_budget.spent.usd == pytest.approx(2 * (100 * 0.035e-6 + 10 * 0.14e-6) + 0.001)
    told = [record for record in caplog.records if getattr(record, "step", None) == "model_call"]
    assert [record.purpose for record in told].count("retrieval") == 3


def test_a_pipelines_model_of_unknown_cost_makes_the_answers_cost_unknown():
    over = pipelines_over(
        ScriptedRetriever({QUESTION: (BOATHOUSE,)}),
        reranker=ScriptedReranker(lambda _: 0.9, error=ModelUnavailable("down")),
    )
    attempt_budget = new_budget()
    through = PipelineRetriever(over, "rerank")
    answering = RagStrategy(through, NoEarlierAnswers(), Writer("Mara [1]."), top_k=5, min_score=0.5, prompt_passages=5)
    retrieved, _, _ = parts(answering.answer(asked(QUESTION), attempt_budget))
    assert attempt_budget.spent.usd is None
    assert [one.code for one in retrieved.degraded] == ["rerank_incomplete"]


def test_a_re_ranker_that_keeps_failing_is_left_alone_and_the_search_goes_on(breakers):
    reranker = ScriptedReranker(lambda _: 0.9)
    outage(breakers, reranker.model_id)
    guarded = GuardedReranker(reranker, breakers)
    with pytest.raises(DependencyDown):
        guarded.rerank("fog", ["a"], time_budget_s=1, call_scope=Unbounded())
    over = pipelines_over(ScriptedRetriever({QUESTION: (BOATHOUSE,)}), reranker=guarded)
    found = PipelineRetriever(over, "rerank").search(SearchQuery(QUESTION, readable=EVERYTHING))
    assert (reranker.asked, [hit.passage for hit in found.hits]) == ([], [BOATHOUSE])


def test_a_guarded_model_that_fills_in_forms_is_the_model_until_it_keeps_failing(breakers):
    model = ScriptedModel({Wordings: Wordings(queries=["x"])})
    guarded = GuardedForms(model, breakers)
    assert (guarded.model_id, guarded.max_tokens) == (model.model_id, model.max_tokens)
    filled = guarded.fill(PROMPT, Wordings, time_budget_s=5, call_scope=Unbounded())
    assert (filled.value.queries, filled.usage) == (["x"], Usage(100, 10))
    outage(breakers, MODEL_ID)
    with pytest.raises(DependencyDown):
        guarded.fill(PROMPT, Wordings, time_budget_s=5, call_scope=Unbounded())


@pytest.mark.parametrize("down", [ModelUnavailable("too slow"), StreamBroken("too slow")])
@pytest.mark.parametrize(("budget_s", "counted"), [(FAIR_BUDGET_S, 1), (FAIR_BUDGET_S / 2, 0)])
def test_running_out_of_a_short_time_is_no_failure_of_the_models(breakers, store, budget_s, counted, down):
    forms = GuardedForms(ScriptedModel({HypotheticalPassage: down}), breakers)
    reranker = GuardedReranker(ScriptedReranker(lambda _: 0.9, error=down), breakers)
    with pytest.raises(type(down)):
        forms.fill(PROMPT, HypotheticalPassage, time_budget_s=budget_s, call_scope=Unbounded())
    with pytest.raises(type(down)):
        reranker.rerank("fog", ["a"], time_budget_s=budget_s, call_scope=Unbounded())
    for model_id in (MODEL_ID, "amazon.rerank-v1:0"):
        breaker = store.breakers.get(f"model:{model_id}")
        assert (0 if breaker is None else len(breaker.failures_ms)) == counted
