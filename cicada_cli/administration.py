"""Shared by the commands that manage users, limits and personal data."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from cicada_cli.actor import actor_of
from cicada_cli.context import deployment_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.index import store_of
from cicada_cli.output import complain, note
from cicada_cli.shared_options import add_aws, add_bucket, add_table
from cicada_cli.user_pool import PoolUser, UserPool, UserPoolFault, UserUnknown

if TYPE_CHECKING:
    from cicada.audit.records import Action, ChangeRecord

READING = ("requests_table", "auth_mode")
"""Values of the deployment that commands need to show something; user pool and limits come with the mode."""
CHANGING = (*READING, "bucket")
"""Values that commands need to change something: each change is recorded in the bucket."""

Run = Callable[[argparse.Namespace], Exit]
Command = Callable[[argparse.Namespace, Deployment], Exit]


def administrative(command: Command, needs: Sequence[str]) -> Run:
    """A parser's ``run``: find the deployment, run the command, report its failures."""

    def run(args: argparse.Namespace) -> Exit:
        deployment = deployment_of(args, needs)
        return guarded(lambda: command(args, deployment))

    return run


def add_deployment(parser: argparse.ArgumentParser, *, bucket: bool) -> None:
    """Add the options that name the table, the user pool and, with ``bucket``, the bucket of the audit records."""
    group = parser.add_argument_group("deployment")
    group.add_argument("--user-pool", metavar="ID", help="Cognito user pool")
    add_table(group)
    if bucket:
        add_bucket(group, "the audit records")
    add_aws(group)


def guarded(command: Callable[[], Exit]) -> Exit:
    """Run a command and report failures of the user pool, the table and the audit records."""
    from cicada.errors import AuditUnavailable
    from cicada.personal_data.erasure import ErasureIncomplete
    from cicada.personal_data.items import PersonalDataFault
    from cicada.revocation import RevocationFault
    from cicada.usage.records import UsageFault

    try:
        return command()
    except UserUnknown as error:
        complain(f"unknown user {error}. `cicada users list` lists the users")
    except (AuditUnavailable, UserPoolFault) as error:
        complain(str(error))
    except RevocationFault as error:
        complain(f"cannot store the revocation: {error}. Run the same command again")
    except UsageFault as error:
        complain(f"cannot read or write the table of requests: {error}")
    except (ErasureIncomplete, PersonalDataFault) as error:
        complain(f"{error}. Run the same command to resume")
    return Exit.FAILED


def confirmed(question: str, doing: str) -> bool:
    """Ask whether to go on. Raises UsageError if standard input is not a terminal."""
    if not sys.stdin.isatty():
        raise UsageError(f"cannot ask whether to {doing}: standard input is not a terminal. Add --yes")
    note(f"{question} [y/N] ", end="")
    return input().strip().lower() in ("y", "yes")


def table_client(deployment: Deployment) -> Any:
    """A DynamoDB client for a few reads and writes."""
    from botocore.config import Config

    config = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
    return deployment.aws.client("dynamodb", config)


def subject_of(deployment: Deployment, name: str) -> tuple[str, PoolUser | None]:
    """The subject of an e-mail address or subject, and its user in the pool, if there is one.

    Raises:
        UserUnknown: the pool has no such address.
        UserPoolFault.
    """
    if deployment.user_pool_id is None:
        return name, None
    try:
        user = UserPool.of(deployment.aws, deployment.user_pool_id).user(name)
    except UserUnknown:
        if "@" in name:
            raise
        return name, None  # a removed user may still have data
    return user.subject, user


def recorded(
    deployment: Deployment, action: Action, subject: str | None, **details: Any
) -> AbstractContextManager[ChangeRecord]:
    """Record a change that the block makes; see :func:`cicada.audit.records.record`."""
    from cicada.audit.records import record

    return record(store_of(deployment), action, actor=actor_of(deployment.aws), subject=subject, details=details)
