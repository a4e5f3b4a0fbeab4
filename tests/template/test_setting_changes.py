"""Every setting goes to another value and back, over the real templates, by CloudFormation's rules."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import pytest

from cicada_cli.stack_changes import Consequence, Deployed, Kind, consequences_of, deploy
from cicada_cli.stack_changes.resource_rules import RULES
from stacks.context import documented
from tests.template.second_values import ALONE, ISSUER, KENDRA, NEVER_CHANGED, SECOND_VALUES
from tests.template.templates import Synthesis

Templates = dict[str, dict[str, Any]]
Synthesise = Callable[[Mapping[str, Any]], Templates]

VECTORS = {"AWS::S3Vectors::Index", "AWS::S3Vectors::VectorBucket"}
STACK = "the stack"
NOTHING: set[tuple[str, str]] = set()

BATCHES = {
    "answers": ("models", "retrieval", "knowledge", "budget", "citations"),
    "users": ("agents", "profiles", "cache", "conversation"),
    "auth": ("auth",),
    "page": ("page",),
}
"""Groups whose settings are changed together; all the others are one more batch."""

EXPECTED: dict[str, tuple[set[tuple[str, str]], set[tuple[str, str]]]] = {
    "auth": ({(Kind.KEPT, STACK)}, NOTHING),
    "auth.mode": ({(Kind.KEPT, STACK)}, NOTHING),
    "auth.domainPrefix": (
        {(Kind.REFUSED, "AWS::Cognito::UserPoolDomain")},
        {(Kind.REFUSED, "AWS::Cognito::UserPoolDomain")},
    ),
    "auth.groups": ({(Kind.RELOAD, "AWS::Cognito::UserPoolGroup")}, NOTHING),
    "stackPrefix": ({(Kind.KEPT, STACK)}, {(Kind.KEPT, STACK)}),
    "page.enabled": ({(Kind.KEPT, STACK)}, NOTHING),
    "retrieval.engine": (NOTHING, {(Kind.KEPT, each) for each in VECTORS}),
    "createApiLoggingRole": ({(Kind.KEPT, "AWS::IAM::Role"), (Kind.KEPT, "AWS::ApiGateway::Account")}, NOTHING),
    "customerManagedKey": (NOTHING, {(Kind.LOST, "AWS::KMS::Key")}),
    "replication.keyArn": (NOTHING, {(Kind.LOST, "AWS::KMS::Key")}),
}
"""What the way there does, and the way back; nothing where a change is not named."""


def batches() -> dict[str, dict[str, Any]]:
    """The settings that are changed together, and those that are changed alone."""
    group_of = {group: batch for batch, groups in BATCHES.items() for group in groups}
    found: dict[str, dict[str, Any]] = {"auth": dict(ISSUER)}
    for path, value in SECOND_VALUES.items():
        if path not in ALONE:
            found.setdefault(group_of.get(path.split(".")[0], "rest"), {})[path] = value
    return found | {path: {path: SECOND_VALUES[path]} | more for path, more in ALONE.items()}


def kinds(found: Iterable[Consequence]) -> set[tuple[str, str]]:
    """What was found, by kind and type of resource."""
    return {(each.kind, each.subject.rpartition("(")[2].removesuffix(")")) for each in found}


@pytest.fixture(scope="module")
def synthesised(make_templates: Callable[..., Templates], shipped_settings: dict[str, Any]) -> Synthesise:
    def templates(changes: Mapping[str, Any]) -> Templates:
        settings = copy.deepcopy(shipped_settings)
        for path, value in changes.items():
            group = settings
            *names, last = path.split(".")
            for name in names:
                group = group[name]
            group[last] = value
        return make_templates(settings)

    return templates


def test_every_setting_has_a_second_value() -> None:
    paths = {entry.path for entry in documented()} - {"auth"}
    assert paths == SECOND_VALUES.keys() | NEVER_CHANGED.keys()
    defaults = {entry.path: entry.default for entry in documented()}
    assert all(str(value) != defaults[path] for path, value in SECOND_VALUES.items())
    assert {path for changes in batches().values() for path in changes} == SECOND_VALUES.keys()


@pytest.mark.parametrize("name", batches())
def test_a_setting_changes_and_changes_back(synthesised: Synthesise, name: str) -> None:
    default, other = synthesised({}), synthesised(batches()[name])
    assert default != other
    there, deployed = deploy(Deployed(default), other)
    back, _ = deploy(deployed, default)
    assert (kinds(there), kinds(back)) == EXPECTED.get(name, (NOTHING, NOTHING))
    assert all(each.steps for each in (*there, *back) if each.kind.blocks)


AGENTS = {adapter: {"agents.adapter": adapter} for adapter in ("none", "converse", "classic", "harness")}
VECTOR_ENGINE = {"retrieval.engine": "s3vectors"}
ENGINES: dict[str, dict[str, Any]] = {
    "shards": {},
    "s3vectors": VECTOR_ENGINE,
    "s3vectors-512": VECTOR_ENGINE | {"models.embeddingDimensions": 512},
    "s3vectors-destroy": VECTOR_ENGINE | {"onDelete": "destroy"},
    "kendra": {"retrieval.engine": "kendra", "retrieval.kendraIndexId": KENDRA},
}
KEYS: dict[str, dict[str, Any]] = {
    "no": {},
    "yes": {"customerManagedKey": True},
    "retiring": {"customerManagedKey": "retiring"},
    "yes-s3vectors": VECTOR_ENGINE | {"customerManagedKey": True},
    "retiring-s3vectors": VECTOR_ENGINE | {"customerManagedKey": "retiring"},
}


def every_step(synthesised: Synthesise, values: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], Any]:
    """What each step between two of some settings does."""
    made = {name: synthesised(changes) for name, changes in values.items()}
    return {(a, b): kinds(consequences_of(made[a], made[b])) for a, b in itertools.permutations(made, 2)}


def test_any_adapter_of_the_agents_follows_any_other(synthesised: Synthesise) -> None:
    assert set(map(frozenset, every_step(synthesised, AGENTS).values())) == {frozenset()}


def test_any_engine_follows_any_other(synthesised: Synthesise) -> None:
    for (before, after), found in every_step(synthesised, ENGINES).items():
        made_anew = before.startswith("s3vectors") and after.startswith("s3vectors") and "512" in before + after
        leaves = before.startswith("s3vectors") and not after.startswith("s3vectors")
        what = Kind.RELOAD if before == "s3vectors-destroy" else Kind.KEPT
        expected = {(what, each) for each in VECTORS} if leaves else NOTHING
        assert found == ({(Kind.RELOAD, "AWS::S3Vectors::Index")} if made_anew else expected)


def test_a_key_is_retired_before_it_goes(synthesised: Synthesise) -> None:
    for (before, after), found in every_step(synthesised, KEYS).items():
        lost = {kind for kind, type in found if type == "AWS::KMS::Key"}
        expected = {Kind.LOST} if before.startswith("yes") else {Kind.KEPT}
        assert lost == (expected if after == "no" else set())
        assert {kind for kind, type in found if type in VECTORS} <= {Kind.RELOAD, Kind.KEPT}


def test_while_a_key_is_retired_functions_read_with_it_and_nothing_is_encrypted(
    make: Callable[[dict[str, Any]], Synthesis], shipped_settings: dict[str, Any]
) -> None:
    retiring = make(shipped_settings | {"customerManagedKey": "retiring"})
    used = {
        resource.type
        for resource in retiring.resources()
        if resource.type not in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
        and "Key961B73FD" in str(resource.properties)
    }
    assert used == set()
    readers = make(shipped_settings | {"customerManagedKey": True})
    of_key = partial(filter, lambda permission: permission[0] == "kms:Decrypt")
    assert list(of_key(retiring.permissions("Answer"))) == list(of_key(readers.permissions("Answer"))) != []


def test_every_type_of_resource_has_rules(each: Synthesis) -> None:
    types = {resource.type for resource in each.resources()}
    assert {type for type in types if not type.startswith("Custom::")} <= RULES.keys() | {"AWS::CDK::Metadata"}
