"""``cicada doctor`` over the deployed thing: every check says something sensible, and what is broken is named."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def doctor(cloud, tmp_path):
    """Run the command in a folder from which it finds the local cloud, as that of ``make up``."""
    folder = tmp_path / ".cicada"
    folder.mkdir()
    for name in ("running.json", "deployed-settings.json"):
        (folder / name).write_text((cloud.home / name).read_text())
    paths = os.pathsep.join((str(ROOT), str(ROOT / "layers" / "cicada" / "python")))

    def run(*words):
        command = [sys.executable, "-m", "cicada_cli", "doctor", "--json", *words]
        environment = os.environ | {"PYTHONPATH": paths}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


def by_check(report):
    found: dict[str, list[dict[str, str]]] = {}
    for finding in report["findings"]:
        found.setdefault(finding["check"], []).append(finding)
    return found


def test_a_deployment_is_looked_at_from_the_tools_to_an_answer(doctor, cloud, issuer, user):
    status, report = doctor("--token", issuer.token(user))
    found = by_check(report)
    assert (report["stage"], report["account"], report["stackPrefix"]) == ("deployed", "123456789012", "Cicada")
    assert {one["status"] for one in found["stacks"]} == {"ok"}
    assert len(found["stacks"]) >= 5
    for check in ("settings", "credentials", "bootstrap", "leftovers", "api-logs", "model", "drift", "alarms", "page"):
        assert {one["status"] for one in found[check]} == {"ok"}, found[check]
    assert found["index"][0]["status"] == "ok"
    assert re.search(r"in \d+ collections?, published", found["index"][0]["message"])
    (question,) = found["question"]
    assert question["status"] == "ok", question
    assert question["message"].startswith("answered by ")
    assert found["sweep"][0]["status"] == "ok", "no run is missed so soon after the deployment"
    problems = [one for one in report["findings"] if one["status"] == "problem"]
    # The tests' issuer publishes keys, and no OpenID configuration.
    assert [one["check"] for one in problems] == ["sign-in"]
    assert status == 1


def test_what_an_account_lacks_or_does_not_let_be_asked_is_named(doctor, cloud):
    embedder = "local.all-minilm-l6-v2"
    cloud.arm("bedrock_control.agreement", model="local.extractive")
    cloud.arm("bedrock_control.error", path=f"/foundation-model-availability/{embedder}")
    cloud.clear_calls()
    status, report = doctor("--before")
    found = by_check(report)
    assert (status, report["stage"], "question" in found) == (1, "before", False)
    (writer,) = [one for one in found["model"] if one["subject"] == "local.extractive"]
    assert (writer["status"], "aws-marketplace:Subscribe" in writer["mend"]) == ("problem", True)
    asked = [one for one in found["model"] if one["subject"] == embedder]
    assert [one["status"] for one in asked] == ["unknown", "ok"]
    assert asked[0]["permission"] == "bedrock:GetFoundationModelAvailability"
    assert not any(name.endswith(".Converse") for name in cloud.calls())
