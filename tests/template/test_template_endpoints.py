"""Endpoints of one's own: what a deployer may write, what the answer worker is told, and which secrets it may read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cicada.models.endpoints import Endpoints
from cicada.settings import AnswerSettings
from stacks.context import parse
from stacks.settings import ContextInvalid
from tests.template.templates import Synthesis

AUTH = {"mode": "oidc", "issuer": "https://issuer.example.org/", "audience": "cicada"}
SECRET = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:cicada/groq-AbCdEf"
GROQ = {
    "baseUrl": "https://api.groq.com/openai/v1/",
    "secretArn": SECRET,
    "models": {
        "openai/gpt-oss-120b": {"inputUsdPerMillion": 0.15, "outputUsdPerMillion": 0.6},
        "llama-3.1-8b-instant": {
            "inputUsdPerMillion": 0.05,
            "outputUsdPerMillion": 0.08,
            "cachedInputUsdPerMillion": 0.025,
        },
        "not-used": {"inputUsdPerMillion": 1, "outputUsdPerMillion": 1},
    },
}
MODELS = {
    "generationModelId": "groq/openai/gpt-oss-120b",
    "perStrategy": {"rag": "us.amazon.nova-pro-v1:0", "direct": "groq/llama-3.1-8b-instant"},
    "endpoints": {"groq": GROQ, "idle": {**GROQ, "secretArn": SECRET.replace("groq", "idle")}},
}


@pytest.fixture(scope="module")
def with_endpoint(make: Callable[[dict[str, Any]], Synthesis]) -> Synthesis:
    return make({"auth": AUTH, "models": MODELS, "agents": {"adapter": "none"}})


def complaint(models: dict[str, Any], **more: Any) -> str:
    with pytest.raises(ContextInvalid) as refused:
        parse({"auth": AUTH, "models": models, **more}, source="mine.json")
    return str(refused.value)


def test_agents_need_a_model_of_bedrock_or_are_done_without() -> None:
    assert "agents.modelId" in complaint(MODELS)
    named = {"auth": AUTH, "models": MODELS, "agents": {"modelId": "us.amazon.nova-lite-v1:0"}}
    assert parse(named, source="mine.json").agents.model_id == "us.amazon.nova-lite-v1:0"


def test_the_answer_worker_is_told_of_the_endpoints_that_it_calls_and_of_no_other(with_endpoint: Synthesis) -> None:
    environment = with_endpoint.environment("answer")
    endpoints = Endpoints.model_validate_json(environment["MODEL_ENDPOINTS"])
    assert endpoints.model_ids() == ["groq/llama-3.1-8b-instant", "groq/openai/gpt-oss-120b"]
    assert endpoints.root["groq"].base_url == "https://api.groq.com/openai/v1"
    assert json.loads(environment["STRATEGY_MODEL_IDS"]) == MODELS["perStrategy"]
    assert sum(len(name) + len(value) for name, value in environment.items()) < 4096  # what Lambda takes


def test_what_the_worker_is_told_is_what_it_reads(with_endpoint: Synthesis) -> None:
    settings = AnswerSettings.read(with_endpoint.environment("answer"))
    assert settings.generation_model_id == "groq/openai/gpt-oss-120b"
    assert settings.strategy_model_ids["rag"] == "us.amazon.nova-pro-v1:0"
    found = settings.model_endpoints.find("groq/openai/gpt-oss-120b")
    assert found is not None
    assert found[1] == "openai/gpt-oss-120b"


def test_the_answer_worker_may_read_that_key_and_no_other_secret(with_endpoint: Synthesis) -> None:
    allowed = with_endpoint.permissions("AnswerRole")
    assert [(action, resource) for action, resource, _ in allowed if "secret" in action] == [
        ("secretsmanager:GetSecretValue", SECRET)
    ]
    everybody = [action for action, _, _ in with_endpoint.permissions("") if "secret" in action]
    assert len(everybody) == 1


def test_of_bedrocks_models_only_those_of_bedrock_are_allowed(with_endpoint: Synthesis) -> None:
    named = {
        resource.rsplit("/", 1)[-1]
        for action, resource, _ in with_endpoint.permissions("AnswerRole")
        if action == "bedrock:InvokeModelWithResponseStream"
    }
    assert named == {
        "us.amazon.nova-pro-v1:0",
        "amazon.nova-pro-v1:0",
        "us.amazon.nova-micro-v1:0",
        "amazon.nova-micro-v1:0",
    }


def test_a_deployment_without_endpoints_knows_nothing_of_them(shipped: Synthesis) -> None:
    assert not {"MODEL_ENDPOINTS", "STRATEGY_MODEL_IDS"} & shipped.environment("answer").keys()
    assert not any("secret" in action for action, _, _ in shipped.permissions(""))


def endpoint(**changes: Any) -> dict[str, Any]:
    return {"endpoints": {"groq": {**GROQ, **changes}}}


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (endpoint(baseUrl="http://api.groq.com/v1"), "models.endpoints.groq.baseUrl: must begin with https://"),
        (endpoint(baseUrl="http://localhost:11434/v1"), "models.endpoints.groq.baseUrl: must begin with https://"),
        (endpoint(baseUrl="api.groq.com"), "models.endpoints.groq.baseUrl: must be a URL"),
        (endpoint(baseUrl="https://me:sk@api.groq.com"), "models.endpoints.groq.baseUrl: must not contain a user name"),
        (endpoint(baseUrl="https://api.groq.com/?key=1"), "models.endpoints.groq.baseUrl: must not contain ? or #"),
        (endpoint(secretArn="gsk_0123456789"), "models.endpoints.groq.secretArn: "),
        (endpoint(secretArn=SECRET.removesuffix("-AbCdEf")), "models.endpoints.groq.secretArn: "),
        (endpoint(key="gsk_0123456789"), "models.endpoints.groq.key: there is no such setting"),
        (
            endpoint(models={"llama": {"inputUsdPerMillion": 1}}),
            "models.endpoints.groq.models.llama.outputUsdPerMillion",
        ),
        (
            endpoint(models={"llama": {"inputUsdPerMillion": -1, "outputUsdPerMillion": 1}}),
            "models.endpoints.groq.models.llama.inputUsdPerMillion: ",
        ),
        ({"endpoints": {"Groq": GROQ}}, "models.endpoints.Groq"),
        ({"generationModelId": "groq/llama"}, "generationModelId: no endpoint of models.endpoints has groq/llama"),
        ({"perStrategy": {"cag": "groq/llama"}}, "perStrategy.cag: no endpoint of models.endpoints has groq/llama"),
        ({"perStrategy": {"theory": "us.amazon.nova-lite-v1:0"}}, "models.perStrategy.theory"),
        ({"embeddingModelId": "groq/llama"}, "models.embeddingModelId: "),
    ],
)
def test_a_wrong_endpoint_is_named(models: dict[str, Any], said: str) -> None:
    assert said in complaint(models)


def test_a_model_that_is_not_known_is_answered_with_those_that_are() -> None:
    said = complaint({**endpoint(), "generationModelId": "groq/llama"})
    assert "Known are: groq/llama-3.1-8b-instant, groq/not-used, groq/openai/gpt-oss-120b" in said


def test_a_model_of_a_pipeline_must_be_served_too() -> None:
    said = complaint({}, retrieval={"pipeline": "rerank", "rerankerModelId": "groq/llama"})
    assert "retrieval.rerankerModelId: no endpoint of models.endpoints has groq/llama" in said


def test_the_budget_must_cover_the_prices_that_the_settings_tell() -> None:
    dear = {"dear": {"inputUsdPerMillion": 50, "outputUsdPerMillion": 100}}
    said = complaint({**endpoint(models=dear), "perStrategy": {"hybrid": "groq/dear"}})
    assert "budget.requestCostUsd: must be at least" in said
    assert "one of groq/dear can cost 0.4548" in said


def test_a_server_of_this_machine_is_for_the_local_cloud_alone() -> None:
    local = {"baseUrl": "http://127.0.0.1:11434/v1", "secretArn": None}
    settings = parse({"auth": {"mode": "none"}, "local": True, "models": endpoint(**local)}, source="local")
    assert settings.models.endpoints["groq"].base_url == "http://127.0.0.1:11434/v1"
    elsewhere = {"auth": {"mode": "none"}, "local": True, "models": endpoint(baseUrl="http://192.168.0.9:11434/v1")}
    with pytest.raises(ContextInvalid, match="must begin with https://"):
        parse(elsewhere, source="local")


def test_a_secret_of_another_region_is_refused_before_anything_is_deployed() -> None:
    settings = parse({"auth": AUTH, "models": endpoint()}, source="mine")
    with pytest.raises(ContextInvalid, match=r"models\.endpoints\.groq\.secretArn: the secret must lie in us-east-1"):
        settings.for_environment(account="1", region="us-east-1")
