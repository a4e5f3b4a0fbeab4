"""The agents of Amazon Bedrock Agents: made when chosen, within the service's limits, with nothing to spare."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from cicada.agents.classic.function import MAX_CALL_S
from cicada.agents.instructions import AgentKind
from cicada.agents.limits import SERVICE_SILENCE_S
from cicada_local.agents.classic_store import AgentStore
from stacks.agents_classic import offered
from stacks.app import add_stacks
from stacks.context import parse
from stacks.findings import flat
from tests.template.templates import ROOT, UNSTAGED, Resource, Synthesis
from tests.template.test_template_rules import ACCEPTED, findings

HERE = "<AWS::Region>:<AWS::AccountId>"
KINDS = ("profile", "theory")
AGENTS = (*KINDS, *(f"{kind}-reading" for kind in KINDS))
MODEL = "amazon.nova-lite-v1:0"


@pytest.fixture(scope="module")
def classic_settings(shipped_settings: dict[str, Any]) -> dict[str, Any]:
    return shipped_settings | {"agents": {"adapter": "classic"}}


@pytest.fixture(scope="module")
def classic(make: Callable[[dict[str, Any]], Synthesis], classic_settings: dict[str, Any]) -> Synthesis:
    return make(classic_settings)


def agent(synthesis: Synthesis, kind: str) -> Resource:
    (found,) = (
        one for one in synthesis.resources("AWS::Bedrock::Agent") if one.properties["AgentName"].endswith(f"-{kind}")
    )
    return found


def alias(synthesis: Synthesis, kind: str) -> Resource:
    wanted = f"<{agent(synthesis, kind).id}.AgentId>"
    (found,) = (
        one for one in synthesis.resources("AWS::Bedrock::AgentAlias") if flat(one.properties["AgentId"]) == wanted
    )
    return found


def tools_function(synthesis: Synthesis) -> Resource:
    (found,) = (f for f in synthesis.resources("AWS::Lambda::Function") if f.id.startswith("AgentsTools"))
    return found


def test_the_tools_function_outlives_a_call_and_is_not_taken_for_silent(classic: Synthesis) -> None:
    timeout_s = tools_function(classic).properties["Timeout"]
    assert MAX_CALL_S + 5 < timeout_s < SERVICE_SILENCE_S


def test_they_are_made_only_when_they_are_chosen(each: Synthesis) -> None:
    assert list(each.resources("AWS::Bedrock::Agent", "AWS::Bedrock::AgentAlias")) == []


@pytest.mark.parametrize("kind", AGENTS)
def test_the_service_takes_each_agent_as_it_is(classic: Synthesis, kind: str) -> None:
    properties = json.loads(json.dumps(agent(classic, kind).properties))
    properties["AgentResourceRoleArn"] = "arn:aws:iam::123456789012:role/agent"
    AgentStore().put_agent("AGENTAGENT", properties)


@pytest.mark.parametrize("kind", AGENTS)
def test_what_reads_is_run_by_the_function_and_the_rest_is_given_back(classic: Synthesis, kind: str) -> None:
    groups = {group["ActionGroupName"]: group for group in agent(classic, kind).properties["ActionGroups"]}
    assert flat(groups["reading"]["ActionGroupExecutor"]["Lambda"]) == f"<{tools_function(classic).id}.Arn>"
    if "worker" in groups:
        assert groups["worker"]["ActionGroupExecutor"] == {"CustomControl": "RETURN_CONTROL"}
    names = {
        name: {function["Name"] for function in group["FunctionSchema"]["Functions"]} for name, group in groups.items()
    }
    assert "search_script" in names["reading"]
    assert not names["reading"] & {
        "create_profile",
        "update_profile",
        "delete_profile",
        "state_theory",
        "refine_theory",
        "gather_evidence",
        "give_verdict",
        "record_verdict",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_agent_for_reading_is_told_of_every_tool_but_those_that_write(classic: Synthesis, kind: AgentKind) -> None:
    def told(name: str) -> set[str]:
        groups = agent(classic, name).properties["ActionGroups"]
        return {function["Name"] for group in groups for function in group["FunctionSchema"]["Functions"]}

    tools = {tool.name: tool.writes for tool in offered(kind)}
    assert told(kind) == set(tools)
    assert told(f"{kind}-reading") == {name for name, writes in tools.items() if not writes}


@pytest.mark.parametrize("kind", AGENTS)
def test_an_agent_is_prepared_and_its_alias_follows_its_definition(
    classic: Synthesis, make: Callable[[dict[str, Any]], Synthesis], classic_settings: dict[str, Any], kind: str
) -> None:
    assert agent(classic, kind).properties["AutoPrepare"] is True
    assert agent(classic, kind).properties["FoundationModel"] == f"us.{MODEL}"
    other = make(classic_settings | {"agents": {"adapter": "classic", "modelId": MODEL}})
    described = [alias(one, kind).properties["Description"] for one in (classic, other)]
    assert described[0] != described[1]


def test_only_these_agents_may_call_the_function(classic: Synthesis) -> None:
    wanted = f"<{tools_function(classic).id}.Arn>"
    permissions = [
        one.properties
        for one in classic.resources("AWS::Lambda::Permission")
        if flat(one.properties["FunctionName"]) == wanted
    ]
    assert {flat(one["SourceArn"]) for one in permissions} == {
        f"<{agent(classic, kind).id}.AgentArn>" for kind in AGENTS
    }
    assert {(one["Principal"], flat(one["SourceAccount"])) for one in permissions} == {
        ("bedrock.amazonaws.com", "<AWS::AccountId>")
    }


def test_the_answer_worker_may_call_these_aliases_and_knows_them(classic: Synthesis) -> None:
    invoked = {r for action, r, _ in classic.permissions("AnswerRole") if action == "bedrock:InvokeAgent"}
    assert invoked == {f"<{alias(classic, kind).id}.AgentAliasArn>" for kind in AGENTS}
    deployed = json.loads(classic.environment("answer")["AGENTS_DEPLOYED"])
    assert deployed == {
        kind: {
            "agentId": f"<{agent(classic, kind).id}.AgentId>",
            "aliasId": f"<{alias(classic, kind).id}.AgentAliasId>",
            "readingAgentId": f"<{agent(classic, f'{kind}-reading').id}.AgentId>",
            "readingAliasId": f"<{alias(classic, f'{kind}-reading').id}.AgentAliasId>",
        }
        for kind in KINDS
    }


def test_the_agents_role_calls_one_model_for_agents_of_this_account(classic: Synthesis) -> None:
    (role,) = (one for one in classic.resources("AWS::IAM::Role") if one.id.startswith("AgentsRole"))
    (statement,) = role.properties["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "bedrock.amazonaws.com"}
    assert flat(statement["Condition"]["StringEquals"]["aws:SourceAccount"]) == "<AWS::AccountId>"
    source = flat(statement["Condition"]["ArnLike"]["aws:SourceArn"])
    assert source == f"arn:<AWS::Partition>:bedrock:{HERE}:agent/*"
    allowed = {(action, resource) for action, resource, _ in classic.permissions("AgentsRole")}
    profile = f"arn:<AWS::Partition>:bedrock:{HERE}:inference-profile/us.{MODEL}"
    models = {
        f"arn:<AWS::Partition>:bedrock:{region}::foundation-model/{MODEL}"
        for region in ("<AWS::Region>", "us-east-1", "us-east-2", "us-west-1", "us-west-2")
    }
    assert allowed == {
        ("bedrock:GetInferenceProfile", profile),
        *(("bedrock:GetFoundationModel", model) for model in models),
        *(
            (action, resource)
            for action in ("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream")
            for resource in (profile, *models)
        ),
    }


def test_the_roles_policy_is_there_before_its_service_looks(classic: Synthesis) -> None:
    (role,) = (one for one in classic.resources("AWS::IAM::Role") if one.id.startswith("AgentsRole"))
    assert [policy["PolicyName"] for policy in role.properties["Policies"]] == ["Model"]
    assert not [one for one in classic.resources("AWS::IAM::Policy") if one.id.startswith("AgentsRole")]
    assert all(role.id in made.rest["DependsOn"] for made in classic.resources("AWS::Bedrock::Agent"))


def test_the_function_only_reads(classic: Synthesis) -> None:
    allowed = {action for action, _, _ in classic.permissions("AgentsToolsRole")}
    assert allowed == {
        "bedrock:InvokeModel",
        "dynamodb:GetItem",
        "dynamodb:Query",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "s3:GetObject",
        "s3:ListBucket",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    }


def test_nothing_of_it_costs_while_nobody_asks(classic: Synthesis, shipped: Synthesis) -> None:
    added = {one.type for one in classic.resources()} - {one.type for one in shipped.resources()}
    assert added == {"AWS::Bedrock::Agent", "AWS::Bedrock::AgentAlias"}  # both are free of charge themselves


def test_no_finding_is_left_unanswered(classic_settings: dict[str, Any], tmp_path: Path) -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"] | UNSTAGED
    app = App(context=context, outdir=str(tmp_path), builtin_cloud_formation_validation=True)
    add_stacks(app, parse(classic_settings, source="classic"))
    assert findings(app) == ""


def test_cfn_lint_finds_nothing(classic: Synthesis) -> None:
    lint = [sys.executable, "-c", "import cfnlint.runner; cfnlint.runner.main()"]
    template = str(classic.folder / f"{classic.prefix}-Answering.template.json")
    done = subprocess.run(
        [*lint, "--ignore-checks", *ACCEPTED, "--", template], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
