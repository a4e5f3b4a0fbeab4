"""Which adapter the answer worker makes of its settings."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from pathlib import Path
from types import ModuleType

import boto3
import pytest

from cicada.agents.classic.agent import ClassicAgent
from cicada.agents.converse.agent import ConverseAgent
from cicada.agents.harness.agent import HarnessAgent
from cicada.agents.limits import SERVICE_SILENCE_S
from cicada.models.factory import ModelFactory
from cicada.settings import AnswerSettings
from tests.support.breakers import Clock, InMemoryBreakers, board
from tests.support.questions import FixedRetriever

ENVIRONMENT = {
    "REQUESTS_TABLE": "requests",
    "INDEX_BUCKET": "index",
    "GENERATION_MODEL_ID": "us.amazon.nova-lite-v1:0",
    "DIRECT_MODEL_ID": "us.amazon.nova-micro-v1:0",
    "EMBEDDING_MODEL_ID": "amazon.titan-embed-text-v2:0",
    "EMBEDDING_DIMENSIONS": "256",
}
DEPLOYED = {
    "converse": "{}",
    "classic": json.dumps(
        {
            kind: {"agentId": "A1", "aliasId": "L1", "readingAgentId": "A2", "readingAliasId": "L2"}
            for kind in ("profile", "theory")
        }
    ),
    "harness": '{"profile": {"harnessArn": "arn:h", "endpoint": "live"}, '
    '"theory": {"harnessArn": "arn:h", "endpoint": "live"}}',
}


def load(name: str) -> ModuleType:
    """A module of the answer function."""
    path = Path(__file__).parents[2] / "lambdas" / "answer" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"answer_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wiring() -> ModuleType:
    return load("agents")


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


def build(wiring, adapter, **more):
    told = {**ENVIRONMENT, "AGENTS_ADAPTER": adapter, "AGENTS_DEPLOYED": DEPLOYED.get(adapter, "{}"), **more}
    return wiring.build_agents(
        AnswerSettings.read(told),
        FixedRetriever(),
        ModelFactory(bedrock=lambda: None, secrets=lambda: None),
        board(InMemoryBreakers(), Clock()),
        None,
        bedrock=lambda: boto3.client("bedrock-runtime"),
    ).strategies


@pytest.mark.parametrize(
    ("adapter", "kind", "breaker"),
    [
        ("converse", ConverseAgent, "model:us.amazon.nova-lite-v1:0"),
        ("classic", ClassicAgent, "agent:classic"),
        ("harness", HarnessAgent, "agent:harness"),
    ],
)
def test_each_adapter_is_made_of_what_the_stacks_tell(wiring, adapter, kind, breaker):
    built = build(wiring, adapter)
    assert set(built) == {"profile_agent", "theory_agent"}
    assert {type(strategy.agent._guarded) for strategy in built.values()} == {kind}
    assert built["profile_agent"].needs == (breaker,)
    assert built["theory_agent"].needs == ("index", breaker)


def test_the_agents_model_is_their_own_where_one_is_named(wiring):
    built = build(wiring, "converse", AGENTS_MODEL_ID="amazon.nova-pro-v1:0")
    assert built["theory_agent"].needs == ("index", "model:amazon.nova-pro-v1:0")


@pytest.mark.parametrize("adapter", ["classic", "harness"])
def test_a_services_silence_ends_a_stream_before_a_read_does(wiring, monkeypatch, adapter):
    configs = []
    client = boto3.client

    def noted(*args, config=None):
        configs.append(config)
        return client(*args, config=config)

    monkeypatch.setattr(boto3, "client", noted)
    build(wiring, adapter)
    waits_s = [config.read_timeout for config in configs if config.read_timeout > SERVICE_SILENCE_S]
    assert len(waits_s) == 2  # an agent each; the tables' clients wait for less


def test_without_an_adapter_there_are_none(wiring):
    assert build(wiring, "none") == {}


def test_the_worker_embeds_questions_as_questions(wiring, monkeypatch):
    sent = []

    class Bedrock:
        def invoke_model(self, *, body, **_):
            sent.append(json.loads(body))
            return {"body": io.BytesIO(json.dumps({"embeddings": {"float": [[1.0] * 256]}}).encode())}

    monkeypatch.setitem(sys.modules, "agents", wiring)
    monkeypatch.setattr(boto3, "client", lambda *_, **__: Bedrock())
    settings = AnswerSettings.read({**ENVIRONMENT, "EMBEDDING_MODEL_ID": "eu.cohere.embed-v4:0"})
    embedder = load("wiring")._embedder(settings, board(InMemoryBreakers(), Clock()))
    embedder.embed(["Who rows?"], time_budget_s=5)
    assert [body["input_type"] for body in sent] == ["search_query"]
