"""The deployer's settings, as the project describes them in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from cicada_cli.doctor.findings import Finding, Reporter

TIMEOUT_S = 30.0
SOURCE = "cdk.json"


class Described(BaseModel):
    """The output of ``python -m stacks.describe``."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)

    stack_prefix: str
    local: bool
    models: Mapping[str, str]
    """By the setting that names them."""
    policy_regions: Mapping[str, tuple[str, ...]] = {}
    """By inference profile, the Regions in which the functions may call its model."""
    embedding_dimensions: int
    answer_concurrency: int | None
    http_concurrency: int | None = None
    """None also where there is no HTTP access."""
    create_api_logging_role: bool
    auth_mode: str
    domain_prefix: str | None
    """Of the sign-in pages; None for one made of stack prefix and account."""
    sweep_minutes: int
    record: Mapping[str, str]
    """A digest of each group of settings."""


@dataclass(frozen=True)
class SettingsRead:
    """The settings, or why they cannot be read."""

    source: str
    described: Described | None = None
    error: str | None = None
    """Why they are invalid."""
    absent: bool = False
    """Whether there is no checkout."""


def read_settings(project: Path | None, file: str | None, *, account: str | None, region: str | None) -> SettingsRead:
    """Read the settings of a project.

    Args:
        project: its root; None where there is none.
        file: in place of ``cdk.json``, as in ``-c settings=…``.
        account: the account that they are to be deployed to, where it is known.
        region: likewise the Region.
    """
    source = file or SOURCE
    if project is None:
        return SettingsRead(source, absent=True)
    command = [sys.executable, "-m", "stacks.describe"]
    for option, value in (("--settings", file), ("--account", account), ("--region", region)):
        command += [option, value] if value else []
    try:
        done = subprocess.run(  # noqa: S603 - our own module, by this interpreter
            command, cwd=project, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return SettingsRead(source, error=f"cannot read {source}: {error}")
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        return SettingsRead(source, error=f"cannot read {source}: {last[0]}")
    try:
        refused = _Refused.model_validate_json(done.stdout)
        if refused.error is not None:
            return SettingsRead(source, error=refused.error)
        return SettingsRead(source, Described.model_validate_json(done.stdout))
    except ValidationError as error:
        return SettingsRead(source, error=f"unexpected description of {source}: {error.errors()[0]['loc']}")


class _Refused(BaseModel):
    error: str | None = None


def check_settings(read: SettingsRead) -> Iterable[Finding]:
    """Whether the settings can be deployed to this account and Region."""
    report = Reporter("settings", read.source)
    if read.absent:
        yield report.unknown("no checkout here, so cdk.json is not checked", "run this command in Cicada's repository")
    elif read.error is not None:
        yield report.problem(read.error, f"correct {read.source}")
    else:
        yield report.ok("valid for this account and Region")


def check_drift(read: SettingsRead, outputs: Mapping[str, str]) -> Iterable[Finding]:
    """Whether the deployment was made with these settings."""
    report = Reporter("drift", read.source)
    if read.described is None:
        return
    recorded = dict(word.split("=", 1) for word in outputs.get("Settings", "").split() if "=" in word)
    if not recorded:
        yield report.unknown("the settings are unknown: the deployment is of an older release", "make deploy")
        return
    now = read.described.record
    changed = sorted(name for name in now.keys() | recorded.keys() if now.get(name) != recorded.get(name))
    if changed:
        yield report.warning(f"changed since the deployment: {', '.join(changed)}", "make deploy applies the changes")
    else:
        yield report.ok("the deployment has these settings")
