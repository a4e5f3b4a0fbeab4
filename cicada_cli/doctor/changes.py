"""What a deployment would do to the stacks that are deployed: what CloudFormation refuses, and what would be lost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from cicada_cli.doctor.calls import Calls
from cicada_cli.doctor.findings import Finding, Reporter
from cicada_cli.doctor.stacks import USABLE, Stack
from cicada_cli.stack_changes import Consequence, consequences_of
from cicada_cli.stack_changes.templates import Template

STACK = "aws:cloudformation:stack"
"""The type of a stack in a cloud assembly's manifest."""
NO_STEPS = "docs/upgrading.md says which changes can be made, and how"


def read_assembly(folder: Path) -> dict[str, Template]:
    """The templates of a synthesis, by the stacks' names. Raises OSError, ValueError or KeyError."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return {
        str(artifact["properties"].get("stackName", name)): json.loads(
            (folder / artifact["properties"]["templateFile"]).read_text(encoding="utf-8")
        )
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == STACK
    }


def can_change(stacks: Mapping[str, Stack]) -> list[str]:
    """The stacks whose resources are there."""
    return [name for name, stack in stacks.items() if stack["StackStatus"] in USABLE]


def check_changes(calls: Calls, stacks: Mapping[str, Stack], wanted: Mapping[str, Template]) -> Iterable[Finding]:
    """What deploying these templates would do to the stacks that are there."""
    deployed = {
        name: calls("cloudformation", "GetTemplate", StackName=name)["TemplateBody"] for name in can_change(stacks)
    }
    found = consequences_of(deployed, wanted)
    yield from map(_told, found)
    if deployed and not found:
        yield Reporter("changes", ", ".join(deployed)).ok("no change is refused, and nothing is deleted or retained")


def _told(consequence: Consequence) -> Finding:
    report = Reporter("changes", consequence.stack)
    said = f"{consequence.subject} {consequence.what}"
    if consequence.kind.blocks:
        return report.problem(said, consequence.steps or NO_STEPS)
    return report.warning(said, consequence.steps or None)
