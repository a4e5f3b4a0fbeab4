"""The accounts that use is counted for, as administrators name them, and what a deployment limits them to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.output import complain
from cicada_cli.user_pool import PoolUser, UserPool, UserPoolFault, UserUnknown

if TYPE_CHECKING:
    from cicada.usage.accounts import Account
    from cicada.usage.limits import Limits, UsageLimits
    from cicada.usage.records import DynamoDbUsageRecords

READING = ("requests_table", "auth_mode")
"""What commands that show something must know of the deployment; user pool and limits come with the mode."""
CHANGING = (*READING, "bucket")
"""What commands that change something must know too: changes are recorded in the bucket."""

Run = Callable[[argparse.Namespace], Exit]
Command = Callable[[argparse.Namespace, Deployment], Exit]


def add_deployment(
    parser: argparse.ArgumentParser, add_aws: Callable[[argparse._ArgumentGroup], None]
) -> argparse._ArgumentGroup:
    """How a command reaches the table and the user pool."""
    group = parser.add_argument_group("deployment")
    group.add_argument("--user-pool", metavar="ID", help="the user pool")
    group.add_argument("--table", metavar="NAME", help="the table of requests (CICADA_REQUESTS_TABLE)")
    add_aws(group)
    return group


def add_user(parser: argparse._ActionsContainer) -> None:
    """Which user a command is about."""
    parser.add_argument("--user", metavar="USER", help="a user: the e-mail address, or the subject of the tokens")


def add_tenant(parser: argparse.ArgumentParser) -> None:
    """In which tenant a user is looked for."""
    parser.add_argument("--tenant", metavar="TENANT", help="the user's tenant, where auth.tenantClaim names one")


def guarded(command: Callable[[], Exit]) -> Exit:
    """Carry a command out, and tell of what it could not do."""
    from cicada.errors import AuditUnavailable
    from cicada.usage.records import UsageFault

    try:
        return command()
    except UserUnknown as error:
        complain(f"there is no user {error}; `cicada users list` lists them")
    except (UserPoolFault, AuditUnavailable) as error:
        complain(str(error))
    except UsageFault as error:
        complain(f"the table of requests could not be read or written: {error}")
    return Exit.FAILED


def records_of(deployment: Deployment) -> DynamoDbUsageRecords:
    """What a deployment's users have used, and their limits."""
    from botocore.config import Config

    from cicada.usage.records import DynamoDbUsageRecords

    config = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
    return DynamoDbUsageRecords(deployment.aws.client("dynamodb", config), deployment.requests_table)


@dataclass(frozen=True)
class NamedUser:
    """A user as the table knows them, and as the administrator does."""

    owner: str
    told: str
    """The name that was typed."""
    groups: tuple[str, ...] | None
    """None where it is not known: an issuer's tokens have them."""


def user_named(args: argparse.Namespace, deployment: Deployment) -> NamedUser:
    """The user of ``--user`` and ``--tenant``. An e-mail address is looked up in the user pool, where there is one.

    Raises:
        UserUnknown, UserPoolFault.
    """
    from cicada.identity import owner_of

    user = _pool_user(args.user, deployment)
    subject = args.user if user is None else user.subject
    groups = user.groups if user is not None else None if deployment.wants_sign_in else ()
    return NamedUser(owner_of(subject, args.tenant), args.user, groups)


def _pool_user(name: str, deployment: Deployment) -> PoolUser | None:
    if deployment.user_pool_id is None:
        return None
    try:
        return UserPool.of(deployment.aws, deployment.user_pool_id).user(name)
    except UserUnknown:
        if "@" in name:
            raise
        return None  # a user who is gone may have used something


@dataclass(frozen=True)
class SettingsOfUse:
    """What the deployment's settings say of limits."""

    limits: UsageLimits
    request: Mapping[str, float]
    """What a question reserves: ``tokens`` and ``usd``."""

    @classmethod
    def of(cls, deployment: Deployment) -> SettingsOfUse | None:
        """Those of a deployment; None where its stacks were not asked, or are of an earlier release."""
        from cicada.usage.limits import UsageLimits

        if deployment.usage_limits is None:
            return None
        told: dict[str, Any] = json.loads(deployment.usage_limits)
        request = told.pop("request")
        return cls(UsageLimits.model_validate(told), request)

    def of_user(self, user: NamedUser, override: Limits | None) -> Limits | None:
        """The limits that a user has; None where they depend on groups that are not known."""
        if user.groups is None and self.limits.members:
            return None
        limits = self.limits.of_user(user.groups or ())
        return limits if override is None else limits.overridden_by(override)

    def of_pool(self, account: Account, override: Limits | None) -> Limits:
        """The limits of a group's members together, or of everybody."""
        limits = self.limits.deployment if account.kind == "deployment" else self.limits.groups[account.name]
        return limits if override is None else limits.overridden_by(override)


def limit_options() -> dict[str, str]:
    """The options of the limits: ``--usd-day`` of ``usd_day``, and its name in the settings ``usdDay``."""
    from cicada.usage.limits import LimitName, Limits

    return dict(zip(Limits.model_fields, get_args(LimitName), strict=True))
