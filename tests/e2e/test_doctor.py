"""``cicada doctor`` over the deployed thing: every check says something sensible, and what is broken is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUIET = ("--no-question",)


@pytest.fixture
def doctor(cloud, tmp_path):
    """Run the command in a folder from which it finds the local cloud, as that of ``make up``."""
    folder = tmp_path / ".cicada"
    folder.mkdir()
    (folder / "running.json").write_text((cloud.home / "running.json").read_text())
    settings = str(cloud.home / "settings.json")
    paths = os.pathsep.join((str(ROOT), str(ROOT / "layers" / "cicada" / "python")))

    def run(*words):
        command = [sys.executable, "-m", "cicada_cli", "doctor", "--settings", settings, "--json", *words]
        environment = os.environ | {"PYTHONPATH": paths}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


def by_check(report):
    found = {}
    for finding in report["findings"]:
        found.setdefault(finding["check"], []).append(finding)
    return found


def test_a_deployment_is_looked_at_from_the_tools_to_an_answer(doctor, cloud, issuer, user):
    cloud.control("POST", "schedules/Cicada-recovery-sweep")
    status, report = doctor("--token", issuer.token(user))
    found = by_check(report)
    assert (report["stage"], report["account"], report["stackPrefix"]) == ("deployed", "123456789012", "Cicada")
    assert {one["status"] for one in found["stacks"]} == {"ok"}
    assert len(found["stacks"]) >= 5
    for check in ("settings", "credentials", "bootstrap", "leftovers", "api-logs", "model", "drift", "alarms", "page"):
        assert {one["status"] for one in found[check]} == {"ok"}, found[check]
    assert found["index"][0]["status"] == "ok"
    assert "1 collection" in found["index"][0]["message"]
    (question,) = found["question"]
    assert question["status"] == "ok", question
    assert question["message"].startswith("answered by ")
    assert found["sweep"][0]["status"] in ("ok", "warning")
    problems = [one for one in report["findings"] if one["status"] == "problem"]
    # The tests' issuer publishes keys, and no OpenID configuration.
    assert [one["check"] for one in problems] == ["sign-in"]
    assert status == 1


def test_what_an_account_lacks_is_named_and_nothing_is_asked_of_such_a_model(doctor, cloud):
    cloud.arm("bedrock_control.agreement", model="local.extractive")
    cloud.clear_calls()
    status, report = doctor("--before")
    (model,) = [one for one in by_check(report)["model"] if one["subject"] == "local.extractive"]
    assert (status, report["stage"], model["status"]) == (1, "before", "problem")
    assert "aws-marketplace:Subscribe" in model["mend"]
    assert "question" not in by_check(report)
    assert not any(name.endswith(".Converse") for name in cloud.calls())


def test_what_may_not_be_asked_is_unknown_with_its_permission(doctor, cloud):
    cloud.arm("bedrock_control.error")
    _, report = doctor("--before")
    unknown = [one for one in report["findings"] if one["status"] == "unknown"]
    assert {one["permission"] for one in unknown} == {"bedrock:GetFoundationModelAvailability"}
