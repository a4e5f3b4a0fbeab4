"""The guardrail of the documentation's example: made by the stacks, used by the answer worker and the agents alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from stacks.findings import flat
from tests.template.templates import ROOT, Synthesis


@pytest.fixture(scope="module")
def guarded(make: Callable[[dict[str, Any]], Synthesis], shipped_settings: dict[str, Any]) -> Synthesis:
    page = (ROOT / "docs" / "guardrails.md").read_text(encoding="utf-8")
    found = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return make(shipped_settings | json.loads(found[1]) | {"agents": {"adapter": "classic"}})


def test_the_guardrail_has_what_the_settings_say(guarded: Synthesis) -> None:
    (made,) = guarded.resources("AWS::Bedrock::Guardrail")
    assert made.properties["BlockedInputMessaging"] == made.properties["BlockedOutputsMessaging"]
    policies = {name for name in made.properties if name.endswith("PolicyConfig")}
    assert policies == {
        f"{name}PolicyConfig" for name in ("Topic", "Content", "Word", "SensitiveInformation", "ContextualGrounding")
    }
    entities = made.properties["SensitiveInformationPolicyConfig"]["PiiEntitiesConfig"]
    assert {one["Type"]: one["Action"] for one in entities} == {
        "EMAIL": "ANONYMIZE",
        "PHONE": "ANONYMIZE",
        "PASSWORD": "BLOCK",
    }
    (version,) = guarded.resources("AWS::Bedrock::GuardrailVersion")
    assert flat(version.properties["GuardrailIdentifier"]) == f"<{made.id}.GuardrailId>"


def test_only_who_needs_it_may_use_it(guarded: Synthesis) -> None:
    (made,) = guarded.resources("AWS::Bedrock::Guardrail")
    arn = f"<{made.id}.GuardrailArn>"
    documents = [one.properties["PolicyDocument"] for one in guarded.resources("AWS::IAM::Policy")]
    for role in guarded.resources("AWS::IAM::Role"):
        documents += [policy["PolicyDocument"] for policy in role.properties.get("Policies", ())]
    statements = [statement for document in documents for statement in document["Statement"]]
    uses = [one["Resource"] for one in statements if one["Action"] == "bedrock:ApplyGuardrail"]
    assert [flat(use) for use in uses] == [arn, arn]  # the worker's, and the agents' role


def test_worker_and_agents_are_told_of_it(guarded: Synthesis) -> None:
    told = [
        variables
        for function in guarded.resources("AWS::Lambda::Function")
        if "GUARDRAIL_ID" in (variables := function.properties.get("Environment", {}).get("Variables", {}))
    ]
    (variables,) = told
    assert variables["GUARDRAIL_STREAM"] == "sync"
    assert variables["GUARDRAIL_GROUNDING"] == "true"
    assert variables["GUARDRAIL_MESSAGE"] == "I cannot answer this question."
    for agent in guarded.resources("AWS::Bedrock::Agent"):
        assert flat(agent.properties["GuardrailConfiguration"]["GuardrailVersion"]).endswith(".Version>")
