"""``cicada doctor``: check an AWS account before a deployment, and the deployment after it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cicada_cli.aws import Aws
from cicada_cli.context import deployment_of
from cicada_cli.credentials import token_source
from cicada_cli.deployment import DEFAULT_STACK_PREFIX, LOCAL_REGION, LOCAL_SETTINGS, Deployment
from cicada_cli.doctor.findings import Status, worst
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.output import say, say_json
from cicada_cli.shared_options import add_connection, add_json

if TYPE_CHECKING:
    from cicada.index.ports import ObjectStore
    from cicada_cli.doctor.examine import Ports, Wanted
    from cicada_client import TokenProvider

NEEDS: tuple[str, ...] = ()
"""No value is required: there may be no deployment."""
DESCRIBES = Path("stacks") / "describe.py"
"""The file that marks a checkout."""
PROFILE_VARIABLE = "AWS_PROFILE"
PREFIX_VARIABLE = "CICADA_STACK_PREFIX"
_OWN_PROJECT = Path(__file__).resolve().parents[2]


def add_doctor(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "doctor",
        help="check an AWS account and a deployment",
        description="Check what a deployment needs and, if one exists, whether it works. It changes nothing.",
        examples=("cicada doctor --before", "cicada doctor --deployed --no-question"),
    )
    stage = parser.add_mutually_exclusive_group()
    stage.add_argument(
        "--before", dest="stage", action="store_const", const="before", help="check only what a deployment needs"
    )
    stage.add_argument(
        "--deployed",
        dest="stage",
        action="store_const",
        const="deployed",
        help="check the deployment too; a missing deployment is a problem",
    )
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help='settings file instead of cdk.json, as in make deploy ARGS="-c settings=FILE"',
    )
    parser.add_argument("--no-question", action="store_true", help="ask no question")
    add_json(parser)
    parser.set_defaults(run=_doctor, stage="any")
    add_connection(parser)


def _doctor(args: argparse.Namespace) -> Exit:
    return doctor(
        deployment_of(args, NEEDS),
        stage=args.stage,
        prefix=args.stack_prefix,
        settings=args.settings,
        with_question=not args.no_question,
        token=args.token,
        token_file=args.token_file,
        as_json=args.json,
    )


def doctor(
    deployment: Deployment,
    *,
    stage: str,
    prefix: str | None,
    settings: str | None,
    with_question: bool,
    token: str | None,
    token_file: Path | None,
    as_json: bool,
) -> Exit:
    """Run the checks and print the report. The exit status is 1 if there is a problem."""
    from cicada_cli.doctor.examine import Wanted, examine
    from cicada_cli.doctor.view import as_json as plain
    from cicada_cli.doctor.view import lines

    aws = deployment.aws
    project = find_project(Path.cwd())
    wanted = Wanted(
        project=project,
        region=region_of(aws),
        prefix=prefix or os.environ.get(PREFIX_VARIABLE),
        stage=stage,
        with_question=with_question,
        outputs=deployment.known_outputs(),
    )
    file = settings or deployment.values.get(LOCAL_SETTINGS)
    report = examine(wanted, ports_of(aws, wanted, file, token, token_file), DEFAULT_STACK_PREFIX)
    if as_json:
        say_json(plain(report), indent=2, readable=True)
    else:
        for line in lines(report):
            say(line)
    return Exit.FAILED if worst(report.findings) is Status.PROBLEM else Exit.DONE


def ports_of(
    aws: Aws, wanted: Wanted, settings: str | None, token: str | None = None, token_file: Path | None = None
) -> Ports:
    """The ports over AWS, the web and the project."""
    from botocore.config import Config

    from cicada_cli.doctor import settings as settings_check
    from cicada_cli.doctor.account import EVERYWHERE
    from cicada_cli.doctor.calls import ATTEMPTS, CONNECT_TIMEOUT_S, READ_TIMEOUT_S, AwsCalls
    from cicada_cli.doctor.examine import Ports
    from cicada_cli.doctor.web import fetch

    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
    )
    elsewhere = Aws(aws.profile, EVERYWHERE, aws.endpoint_url, aws.local)

    def read_settings(account: str | None) -> settings_check.SettingsRead:
        return settings_check.read_settings(wanted.project, settings, account=account, region=wanted.region)

    def store(bucket: str) -> ObjectStore:
        from cicada.index.s3 import CLIENT_CONFIG, S3Store

        return S3Store(aws.client("s3", CLIENT_CONFIG), bucket)

    def token_of(url: str) -> str | TokenProvider | None:
        return token_source(token, token_file, os.environ, Deployment({"url": url}, aws))

    return Ports(
        calls=AwsCalls(lambda service: aws.client(service, config)),
        elsewhere=AwsCalls(lambda service: elsewhere.client(service, config)),
        fetch=fetch,
        store=store,
        read_settings=read_settings,
        token=token_of,
    )


def find_project(folder: Path) -> Path | None:
    """The checkout of a folder, or of this command; None if the command is installed without one."""
    for candidate in (folder, *folder.parents, _OWN_PROJECT):
        if (candidate / DESCRIBES).is_file():
            return candidate
    return None


def region_of(aws: Aws) -> str | None:
    """The Region of the AWS calls; None if none is set.

    Raises:
        UsageError: the profile does not exist.
    """
    if aws.local:
        return LOCAL_REGION
    named = aws.region or os.environ.get("AWS_REGION")
    if named:
        return named
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        session: Any = boto3.Session(profile_name=aws.profile)
    except BotoCoreError as error:
        raise UsageError(str(error)) from error
    region: str | None = session.region_name
    return region
