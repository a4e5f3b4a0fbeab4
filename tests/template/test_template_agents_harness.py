"""The agents' harness: made when chosen, bounded, without memory, and with nothing to spare."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from cicada.settings import AnswerSettings
from cicada_local.agents.harness_store import HarnessStore
from cicada_local.cloudformation import harnesses
from cicada_local.cloudformation.base import Declaration
from stacks.agents_harness import MAX_NAME_CHARS, harness_name
from stacks.app import add_stacks
from stacks.context import parse
from stacks.findings import flat
from tests.template.templates import ROOT, UNSTAGED, Synthesis
from tests.template.test_template_idle_cost import FREE_WHILE_IDLE
from tests.template.test_template_rules import ACCEPTED, findings

HARNESS, ENDPOINT = "AWS::BedrockAgentCore::Harness", "AWS::BedrockAgentCore::HarnessEndpoint"
MODEL = "amazon.nova-lite-v1:0"


@pytest.fixture(scope="module")
def settings(shipped_settings: dict[str, Any]) -> dict[str, Any]:
    return shipped_settings | {"agents": {"adapter": "harness", "maxTurnTokens": 900, "timeS": 30.0}}


@pytest.fixture(scope="module")
def chosen(make: Callable[[dict[str, Any]], Synthesis], settings: dict[str, Any]) -> Synthesis:
    return make(settings)


def test_nothing_of_it_is_made_unless_it_is_chosen(each: Synthesis) -> None:
    assert not list(each.resources(HARNESS, ENDPOINT))


def test_it_bills_by_use_alone(chosen: Synthesis) -> None:
    """A session is billed by processor time and memory; a harness, an endpoint and their versions are free."""
    assert {resource.type for resource in chosen.resources()} <= FREE_WHILE_IDLE | {HARNESS, ENDPOINT}
    runtime = chosen.one(HARNESS).properties["Environment"]["AgentCoreRuntimeEnvironment"]
    assert runtime["LifecycleConfiguration"] == {"IdleRuntimeSessionTimeout": 60, "MaxLifetime": 300}


def test_it_keeps_no_memory_which_it_would_get_by_default(chosen: Synthesis) -> None:
    assert chosen.one(HARNESS).properties["Memory"] == {"Disabled": {}}


def test_an_invocation_that_overrides_nothing_can_do_nothing(chosen: Synthesis) -> None:
    told = chosen.one(HARNESS).properties
    assert told["AllowedTools"] == ["no_tool"], "the shell of every session is no tool of ours"
    assert "Tools" not in told
    assert "Skills" not in told
    assert (told["MaxIterations"], told["MaxTokens"], told["TimeoutSeconds"]) == (1, 900, 30)
    model = told["Model"]["BedrockModelConfig"]
    assert (model["ModelId"].removeprefix("us."), model["MaxTokens"]) == (MODEL, 900)


def test_its_endpoint_follows_its_version(chosen: Synthesis) -> None:
    harness, endpoint = chosen.one(HARNESS), chosen.one(ENDPOINT)
    assert flat(endpoint.properties["HarnessId"]) == f"<{harness.id}.HarnessId>"
    assert flat(endpoint.properties["TargetVersion"]) == f"<{harness.id}.Version>"


def test_its_role_may_call_its_model_and_nothing_else(chosen: Synthesis) -> None:
    permissions = chosen.permissions("AgentsRole")
    assert {action for action, _, _ in permissions} == {
        "bedrock:InvokeModel",
        "bedrock:InvokeModelWithResponseStream",
    }
    assert all(resource.endswith(MODEL) for _, resource, _ in permissions)
    (role,) = (one for one in chosen.resources("AWS::IAM::Role") if one.id.startswith("AgentsRole"))
    (trust,) = role.properties["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "bedrock-agentcore.amazonaws.com"}
    assert flat(trust["Condition"]["StringEquals"]["aws:SourceAccount"]) == "<AWS::AccountId>"
    assert "ManagedPolicyArns" not in role.properties


def test_the_roles_policy_is_there_before_its_service_looks(chosen: Synthesis) -> None:
    (role,) = (one for one in chosen.resources("AWS::IAM::Role") if one.id.startswith("AgentsRole"))
    assert [policy["PolicyName"] for policy in role.properties["Policies"]] == ["Model"]
    assert not [one for one in chosen.resources("AWS::IAM::Policy") if one.id.startswith("AgentsRole")]
    assert all(role.id in made.rest["DependsOn"] for made in chosen.resources(HARNESS))


def test_the_answer_worker_may_invoke_it_and_no_other(chosen: Synthesis) -> None:
    harness, endpoint = chosen.one(HARNESS), chosen.one(ENDPOINT)
    may = {(action, resource) for action, resource, _ in chosen.permissions("AnswerRole") if "agentcore" in action}
    assert may == {
        (f"bedrock-agentcore:{action}", f"<{resource.id}.Arn>")
        for action in ("InvokeHarness", "InvokeAgentRuntime")
        for resource in (harness, endpoint)
    }


def test_the_answer_worker_is_told_of_it(chosen: Synthesis) -> None:
    deployed = AnswerSettings.read(chosen.environment("answer")).agents_deployed
    expected = {"harnessArn": f"<{chosen.one(HARNESS).id}.Arn>", "endpoint": "live"}
    assert deployed == {"profile": expected, "theory": expected}


def test_the_answer_worker_brings_a_boto3_that_knows_the_service(chosen: Synthesis, shipped: Synthesis) -> None:
    assert len(chosen.layers("answer")) == len(shipped.layers("answer")) + 1


@pytest.mark.parametrize("prefix", ["Cicada", "a", "A-Prefix-That-Has-As-Many-Letters-As-It-May", "X-agents"])
def test_its_name_is_one_that_the_service_takes(prefix: str) -> None:
    name = harness_name(prefix)
    assert len(name) <= MAX_NAME_CHARS
    assert name.endswith("_agents")
    assert name.replace("_", "").isalnum()


def test_other_peoples_rules_have_nothing_to_say(chosen: Synthesis, settings: dict[str, Any], tmp_path: Path) -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"] | UNSTAGED
    app = App(context=context, outdir=str(tmp_path), builtin_cloud_formation_validation=True)
    add_stacks(app, parse(settings, source="harness"))
    assert findings(app) == ""
    lint = [sys.executable, "-c", "import cfnlint.runner; cfnlint.runner.main()"]
    template = str(chosen.folder / f"{chosen.prefix}-Answering.template.json")
    done = subprocess.run([*lint, "--ignore-checks", *ACCEPTED, "--", template], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_local_cloud_makes_it_as_declared(chosen: Synthesis) -> None:
    store = HarnessStore()
    harnesses.serve(store)
    properties = chosen.one(HARNESS).properties

    def declared(**changed: Any) -> Declaration:
        return Declaration("any", properties | changed, "123456789012", "us-east-1", "Cicada-Answering", "Harness")

    made = harnesses.create_harness(declared())
    found = store.find(made.get_cfn_attribute("Arn"))
    assert found is not None
    endpoint = Declaration(
        "any", {"HarnessId": found.id, "EndpointName": "live", "TargetVersion": "1"}, "123456789012", "us-east-1"
    )
    harnesses.create_endpoint(endpoint)
    made.replace(properties | {"MaxTokens": 700})
    assert made.get_cfn_attribute("Version") == "2"
    live, latest = found.version_of("live"), found.version_of("DEFAULT")
    assert live is not None
    assert latest is not None
    assert (live.max_tokens, latest.max_tokens) == (900, 700)
    assert live.allowed_tools == ("no_tool",)
    assert live.model["bedrockModelConfig"]["maxTokens"] == 900
    with pytest.raises(ValueError, match="memory"):
        harnesses.create_harness(declared(Memory={}))
