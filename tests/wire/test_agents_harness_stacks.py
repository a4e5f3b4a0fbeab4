"""A harness of a stack, deployed to the local cloud by change sets as the CDK makes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cicada_local.agents.harness_store import HarnessStore
from cicada_local.cloudformation import harnesses
from tests.wire.local_services import Services, deployed_stack, outputs_of, running_services


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        yield running


def template(max_tokens: int, **changed: Any) -> dict[str, Any]:
    harness = {
        "HarnessName": "Cicada_agents",
        "ExecutionRoleArn": "arn:aws:iam::123456789012:role/any",
        "Model": {"BedrockModelConfig": {"ModelId": "local.extractive", "MaxTokens": max_tokens}},
        "AllowedTools": ["no_tool"],
        "MaxIterations": 1,
        "MaxTokens": max_tokens,
        "Memory": {"Disabled": {}},
        **changed,
    }

    def attribute(name: str) -> dict[str, Any]:
        return {"Fn::GetAtt": ["Harness", name]}

    endpoint = {"HarnessId": attribute("HarnessId"), "EndpointName": "live", "TargetVersion": attribute("Version")}
    return {
        "Resources": {
            "Harness": {"Type": "AWS::BedrockAgentCore::Harness", "Properties": harness},
            "Endpoint": {"Type": "AWS::BedrockAgentCore::HarnessEndpoint", "Properties": endpoint},
        },
        "Outputs": {"Arn": {"Value": attribute("Arn")}, "Endpoint": {"Value": {"Ref": "Endpoint"}}},
    }


def test_a_harness_is_made_and_deleted_with_its_stack(services: Services) -> None:
    store = HarnessStore()
    harnesses.serve(store)
    with deployed_stack(services, "Agents", template(900)) as stack:
        told = outputs_of(stack)
        harness = store.find(told["Arn"])
        assert harness is not None
        live = harness.version_of("live")
        assert live is not None
        assert (live.max_tokens, live.max_iterations, live.allowed_tools) == (900, 1, ("no_tool",))
        assert told["Endpoint"].startswith(told["Arn"])
    assert store.find(told["Arn"]) is None
