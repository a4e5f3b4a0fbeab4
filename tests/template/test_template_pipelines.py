"""A pipeline for the strategies: what the answer worker is told of it, and which models it may call for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cicada.settings import AnswerSettings
from tests.template.templates import Synthesis

AUTH = {"mode": "oidc", "issuer": "https://issuer.example.org/", "audience": "cicada"}
RERANKER = "amazon.rerank-v1:0"
NOVA = "amazon.nova-lite-v1:0"


def invoked(synthesis: Synthesis) -> set[str]:
    """The models that the answer worker may call for a whole answer at once."""
    return {
        resource.rsplit("/", 1)[-1]
        for action, resource, _ in synthesis.permissions("AnswerRole")
        if action == "bedrock:InvokeModel" and "foundation-model" in resource
    }


@pytest.fixture(scope="module")
def advanced(make: Callable[[dict[str, Any]], Synthesis]) -> Synthesis:
    retrieval = {
        "pipeline": "advanced",
        "rerankerModelId": RERANKER,
        "expansionModelId": NOVA,
        "pipelineBudgetS": 6.5,
    }
    return make({"auth": AUTH, "retrieval": retrieval, "citations": {"judge": "rules"}})


def test_the_standard_pipeline_needs_the_embedding_model_alone(make: Callable[[dict[str, Any]], Synthesis]) -> None:
    made = make({"auth": AUTH, "agents": {"adapter": "none"}, "citations": {"judge": "rules"}})
    assert AnswerSettings.read(made.environment("answer")).retrieval_pipeline == "standard"
    assert invoked(made) == {"amazon.titan-embed-text-v2:0"}


def test_evidence_is_sorted_by_the_generation_model_and_citations_are_judged_by_the_direct_one(
    shipped: Synthesis,
) -> None:
    assert invoked(shipped) == {"amazon.titan-embed-text-v2:0", "amazon.nova-lite-v1:0", "amazon.nova-micro-v1:0"}


def test_a_pipelines_models_can_be_called_and_no_others(advanced: Synthesis) -> None:
    assert invoked(advanced) == {"amazon.titan-embed-text-v2:0", RERANKER, NOVA}


def test_what_the_worker_is_told_of_the_pipeline_is_what_it_reads(advanced: Synthesis) -> None:
    settings = AnswerSettings.read(advanced.environment("answer"))
    assert (settings.retrieval_pipeline, settings.pipeline_budget_s) == ("advanced", 6.5)
    assert (settings.reranker_model_id, settings.expansion_model_id) == (RERANKER, NOVA)


def test_without_names_the_model_of_direct_answers_does_both(make: Callable[[dict[str, Any]], Synthesis]) -> None:
    made = make({"auth": AUTH, "retrieval": {"pipeline": "advanced"}, "agents": {"adapter": "none"}})
    assert invoked(made) == {"amazon.titan-embed-text-v2:0", "amazon.nova-micro-v1:0"}
