"""Other people's rules over our templates: cdk-nag's, the CDK's and cfn-lint's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack, Validations
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from stacks.app import add_stacks
from stacks.context import parse
from tests.template.templates import ROOT, UNSTAGED, Synthesis


def findings(app: App) -> str:
    """What the rules say; nothing where they have nothing to say."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    try:
        app.synth()
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["shipped", "local", "full"])
def test_no_finding_is_left_unanswered(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    settings: dict[str, Any] = request.getfixturevalue(f"{name}_settings")
    context = json.loads((ROOT / "cdk.json").read_text())["context"] | UNSTAGED
    app = App(context=context, outdir=str(tmp_path), builtin_cloud_formation_validation=True)
    add_stacks(app, parse(settings, source=name))
    assert findings(app) == ""


def test_the_rules_are_at_work(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    s3.Bucket(Stack(app, "Careless"), "Open")
    assert "AwsSolutions-S10" in findings(app)


# W3005: the CDK names some dependencies that a reference implies already. W6001: an output that repeats an import is
# how the last stack has the outputs of all.
ACCEPTED = ("W3005", "W6001")


def test_cfn_lint_finds_nothing(shipped: Synthesis, local: Synthesis, full: Synthesis) -> None:
    templates = [str(path) for s in (shipped, local, full) for path in sorted(s.folder.glob("*.template.json"))]
    assert len(templates) == 19
    lint = [sys.executable, "-c", "import cfnlint.runner; cfnlint.runner.main()"]
    done = subprocess.run([*lint, "--ignore-checks", *ACCEPTED, "--", *templates], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
