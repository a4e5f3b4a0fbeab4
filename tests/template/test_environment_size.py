"""Environments that Lambda would refuse half way through a deployment are refused at synthesis."""

from __future__ import annotations

from typing import Any

import pytest

from cicada.ingest.contracts import LoadingPlan
from cicada_local.functions.deployment_limits import ENVIRONMENT_BYTES, environment_bytes
from stacks.context import parse
from stacks.environment_size import LIMIT_BYTES, check_environments
from stacks.ingest import loading_plan
from stacks.settings import ContextInvalid
from tests.template.templates import FUNCTIONS, Synthesis


def template(**variables: Any) -> dict[str, Any]:
    properties = {"Environment": {"Variables": variables}}
    return {"Resources": {"DocumentFunctionA1": {"Type": "AWS::Lambda::Function", "Properties": properties}}}


def test_what_lambda_measures_is_what_is_allowed() -> None:
    assert LIMIT_BYTES == ENVIRONMENT_BYTES
    room = LIMIT_BYTES - environment_bytes({"LOADING": ""})
    assert environment_bytes({"LOADING": "x" * room}) == LIMIT_BYTES
    check_environments([template(LOADING="x" * room)])
    with pytest.raises(ContextInvalid):
        check_environments([template(LOADING="x" * (room + 1))])


def test_the_setting_that_outgrew_the_environment_is_named() -> None:
    arn = {"Fn::Join": [":", ["arn", {"Ref": "AWS::Partition"}, {"Ref": "Machine"}]]}
    with pytest.raises(ContextInvalid, match=r"^ingest\.collections: too long\. The function DocumentFunctionA1 would"):
        check_environments([template(LOADING='{"a":"b"}' * 400, OTHER="x" * 3000, ARN=arn)])
    with pytest.raises(ContextInvalid, match=r"^OTHER: too long"):
        check_environments([template(OTHER="x" * 5000)])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_environment_leaves_room(full: Synthesis, function: str) -> None:
    check_environments([template(**full.environment(function), ROOM="x" * 500)])


def collections(count: int) -> dict[str, Any]:
    return {f"collection-{number:03}": {"chunkSize": 300 + number, "overlap": 50} for number in range(count)}


def test_twenty_collections_with_rules_of_their_own_fit(shipped_settings: dict[str, Any]) -> None:
    own = collections(20) | {"like-the-others": {}}
    settings = parse(shipped_settings | {"ingest": {"collections": own}}, source="the test")
    plan = loading_plan(settings)
    written = plan.model_dump_json(by_alias=True, exclude_defaults=True)
    assert len(written) < 2048
    assert LoadingPlan.model_validate_json(written) == plan
    assert plan.collections.keys() == collections(20).keys()
