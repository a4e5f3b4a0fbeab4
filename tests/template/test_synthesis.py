"""The app as the CDK runs it: `python3 app.py` in, a cloud assembly out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import app
from stacks.settings import LOCAL_ACCOUNT
from tests.template.templates import ROOT, UNSTAGED, Synthesis
from tests.template.test_environment_size import collections


def run_app(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={**os.environ, "CDK_OUTDIR": str(folder), **environment},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the app in this process, which has read the CDK already: it fails before it makes anything. What it says."""

    def run(**environment: str) -> str:
        monkeypatch.setattr(app, "App", None)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert app.main() == 1
        return capsys.readouterr().err

    return run


def manifest(synthesis: Synthesis) -> dict[str, Any]:
    artifacts: dict[str, Any] = json.loads((synthesis.folder / "manifest.json").read_text())["artifacts"]
    return {name: a for name, a in artifacts.items() if a["type"] == "aws:cloudformation:stack"}


def test_unfilled_settings_end_in_a_sentence_and_not_in_a_traceback(
    tmp_path: Path, refused: Callable[..., str]
) -> None:
    settings = tmp_path / "mine.json"
    settings.write_text('{"auth": {"mode": "oidc"}}')
    told = refused(CDK_CONTEXT_JSON=json.dumps({"settings": str(settings)}))
    assert "auth: issuer: is empty" in told
    assert "Traceback" not in told


def test_the_local_clouds_settings_synthesise(tmp_path: Path) -> None:
    done = run_app(tmp_path, CDK_CONTEXT_JSON='{"settings": "cdk.local.json"}')
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.glob("*.template.json")} == {
        "Cicada-Data.template.json",
        "Cicada-Page.template.json",
        "Cicada-Answering.template.json",
        "Cicada-Ingest.template.json",
        "Cicada-Integrators.template.json",
        "Cicada-Gateway.template.json",
    }


def test_the_local_clouds_settings_are_refused_with_real_credentials(refused: Callable[..., str]) -> None:
    told = refused(CDK_CONTEXT_JSON='{"settings": "cdk.local.json"}', CDK_DEFAULT_ACCOUNT="111122223333")
    assert "not for AWS account 111122223333" in told


def test_the_app_says_which_setting_is_too_long(tmp_path: Path, local_settings: dict[str, Any]) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(local_settings | {"ingest": {"collections": collections(100)}}))
    done = run_app(tmp_path / "out", CDK_CONTEXT_JSON=json.dumps({"settings": str(settings), **UNSTAGED}))
    assert done.returncode == 1
    assert "ingest.collections: too long" in done.stderr


def test_stacks_made_for_the_local_cloud_are_bound_to_its_account(local: Synthesis, shipped: Synthesis) -> None:
    assert {stack["environment"] for stack in manifest(local).values()} == {f"aws://{LOCAL_ACCOUNT}/unknown-region"}
    assert {stack["environment"] for stack in manifest(shipped).values()} == {"aws://unknown-account/unknown-region"}


def outputs_read(node: Any) -> set[tuple[str, str]]:
    """The outputs of other stacks, as ``(stack, output)``, that a template refers to."""
    if isinstance(node, list):
        return set().union(*map(outputs_read, node))
    if not isinstance(node, dict):
        return set()
    if "Fn::GetStackOutput" in node:
        return {(node["Fn::GetStackOutput"]["StackName"], node["Fn::GetStackOutput"]["OutputName"])}
    return set().union(*map(outputs_read, node.values()))


def deployment_order(synthesis: Synthesis) -> list[str]:
    """The stacks, each after those that it depends on; fails where two depend on each other."""
    waiting = {name: set(stack["dependencies"]) for name, stack in manifest(synthesis).items()}
    order: list[str] = []
    while waiting:
        ready = [name for name, needs in waiting.items() if not needs & waiting.keys()]
        assert ready, f"these depend on each other: {sorted(waiting)}"
        order += ready
        waiting = {name: needs for name, needs in waiting.items() if name not in ready}
    return order


def test_a_stack_is_deployed_after_those_whose_outputs_it_reads(each: Synthesis) -> None:
    order = deployment_order(each)
    for name in order:
        template = each.template(name.removeprefix(f"{each.prefix}-"))
        for stack, output in outputs_read(template):
            assert output in each.template(stack.removeprefix(f"{each.prefix}-"))["Outputs"]
            assert stack in manifest(each)[name]["dependencies"]
    assert order[-1] == f"{each.prefix}-Gateway"


def test_no_stack_imports_an_export(each: Synthesis) -> None:
    for name in manifest(each):
        template = each.template(name.removeprefix(f"{each.prefix}-"))
        assert "Fn::ImportValue" not in json.dumps(template)
        assert all("Export" not in output for output in template.get("Outputs", {}).values())


def test_the_stacks_with_data_and_users_are_not_deleted_by_mistake(shipped: Synthesis, full: Synthesis) -> None:
    for stack in ("Cicada-Data", "Cicada-SignIn"):
        assert manifest(shipped)[stack]["properties"]["terminationProtection"] is True
    assert not manifest(full)["Other-Data"]["properties"].get("terminationProtection")


def test_tags_reach_every_stack(full: Synthesis) -> None:
    assert all(stack["properties"]["tags"] == {"team": "reading"} for stack in manifest(full).values())


def test_the_cdk_finds_the_projects_own_python() -> None:
    command = json.loads((ROOT / "cdk.json").read_text())["app"]
    shown = subprocess.run(
        command.replace("app.py", "-c 'import sys; print(sys.prefix)'"),
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    expected = ROOT / ".venv" if (ROOT / ".venv" / "bin" / "python3").exists() else Path(sys.prefix)
    assert Path(shown.stdout.strip()) == expected
