"""``make bootstrap`` and ``make deploy``: what is run, after which checks, and what is said when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cicada_cli.aws import Aws
from cicada_deploy import __main__ as command
from cicada_deploy import cdk
from cicada_deploy.cdk import Cdk

ROOT = Path(__file__).resolve().parents[2]


class Doctor:
    """Stands for the checks; what they find is the test's."""

    said: ClassVar[list[str]] = []
    number: str | None = "111122223333"
    ready, works, update, bearable = True, True, False, True

    def __init__(self, aws: Aws, region: str | None, *, settings: str | None, checks: bool) -> None:
        self.said[:] = [f"{region} {settings} {'checks' if checks else 'no checks'}"]

    def account(self) -> str | None:
        return self.number

    def before(self) -> bool:
        self.said.append("before")
        return self.ready

    def is_update(self) -> bool:
        return self.update

    def changes(self, assembly: Path) -> bool:
        self.said.append(f"changes {assembly.name}")
        return self.bearable

    def after(self) -> bool:
        self.said.append("after")
        return self.works

    def after_failure(self) -> None:
        self.said.append("after failure")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The CLI's command lines, with the folder and the Region that they were run in."""
    record = tmp_path / "ran"
    cli = tmp_path / "bin" / "cdk"
    cli.parent.mkdir()
    told = 'printf \'%s|%s|%s|%s\\n\' "$PWD" "$AWS_REGION" "$AWS_PROFILE" "$*"'
    cli.write_text(f"#!/bin/sh\n{told} >> {record}\nexit ${{CDK_STATUS:-0}}\n")
    cli.chmod(0o755)
    monkeypatch.setattr(cdk, "CLI", cli)
    monkeypatch.setattr(command, "Doctor", Doctor)
    for name in ("AWS_PROFILE", "CDK_STATUS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    return lambda: [line.split("|") for line in record.read_text().splitlines()] if record.exists() else []


def test_bootstrap_names_the_account_and_needs_no_app(ran: Any) -> None:
    assert command.main(["bootstrap"]) == 0
    ((folder, region, _, words),) = ran()
    assert (region, words) == ("eu-west-1", "bootstrap aws://111122223333/eu-west-1")
    assert not (Path(folder) / "cdk.json").exists()


def test_deploy_checks_deploys_and_checks_again(ran: Any) -> None:
    assert command.main(["deploy", "-c", "settings=staging.json", "-c", "a=b", "--method", "direct"]) == 0
    ((folder, _, _, words),) = ran()
    assert Path(folder) == ROOT
    assert words == "deploy --all --require-approval never -c settings=staging.json -c a=b --method direct"
    assert Doctor.said == ["eu-west-1 staging.json checks", "before", "after"]


def test_nothing_is_run_where_a_check_finds_a_problem(ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doctor, "ready", False)
    assert command.main(["deploy"]) == 1
    assert ran() == []


def test_an_update_is_synthesised_looked_at_and_deployed_from_there(ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doctor, "update", True)
    assert command.main(["deploy", "-c", "a=b"]) == 0
    folder = str(ROOT / "cdk.out")
    assert [words for *_, words in ran()] == [
        f"synth --quiet --output {folder} -c a=b",
        f"deploy --all --require-approval never -c a=b --app {folder}",
    ]
    assert Doctor.said[1:] == ["before", "changes cdk.out", "after"]


def test_a_synthesis_that_is_named_is_not_made_again(ran: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Doctor, "update", True)
    (tmp_path / "manifest.json").write_text("{}")
    assert command.main(["deploy", "--app", str(tmp_path)]) == 0
    assert [words.split()[0] for *_, words in ran()] == ["deploy"]


def test_a_change_that_the_stacks_do_not_bear_is_not_begun(ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doctor, "update", True)
    monkeypatch.setattr(Doctor, "bearable", False)
    assert command.main(["deploy"]) == 1
    assert [words.split()[0] for *_, words in ran()] == ["synth"]


def test_a_synthesis_that_fails_ends_the_command(ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doctor, "update", True)
    monkeypatch.setenv("CDK_STATUS", "4")
    assert command.main(["deploy"]) == 4
    assert len(ran()) == 1


def test_nothing_is_run_without_credentials_or_a_region(ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doctor, "number", None)
    assert command.main(["bootstrap"]) == 1
    assert command.main(["deploy"]) == 1
    assert ran() == []


def test_a_failed_deployment_says_what_completes_it(ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_STATUS", "3")
    assert command.main(["deploy", "--no-checks"]) == 3
    assert Doctor.said == ["eu-west-1 None no checks", "before", "after failure"]


def test_a_deployment_that_does_not_work_fails_the_command(ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Doctor, "works", False)
    assert command.main(["deploy"]) == 1


def test_the_profile_and_the_region_reach_the_cli(ran: Any) -> None:
    Cdk("mine", "us-west-2").deploy(ask=True)
    ((_, region, profile, words),) = ran()
    assert (region, profile, words) == ("us-west-2", "mine", "deploy --all")


def test_a_profile_that_does_not_exist_is_named(
    ran: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_REGION")
    assert command.main(["deploy", "--profile", "no-such-profile"]) == 1
    assert "no-such-profile" in capsys.readouterr().err


def test_make_runs_the_pinned_cli_after_setup() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "npx" not in makefile
    for name in ("bootstrap", "deploy"):
        assert f"\n{name}: setup ## " in makefile
        assert f"-m cicada_deploy {name} $(ARGS)" in makefile
    lock = json.loads((ROOT / "package-lock.json").read_text())
    assert "node_modules/aws-cdk" in lock["packages"]
