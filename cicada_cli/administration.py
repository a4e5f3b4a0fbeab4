"""What the commands that manage users, limits and personal data share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from cicada_cli.actor import actor_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.index import store_of
from cicada_cli.output import complain, note
from cicada_cli.shared_options import add_aws
from cicada_cli.user_pool import PoolUser, UserPool, UserPoolFault, UserUnknown

if TYPE_CHECKING:
    from cicada.audit.records import Action, ChangeRecord

READING = ("requests_table", "auth_mode")
"""What commands that show something must know of the deployment; user pool and limits come with the mode."""
CHANGING = (*READING, "bucket")
"""What commands that change something must know too: changes are recorded in the bucket."""

Run = Callable[[argparse.Namespace], Exit]
Command = Callable[[argparse.Namespace, Deployment], Exit]
Runner = Callable[[Command, tuple[str, ...]], Run]
"""Makes a command's ``run``, from the command and what it must know of the deployment."""


def add_deployment(parser: argparse.ArgumentParser, *, bucket: bool) -> None:
    """Add the options that name the table, the user pool and, with ``bucket``, where changes are recorded."""
    group = parser.add_argument_group("deployment")
    group.add_argument("--user-pool", metavar="ID", help="the user pool")
    group.add_argument("--table", metavar="NAME", help="the table of requests (CICADA_REQUESTS_TABLE)")
    if bucket:
        group.add_argument("--bucket", help="the bucket that holds the audit records (CICADA_INDEX_BUCKET)")
    add_aws(group)


def guarded(command: Callable[[], Exit]) -> Exit:
    """Run a command; report a failure of the user pool, the table or the audit records."""
    from cicada.errors import AuditUnavailable
    from cicada.personal_data.erasure import ErasureIncomplete
    from cicada.personal_data.items import PersonalDataFault
    from cicada.revocation import RevocationFault
    from cicada.usage.records import UsageFault

    try:
        return command()
    except UserUnknown as error:
        complain(f"there is no user {error}; `cicada users list` lists them")
    except (AuditUnavailable, UserPoolFault) as error:
        complain(str(error))
    except RevocationFault as error:
        complain(f"the revocation could not be noted: {error}. The same command tries again")
    except UsageFault as error:
        complain(f"the table of requests could not be read or written: {error}")
    except (ErasureIncomplete, PersonalDataFault) as error:
        complain(f"{error}. The same command goes on where this one stopped")
    return Exit.FAILED


def confirmed(question: str, doing: str) -> bool:
    """Ask whether to go on. Raises UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError(f"nobody can be asked whether to {doing}: add --yes")
    note(f"{question} [y/N] ", end="")
    return input().strip().lower() in ("y", "yes")


def table_client(deployment: Deployment) -> Any:
    """A DynamoDB client for a few reads and writes."""
    from botocore.config import Config

    config = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
    return deployment.aws.client("dynamodb", config)


def subject_of(deployment: Deployment, name: str) -> tuple[str, PoolUser | None]:
    """The subject that an e-mail address or a subject names, and the user in the pool, where there is one.

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
        return name, None  # a user who was removed may still have data
    return user.subject, user


def recorded(
    deployment: Deployment, action: Action, subject: str | None, **details: Any
) -> AbstractContextManager[ChangeRecord]:
    """Record a change that the block makes; see :func:`cicada.audit.records.record`."""
    from cicada.audit.records import record

    return record(store_of(deployment), action, actor=actor_of(deployment.aws), subject=subject, details=details)
