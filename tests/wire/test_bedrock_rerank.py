"""Re-ranking over real HTTP: the stand-in does what AWS does, and BedrockReranker gets a score for every text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cicada.errors import AnswerMalformed, ModelBusy, ModelRefused, ModelUnavailable
from cicada.models.bedrock_rerank import BedrockReranker
from cicada.models.ports import Unbounded, Usage
from cicada.models.prices import cost
from cicada.models.retries import RetryPolicy
from tests.wire.bedrock_service import BedrockService, serving

AMAZON = "amazon.rerank-v1:0"
COHERE = "cohere.rerank-v3-5:0"
QUERY = "Who found the letter in the boathouse?"
TEXTS = ["The tide came in.", "Aoi found the letter in the boathouse.", "The letter was wet."]


@pytest.fixture
def service() -> Iterator[BedrockService]:
    with serving() as running:
        yield running


def invoke(service: BedrockService, body: dict[str, Any], model_id: str = AMAZON) -> list[dict[str, Any]]:
    response = service.client().invoke_model(modelId=model_id, body=json.dumps(body))
    results: list[dict[str, Any]] = json.loads(response["body"].read())["results"]
    return results


def reranker(service: BedrockService, model_id: str = AMAZON) -> BedrockReranker:
    return BedrockReranker(service.client(), model_id, retry=RetryPolicy(max_attempts=2, base_s=0.001))


# --- the stand-in ---


@pytest.mark.parametrize(("model_id", "besides"), [(AMAZON, {}), (COHERE, {"api_version": 2})])
def test_b31_results_are_best_first_and_as_many_as_asked(service, model_id, besides):
    results = invoke(service, {"query": QUERY, "documents": TEXTS, "top_n": 2, **besides}, model_id)
    assert [result["index"] for result in results] == [1, 2]
    assert 1 >= results[0]["relevance_score"] > results[1]["relevance_score"] >= 0
    assert len(invoke(service, {"query": QUERY, "documents": TEXTS, **besides}, model_id)) == 3


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"documents": TEXTS}, "required key [query] not found"),
        ({"query": QUERY}, "required key [documents] not found"),
        ({"query": "", "documents": TEXTS}, "expected minLength"),
        ({"query": QUERY, "documents": []}, "expected 1 to 1000 items"),
        ({"query": QUERY, "documents": ["x"] * 1001}, "expected 1 to 1000 items"),
        ({"query": QUERY, "documents": ["x", ""]}, "#/documents/1"),
        ({"query": QUERY, "documents": TEXTS, "top_n": 4}, "exceeds the number of documents"),
        ({"query": QUERY, "documents": TEXTS, "top_n": 0}, "not greater or equal to 1"),
        ({"query": QUERY, "documents": TEXTS, "api_version": 2}, "extraneous key [api_version]"),
    ],
)
def test_b32_a_body_has_to_be_well_formed(service, body, words):
    with pytest.raises(ClientError) as raised:
        invoke(service, body)
    assert words in raised.value.response["Error"]["Message"]
    with pytest.raises(ClientError, match="api_version"):
        invoke(service, {"query": QUERY, "documents": TEXTS}, COHERE)


# --- the adapter ---


@pytest.mark.parametrize("model_id", [AMAZON, COHERE, f"arn:aws:bedrock:eu-west-1::foundation-model/{COHERE}"])
def test_every_text_gets_its_score_in_its_place(service, model_id):
    ranked = reranker(service, model_id).rerank(QUERY, [*TEXTS, "  "], time_budget_s=10, call_scope=Unbounded())
    assert ranked.scores[1] == max(ranked.scores)
    assert ranked.scores[3] == 0.0
    assert ranked.unscored == ()
    (sent,) = service.bodies
    assert sent["documents"] == TEXTS, "a blank text is not sent"
    assert ("api_version" in sent) == ("cohere" in model_id)
    (use,) = ranked.uses
    assert (use.purpose, use.calls, use.usage) == ("rerank", 1, Usage(queries=1))
    price = cost(model_id, use.usage)
    assert price is not None
    assert price.usd == (0.002 if "cohere" in model_id else 0.001)


def test_long_lists_go_out_in_several_calls_and_are_paid_by_the_hundred(service):
    service.rank = lambda query, texts: [len(text) / 100 for text in texts]
    texts = ["x" * (1 + n % 7) for n in range(2_300)]
    ranked = reranker(service).rerank("q", texts, time_budget_s=30, call_scope=Unbounded())
    assert [len(body["documents"]) for body in service.bodies] == [1000, 1000, 300]
    assert ranked.scores == tuple(len(text) / 100 for text in texts)
    assert (ranked.uses[0].calls, ranked.uses[0].usage.queries) == (3, 23)


def test_long_texts_are_paid_as_several(service):
    ranked = reranker(service).rerank("letter", ["a letter " * 600] * 60, time_budget_s=10, call_scope=Unbounded())
    assert ranked.uses[0].usage.queries > 1


def test_nothing_to_rank_costs_nothing(service):
    ranked = reranker(service).rerank(QUERY, [" "], time_budget_s=1, call_scope=Unbounded())
    assert (ranked.scores, ranked.uses, service.bodies) == ((0.0,), (), [])
    with pytest.raises(ModelRefused):
        reranker(service).rerank(" ", TEXTS, time_budget_s=1, call_scope=Unbounded())


def test_scores_beyond_the_scale_count_as_its_ends(service):
    service.rank = lambda query, texts: [1.5, -0.5, 0.25]
    assert reranker(service).rerank(QUERY, TEXTS, time_budget_s=5, call_scope=Unbounded()).scores == (1.0, 0.0, 0.25)


def test_faults_of_the_service_are_told_in_our_words(service):
    service.faults.arm("bedrock.rerank_throttle", times=1)
    assert reranker(service).rerank(QUERY, TEXTS, time_budget_s=5, call_scope=Unbounded()).uses[0].calls == 2
    service.faults.arm("bedrock.rerank_throttle")
    with pytest.raises(ModelBusy):
        reranker(service).rerank(QUERY, TEXTS, time_budget_s=5, call_scope=Unbounded())
    service.faults.disarm()
    for fault in ("bedrock.rerank_refuse", "bedrock.rerank_cut"):
        service.faults.arm(fault)
        with pytest.raises(ModelUnavailable):
            reranker(service).rerank(QUERY, TEXTS, time_budget_s=5, call_scope=Unbounded())
        service.faults.disarm()


def test_a_ranking_that_was_lost_may_have_been_paid_for(service):
    service.faults.arm("bedrock.rerank_throttle", times=1)
    assert ranked_usage(service) == Usage(queries=1)
    service.faults.arm("bedrock.rerank_cut", times=1)
    assert ranked_usage(service) == Usage(queries=1, reported=False)
    service.faults.arm("bedrock.rerank_slow", first_ms=20_000)
    with pytest.raises(ModelUnavailable) as late:
        reranker(service).rerank(QUERY, TEXTS, time_budget_s=0.1, call_scope=Unbounded())
    assert late.value.usage == Usage(reported=False)


def ranked_usage(service):
    (use,) = reranker(service).rerank(QUERY, TEXTS, time_budget_s=5, call_scope=Unbounded()).uses
    return use.usage


def test_results_that_lack_a_text_are_no_ranking(service):
    service.faults.arm("bedrock.rerank_malformed")
    with pytest.raises(AnswerMalformed) as raised:
        reranker(service).rerank(QUERY, TEXTS, time_budget_s=5, call_scope=Unbounded())
    assert raised.value.usage == Usage(queries=1)


def test_a_late_ranking_ends_with_its_time_budget(service):
    service.faults.arm("bedrock.rerank_slow", first_ms=20_000)
    with pytest.raises(ModelUnavailable, match="time budget"):
        reranker(service).rerank(QUERY, TEXTS, time_budget_s=0.1, call_scope=Unbounded())
