"""From the templates of each release to today's, by CloudFormation's rules: no upgrade loses data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from cicada_cli.stack_changes import Deployed, Kind, deploy
from cicada_cli.stack_changes.templates import exports
from stacks.context import documented
from stacks.data import REFERENCES
from supply_chain.release import KEPT_SETTINGS, kept_templates, releases
from tests.template.conftest import AUTH
from tests.template.second_values import ALONE
from tests.template.templates import ROOT
from tests.template.test_setting_changes import EXPECTED

MakeTemplates = Callable[..., dict[str, dict[str, Any]]]

BETWEEN = {REFERENCES: "both"}
"""What the documented step between adds to the context."""


def released(version: str, name: str) -> Deployed:
    return Deployed(kept_templates(version, name))


@pytest.fixture(params=KEPT_SETTINGS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_documented_way_from_0_1_0_loses_nothing(name: str, make_templates: MakeTemplates) -> None:
    settings = {"auth": AUTH} | KEPT_SETTINGS[name]
    deployed = released("0.1.0", name)
    for templates in (make_templates(settings, **BETWEEN), make_templates(settings)):
        found, deployed = deploy(deployed, templates)
        assert [str(each) for each in found] == []


def test_without_the_step_between_the_upgrade_from_0_1_0_is_refused_and_says_how(
    name: str, make_templates: MakeTemplates
) -> None:
    found, _ = deploy(released("0.1.0", name), make_templates({"auth": AUTH} | KEPT_SETTINGS[name]))
    assert {each.kind for each in found} == {Kind.REFUSED}
    assert all(f"-c {REFERENCES}=both" in each.steps for each in found)
    assert all(each.subject.startswith("export ") for each in found)


def test_from_every_later_release_one_deployment_loses_nothing(name: str, make_templates: MakeTemplates) -> None:
    for release in releases()[1:]:
        found, _ = deploy(released(release, name), make_templates(KEPT_SETTINGS[name]))
        assert [str(each) for each in found] == []


def test_after_the_upgrade_sign_in_can_be_turned_on(
    make_templates: MakeTemplates, shipped_settings: dict[str, Any]
) -> None:
    found, _ = deploy(Deployed(make_templates({"auth": AUTH})), make_templates(shipped_settings))
    assert [str(each) for each in found] == []


def test_exports_come_and_go(make_templates: MakeTemplates, shipped_settings: dict[str, Any]) -> None:
    between, after = make_templates(shipped_settings, **BETWEEN), make_templates(shipped_settings)
    assert [stack for stack, template in between.items() if exports(template)] != []
    assert [stack for stack, template in after.items() if exports(template)] == []
    for old, new in ((between, after), (after, between)):
        assert deploy(Deployed(old), new)[0] == []


def test_the_documentation_names_the_step_between_and_settings_that_exist() -> None:
    document = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
    assert f'make deploy ARGS="-c {REFERENCES}=both"' in document
    named = set(re.findall(r"^\| `([A-Za-z.]+)`", document, flags=re.MULTILINE))
    assert named - {"setting"} <= {entry.path for entry in documented()}
    refused = {path for path, ways in EXPECTED.items() if any(Kind(kind).blocks for way in ways for kind, _ in way)}
    refused -= {path for path, more in ALONE.items() if refused & more.keys()}  # another setting's change is refused
    lines = [line for line in document.splitlines() if "| refused" in line]
    assert len(lines) == len(refused)
    assert refused <= named
