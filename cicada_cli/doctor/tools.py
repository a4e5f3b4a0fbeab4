"""The tools that a deployment needs, and their versions."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from cicada_cli.doctor.findings import Finding, Reporter

OLDEST_PYTHON = (3, 11)
OLDEST_NODE = 20
"""What the pinned CDK CLI runs on."""
SUPPORTED_NODE = 22
"""What the CDK supports."""
TIMEOUT_S = 10.0


def check_tools(project: Path) -> Iterable[Finding]:
    """Python, Node.js and the CDK CLI that ``package-lock.json`` pins."""
    yield _python(sys.version_info[:2])
    yield _node(shutil.which("node"))
    yield _cdk(project)


def _python(version: tuple[int, int]) -> Finding:
    report = Reporter("tools", "Python")
    told = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return report.problem(
            f"{told} is too old", "install Python 3.11 or newer, and run make PYTHON=python3.13 setup"
        )
    return report.ok(told)


def _node(path: str | None) -> Finding:
    report = Reporter("tools", "Node.js")
    advice = f"install Node.js {SUPPORTED_NODE} or 24, with npm"
    if path is None:
        return report.problem("not found: the CDK CLI needs it", advice)
    told = _output([path, "--version"])
    found = re.match(r"v(\d+)\.", told)
    if found is None:
        return report.unknown(f"unexpected output of `node --version`: {told!r}", advice)
    if int(found[1]) < OLDEST_NODE:
        return report.problem(f"{told} is too old", advice)
    if int(found[1]) < SUPPORTED_NODE:
        return report.warning(f"{told} works, but is past its end of life", advice)
    return report.ok(told)


def _cdk(project: Path) -> Finding:
    report = Reporter("tools", "CDK CLI")
    try:
        lock = json.loads((project / "package-lock.json").read_text(encoding="utf-8"))
        pinned = lock["packages"]["node_modules/aws-cdk"]["version"]
    except (OSError, ValueError, KeyError):
        return report.unknown("no package-lock.json pins it")
    try:
        package = project / "node_modules" / "aws-cdk" / "package.json"
        installed = json.loads(package.read_text(encoding="utf-8"))["version"]
    except (OSError, ValueError, KeyError):
        return report.problem(f"not installed (pinned: {pinned})", "run make setup")
    if installed != pinned:
        return report.problem(f"{installed} is installed, but {pinned} is pinned", "run make setup")
    return report.ok(installed)


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a program of the PATH, without words of others
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.strip()
