"""The README's section on AWS, command by command as it stands there, in an empty account of the local cloud."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cicada_local.deploy import synthesise
from cicada_local.places import Places, aws_environment
from cicada_local.progress import steps_for
from tests.e2e.searched_cloud import SearchedCloud

ROOT = Path(__file__).parents[2]
SECTION = "## In your AWS account"
NOT_CLONED = {".cicada", ".git", "cdk.out", "build"}
MAILED, CHOSEN = "First-password-1", "Chosen-password-2"
WAIT_S = 240
BROWSER = """
import sys
from tests.support.sign_in import Browser

url, name, mailed, chosen = sys.argv[1:]
browser = Browser()
browser.get(browser.sign_in(url, name, mailed, chosen).location)
"""


def commands():
    """The commands of the section, without their comments."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    block = re.search(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert block is not None
    return [line.partition("#")[0].strip() for line in block[1].splitlines()]


@pytest.fixture
def clone(tmp_path):
    """The repository in a folder of its own, whose ``.cicada`` is nobody else's."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.name not in NOT_CLONED:
            (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture
def account(clone):
    settings = {"auth": {"mode": "cognito"}, "onDelete": "retain", "ingest": {"quietS": 5}}
    with SearchedCloud(clone / ".cicada", settings=settings, empty=True) as cloud:
        yield cloud


@pytest.fixture
def environment(account, clone, tmp_path):
    """That of somebody with credentials of the account, settings of their own, and a browser."""
    settings = account.home / "settings.json"
    places = Places(home=account.home, cache=Places.default().cache)
    with steps_for(plain=True).step("Synthesising") as step:
        stacks = asyncio.run(synthesise(json.loads(settings.read_text()), places, step))
    browser = tmp_path / "browser.py"
    browser.write_text(BROWSER)
    paths = os.pathsep.join((str(ROOT), str(ROOT / "layers" / "cicada" / "python")))
    kept = {
        name: os.environ[name]
        for name in ("PATH", "LANG", "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION")
        if name in os.environ
    }
    return aws_environment(kept, account.endpoint_url) | {
        "HOME": str(tmp_path),
        "PYTHONPATH": paths,
        "ARGS": f"-c settings={settings} --app {stacks}",
        "BROWSER": f"{sys.executable} {browser} %s you@example.org {MAILED} {CHOSEN} &",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
    }


def stacks_of(account):
    found = account.client("cloudformation").describe_stacks()["Stacks"]
    return {stack["StackName"]: stack for stack in found}


def cut_off(account, clone, environment):
    """Start to deploy, and pull the plug when the first stack is there; returns what is there then."""
    log = clone / ".cicada" / "cut-off.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["make", "deploy"],
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + WAIT_S
    while stacks_of(account).get("Cicada-Data", {}).get("StackStatus") != "CREATE_COMPLETE":
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return stacks_of(account)


@pytest.mark.timeout(900)
def test_the_commands_of_the_readme_lead_to_an_answer(account, clone, environment):
    def run(command):
        return subprocess.run(
            ["bash", "-c", command],
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )

    before = run("make deploy")
    assert before.returncode != 0
    assert "not bootstrapped for the CDK" in before.stderr
    assert stacks_of(account) == {}, "nothing is created where something is missing"
    first = {}
    for command in commands():
        if command == "make deploy":
            first = cut_off(account, clone, environment)
            assert "Cicada-Gateway" not in first
        done = run(command)
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        if command.startswith(".venv/bin/cicada users add"):
            # The mail: the local cloud sends none.
            cognito, outputs = account.client("cognito-idp"), account.control("GET", "health")["outputs"]
            cognito.admin_set_user_password(
                UserPoolId=outputs["UserPoolId"], Username="you@example.org", Password=MAILED, Permanent=False
            )
    assert stacks_of(account)["Cicada-Data"]["StackId"] == first["Cicada-Data"]["StackId"]
    assert "Tamsin" in done.stdout, done.stdout
    assert re.search(r"Sources: [1-9]\d* cited", done.stdout), done.stdout
    assert re.search(r"^ \[\d+\] .*cited", done.stdout, re.MULTILINE)


def test_the_section_has_the_commands_that_the_documentation_has():
    steps = (
        (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8").partition("## Four steps")[2].partition("\n## ")[0]
    )
    for command in commands():
        assert command.removeprefix(".venv/bin/").partition(' "')[0].split(" samples/")[0] in steps
