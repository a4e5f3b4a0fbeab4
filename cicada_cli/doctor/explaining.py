"""A failed call as a finding: what is missing, and what to do."""

from __future__ import annotations

from cicada_cli.doctor.calls import CallFailed, Failure
from cicada_cli.doctor.findings import Finding, Reporter
from cicada_cli.text import clipped

MAX_CHARS = 240
"""Of what a service says."""
SIGN_IN = "sign in to AWS again (`aws sso login`, `aws login`, or new keys), and run this command again"
CREDENTIALS = "set AWS_PROFILE, sign in (`aws sso login`), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


def explained(report: Reporter, failed: CallFailed) -> Finding:
    """What a call that failed means for a check that cannot go on without it."""
    said = clipped(str(failed), MAX_CHARS)
    match failed.failure:
        case Failure.CREDENTIALS:
            return report.problem(f"no AWS credentials: {said}", CREDENTIALS)
        case Failure.EXPIRED:
            return report.problem(f"the AWS credentials have expired: {said}", SIGN_IN)
        case Failure.INVALID:
            return report.problem(
                f"AWS rejected these credentials ({failed.code}: {said})",
                "check the keys, and that the Region is enabled for the account (Account settings, AWS Regions)",
            )
        case Failure.REGION:
            return report.problem("no Region is set", "set AWS_REGION, or a region in your AWS profile")
        case Failure.DENIED:
            return report.unknown(
                f"missing permission {failed.permission}",
                f"run this command with a role that has {failed.permission}",
                failed.permission,
            )
        case Failure.THROTTLED:
            return report.unknown(f"AWS throttled {failed.service}:{failed.operation}", "run this command again later")
        case Failure.UNREACHABLE:
            return report.unknown(
                f"cannot reach {failed.service} ({failed.code}: {said})",
                "check the network and the proxy, and that the service exists in this Region",
            )
    return report.unknown(f"{failed.service}:{failed.operation} failed ({failed.code}: {said})")
