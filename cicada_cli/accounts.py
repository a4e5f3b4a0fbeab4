"""The accounts that use is counted for, as administrators name them, and what a deployment limits them to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from cicada_cli.administration import subject_of, table_client
from cicada_cli.deployment import Deployment

if TYPE_CHECKING:
    from cicada.usage.accounts import Account
    from cicada.usage.limits import Limits, UsageLimits
    from cicada.usage.records import DynamoDbUsageRecords


def add_user(parser: argparse._ActionsContainer) -> None:
    """Which user a command is about."""
    parser.add_argument("--user", metavar="USER", help="a user: the e-mail address, or the subject of the tokens")


def add_tenant(parser: argparse.ArgumentParser) -> None:
    """In which tenant a user is looked for."""
    parser.add_argument("--tenant", metavar="TENANT", help="the user's tenant, where auth.tenantClaim names one")


def records_of(deployment: Deployment) -> DynamoDbUsageRecords:
    """What a deployment's users have used, and their limits."""
    from cicada.usage.records import DynamoDbUsageRecords

    return DynamoDbUsageRecords(table_client(deployment), deployment.requests_table)


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

    subject, user = subject_of(deployment, args.user)
    groups = user.groups if user is not None else None if deployment.wants_sign_in else ()
    return NamedUser(owner_of(subject, args.tenant), args.user, groups)


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
