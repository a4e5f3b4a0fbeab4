"""Runs all checks of a deployment, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cicada_cli.doctor import (
    account,
    index,
    leftovers,
    models,
    operations,
    page,
    question,
    quotas,
    settings,
    sign_in,
    stacks,
    tools,
)
from cicada_cli.doctor.calls import CallFailed, Calls
from cicada_cli.doctor.explaining import explained
from cicada_cli.doctor.findings import Finding, Reporter
from cicada_cli.doctor.running import Check, run_all
from cicada_cli.doctor.settings import SettingsRead
from cicada_cli.doctor.stacks import Stack
from cicada_cli.doctor.web import Fetch
from cicada_client import Answer

if TYPE_CHECKING:
    from cicada.index.ports import ObjectStore

QUESTION_TIMEOUT_S = question.TIMEOUT_S + 10
DEFAULT_SWEEP_MINUTES = 2
COGNITO = "cognito"
"""The sign-in mode with the deployment's own user pool."""


@dataclass(frozen=True)
class Ports:
    """External services of the checks."""

    calls: Calls
    elsewhere: Calls
    """With the same credentials, in another Region."""
    fetch: Fetch
    store: Callable[[str], ObjectStore]
    """Makes the store of a bucket."""
    read_settings: Callable[[str | None], SettingsRead]
    """Reads the project's settings for an account."""
    token: Callable[[str], question.TOKEN]
    """The user's token for a WebSocket URL, if there is one."""
    ask: Callable[[str, question.TOKEN], Answer] = question.ask


@dataclass(frozen=True)
class Wanted:
    """What to check."""

    project: Path | None
    region: str | None
    prefix: str | None = None
    """None for that of the settings."""
    stage: str = "any"
    """``before`` skips checks of a deployment, ``deployed`` requires one, ``any`` checks one if it exists."""
    only_stacks: bool = False
    """Whether to check, within the account, only the states of the stacks."""
    with_question: bool = True
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Overrides the stacks' outputs, which in the local cloud name addresses on AWS."""


@dataclass(frozen=True)
class Report:
    """The findings."""

    stage: str
    """``before`` or ``deployed``."""
    region: str | None
    account: str | None
    prefix: str
    findings: tuple[Finding, ...] = field(default=())


def examine(wanted: Wanted, ports: Ports, default_prefix: str) -> Report:
    """Run all checks. They change nothing, except that the question is stored like any other."""
    who, credentials = account.identify(ports.calls, ports.elsewhere, wanted.region)
    read = ports.read_settings(who.account if who is not None else None)
    described = read.described
    prefix = wanted.prefix or (described.stack_prefix if described is not None else default_prefix)
    first = [*_of_the_project(wanted, read), credentials]
    if who is None or wanted.region is None:
        return Report("before", wanted.region, None, prefix, tuple(first))
    try:
        found = stacks.read_stacks(ports.calls, prefix)
    except CallFailed as failed:
        told = explained(Reporter("stacks", f"{prefix}-*"), failed)
        return Report("before", wanted.region, who.account, prefix, (*first, told))
    if wanted.only_stacks:
        states = stacks.check_stacks(found, prefix, deployed=False)
        return Report("before", wanted.region, who.account, prefix, (*first, *states))
    deployed = wanted.stage == "deployed" or (wanted.stage == "any" and stacks.is_deployed(found, prefix))
    checks = _of_the_account(
        ports, read, prefix, account_id=who.account, region=wanted.region, found=found, deployed=deployed
    )
    if deployed:
        checks += _of_the_deployment(wanted, ports, read, prefix, found)
    stage = "deployed" if deployed else "before"
    return Report(stage, wanted.region, who.account, prefix, (*first, *run_all(checks)))


def _of_the_project(wanted: Wanted, read: SettingsRead) -> list[Finding]:
    if wanted.project is None:
        return list(settings.check_settings(read))
    checks = [
        Check("tools", "tools", partial(tools.check_tools, wanted.project)),
        Check("settings", read.source, partial(settings.check_settings, read)),
    ]
    return run_all(checks)


def _of_the_account(
    ports: Ports,
    read: SettingsRead,
    prefix: str,
    *,
    account_id: str,
    region: str,
    found: Mapping[str, Stack],
    deployed: bool,
) -> list[Check]:
    """Checks of what a deployment needs."""
    calls, described, outputs = ports.calls, read.described, stacks.read_outputs(found)
    checks = [
        Check("bootstrap", region, partial(account.check_bootstrap, calls, region)),
        Check("stacks", f"{prefix}-*", partial(stacks.check_stacks, found, prefix, deployed=deployed)),
        Check("leftovers", f"{prefix}-*", partial(leftovers.check_names, calls, prefix, found.keys())),
        Check("leftovers", f"{prefix}-*", partial(leftovers.check_kept_data, calls, prefix, outputs)),
    ]
    if described is None:
        return checks
    checks += [
        Check("concurrency", region, partial(quotas.check_concurrency, calls, described, region, deployed=deployed)),
        Check("api-logs", region, partial(quotas.check_api_logs, calls, described, prefix, region)),
    ]
    if described.auth_mode == COGNITO:
        domain = described.domain_prefix or f"{prefix.lower()}-{account_id}"
        run = partial(leftovers.check_user_pools, calls, prefix, domain, found.keys(), outputs)
        checks.append(Check("leftovers", domain, run))
    for model_id, named_by in models.by_model(described.models).items():
        run = partial(
            models.check_model,
            calls,
            model_id,
            named_by,
            region=region,
            dimensions=described.embedding_dimensions,
            allowed=described.policy_regions.get(model_id, ()),
        )
        checks.append(Check("model", model_id, run))
    return checks


def _of_the_deployment(
    wanted: Wanted, ports: Ports, read: SettingsRead, prefix: str, found: Mapping[str, Stack]
) -> list[Check]:
    """Checks of the deployment."""
    calls, described, told = ports.calls, read.described, stacks.read_outputs(found)
    outputs = {**told, **wanted.outputs}
    sweep = partial(operations.check_sweep, made_at=found.get(f"{prefix}-Answering", {}).get("CreationTime"))
    sweep_minutes = described.sweep_minutes if described is not None else DEFAULT_SWEEP_MINUTES
    checks = [
        Check("release", stacks.RELEASE_OUTPUT, partial(stacks.check_release, told)),
        Check("drift", read.source, partial(settings.check_drift, read, outputs)),
        Check("sweep", f"{prefix}-{operations.SWEEP_RULE}", partial(sweep, calls, prefix, sweep_minutes)),
        Check("alarms", f"{prefix}-*", partial(operations.check_alarms, calls, prefix)),
        Check("page", outputs.get("PageUrl", "PageUrl"), partial(page.check_page, outputs, ports.fetch)),
        Check("sign-in", "AuthMode", partial(sign_in.check_sign_in, calls, outputs, ports.fetch, told.get("PageUrl"))),
    ]
    if (bucket := outputs.get("IndexBucket")) is not None:
        checks.append(Check("index", bucket, lambda: index.check_index(ports.store(bucket), outputs)))
    url = outputs.get("WebSocketUrl")
    if wanted.with_question and url is not None:
        run = partial(
            question.check_question, url, ports.token(url), signs_in=sign_in.signs_in(outputs), asking=ports.ask
        )
        checks.append(Check("question", url, run, QUESTION_TIMEOUT_S))
    return checks
