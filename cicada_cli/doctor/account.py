"""The account and Region, and whether the CDK can deploy there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cicada_cli.doctor.calls import CallFailed, Calls, Failure
from cicada_cli.doctor.explaining import explained
from cicada_cli.doctor.findings import Finding, Reporter

BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
"""Written by ``cdk bootstrap``, with the CDK's default qualifier."""
OLDEST_BOOTSTRAP = 6
"""What the templates ask for (``CheckBootstrapVersion``)."""
BOOTSTRAP_FOR_ROLLBACK = 23
"""What ``cdk rollback`` asks for. Source: AWS CDK Developer Guide, "cdk rollback"."""
EVERYWHERE = "us-east-1"
"""A Region that every account has."""


@dataclass(frozen=True)
class Identity:
    """Who calls AWS."""

    account: str
    arn: str


def identify(calls: Calls, elsewhere: Calls, region: str | None) -> tuple[Identity | None, Finding]:
    """Who calls AWS; None, and why, where nobody can be told.

    Args:
        calls: the port.
        elsewhere: the port with the same credentials in :data:`EVERYWHERE`: a Region that is not enabled for an account
            does not know its credentials.
        region: the Region's name; None where none is named.
    """
    report = Reporter("credentials", region or "AWS")
    if region is None:
        return None, explained(report, CallFailed(Failure.REGION, "sts", "GetCallerIdentity", "NoRegionError", ""))
    try:
        found = calls("sts", "GetCallerIdentity")
    except CallFailed as failed:
        if failed.failure is Failure.INVALID and _known(elsewhere):
            return None, report.problem(
                f"the Region {region} is not enabled for this account",
                "enable it (Account settings, AWS Regions), or choose another with AWS_REGION",
            )
        return None, explained(report, failed)
    identity = Identity(str(found["Account"]), str(found["Arn"]))
    return identity, report.ok(f"account {identity.account} as {identity.arn}")


def _known(calls: Calls) -> bool:
    try:
        calls("sts", "GetCallerIdentity")
    except CallFailed:
        return False
    return True


def check_bootstrap(calls: Calls, region: str) -> Iterable[Finding]:
    """Whether the account is prepared for the CDK, by a version that is new enough."""
    report = Reporter("bootstrap", region)
    try:
        value = calls("ssm", "GetParameter", Name=BOOTSTRAP_PARAMETER)["Parameter"]["Value"]
    except CallFailed as failed:
        if failed.code != "ParameterNotFound":
            raise
        yield report.problem("the Region is not bootstrapped for the CDK", "make bootstrap")
        return
    version = int(value) if str(value).isdecimal() else 0
    if version < OLDEST_BOOTSTRAP:
        yield report.problem(f"version {value} is too old: {OLDEST_BOOTSTRAP} is required", "make bootstrap")
    elif version < BOOTSTRAP_FOR_ROLLBACK:
        yield report.warning(
            f"version {value} can deploy, but `cdk rollback` needs {BOOTSTRAP_FOR_ROLLBACK}",
            "make bootstrap updates it",
        )
    else:
        yield report.ok(f"version {value}")
