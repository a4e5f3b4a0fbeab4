"""``python -m cicada_deploy``: what ``make bootstrap`` and ``make deploy`` do, with the CDK CLI that is pinned.

The account is checked before anything is created in it; a problem ends the command there. Each command can be run again
after it was cut off, at whatever moment: CloudFormation's own state says what is left to do.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from cicada_cli.aws import Aws
from cicada_cli.doctor.command import PROFILE_VARIABLE, region_of
from cicada_cli.exits import UsageError
from cicada_deploy.cdk import ROOT, Cdk
from cicada_deploy.checks import Doctor

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line and do it; returns the exit status."""
    args, more = _parser().parse_known_args(argv)
    aws = Aws(profile=args.profile or os.environ.get(PROFILE_VARIABLE), region=args.region)
    try:
        region = region_of(aws)
        doctor = Doctor(aws, region, settings=_settings(args.context), checks=not args.no_checks)
        account = doctor.account()
        if account is None or region is None:
            return 1
        cdk = Cdk(aws.profile, region)
        if args.command == "bootstrap":
            return cdk.bootstrap(account, more)
        if not doctor.before():
            return 1
        return _deploy(cdk, doctor, [word for value in args.context for word in ("-c", value)], more)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. Run the same command to complete it.", file=sys.stderr)
        return INTERRUPTED


def _deploy(cdk: Cdk, doctor: Doctor, context: Sequence[str], more: Sequence[str]) -> int:
    """Deploy; over stacks that are there only what they bear. Returns the exit status."""
    if doctor.is_update():
        assembly = _assembly(more)
        if assembly is None:
            assembly, status = cdk.synth(context)
            if status != 0:
                return status
            more = ["--app", str(assembly), *more]
        if not doctor.changes(assembly):
            return 1
    status = cdk.deploy([*context, *more], ask=sys.stdin.isatty())
    if status != 0:
        doctor.after_failure()
        return status
    return 0 if doctor.after() else 1


def _assembly(more: Sequence[str]) -> Path | None:
    """The synthesis that the options name, if they do."""
    named = [Path(value) for option, value in pairwise(more) if option in ("-a", "--app")]
    return named[-1] if named and (named[-1] / "manifest.json").exists() else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cicada_deploy",
        description="Deploy Cicada to an AWS account. Options that are not listed here are the CDK CLI's.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, told in {
        "bootstrap": "prepare the account for the CDK, once for each Region",
        "deploy": "check, deploy, and check what is deployed",
    }.items():
        command = commands.add_parser(name, help=told, description=told, allow_abbrev=False)
        command.add_argument("--profile", help="AWS profile (AWS_PROFILE)")
        command.add_argument("--region", help="AWS Region (AWS_REGION)")
        command.add_argument(
            "-c",
            "--context",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help=f"context of the CDK; settings=FILE names a file below {ROOT.name} in place of cdk.json",
        )
        command.add_argument("--no-checks", action="store_true", help="check neither the account nor the deployment")
    return parser


def _settings(context: Sequence[str]) -> str | None:
    """The file of settings that the context names."""
    named = [value.partition("=")[2] for value in context if value.startswith("settings=")]
    return named[-1] if named else None


if __name__ == "__main__":
    sys.exit(main())
