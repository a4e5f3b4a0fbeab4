"""The rules of resource types against the resource schemas of CloudFormation that cfn-lint carries."""

from __future__ import annotations

from typing import Any

import pytest

from cicada_cli.stack_changes.resource_rules import RULES

REGION = "us-east-1"


@pytest.fixture(scope="module")
def schemas() -> dict[str, dict[str, Any]]:
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    return {name: PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, name).schema for name in RULES}


def test_properties_that_make_a_resource_anew_are_those_of_cloudformation(schemas: dict[str, dict[str, Any]]) -> None:
    for name, schema in schemas.items():
        listed = (
            *(schema.get("createOnlyProperties") or ()),
            *(schema.get("conditionalCreateOnlyProperties") or ()),
        )
        named = {path.removeprefix("/properties/").replace("/", ".") for path in listed}
        assert set(RULES[name].replaced_by) == named, name


def test_every_property_that_the_rules_name_exists(schemas: dict[str, dict[str, Any]]) -> None:
    for name, rules in RULES.items():
        named = {rules.name, rules.one_each, *rules.within, *rules.fixed, *rules.replaced_by} - {None}
        assert {str(path).split(".")[0] for path in named} <= schemas[name]["properties"].keys(), name
