"""Users, groups and the deployment as accounts: how administrators name them, and their limits."""

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
    """The user of a command."""
    parser.add_argument("--user", metavar="USER", help="a user: e-mail address, or subject of the tokens")


def add_tenant(parser: argparse.ArgumentParser) -> None:
    """The tenant of a user."""
    parser.add_argument("--tenant", metavar="TENANT", help="tenant of the user, if auth.tenantClaim is set")


def records_of(deployment: Deployment) -> DynamoDbUsageRecords:
    """The usage records of a deployment, and its overrides of limits."""
    from cicada.usage.records import DynamoDbUsageRecords

    return DynamoDbUsageRecords(table_client(deployment), deployment.requests_table)


@dataclass(frozen=True)
class NamedUser:
    """A user: the owner of items in the table, and the name that the administrator typed."""

    owner: str
    told: str
    """The name that was typed."""
    groups: tuple[str, ...] | None
    """None if unknown: with an issuer of your own, only tokens name the groups."""


def user_named(args: argparse.Namespace, deployment: Deployment) -> NamedUser:
    """The user of ``--user`` and ``--tenant``. An e-mail address is looked up in the user pool, if there is one.

    Raises:
        UserUnknown, UserPoolFault.
    """
    from cicada.identity import owner_of

    subject, user = subject_of(deployment, args.user)
    groups = user.groups if user is not None else None if deployment.wants_sign_in else ()
    return NamedUser(owner_of(subject, args.tenant), args.user, groups)


@dataclass(frozen=True)
class SettingsOfUse:
    """The limits of the deployment's settings."""

    limits: UsageLimits
    request: Mapping[str, float]
    """What a question reserves: ``tokens`` and ``usd``."""

    @classmethod
    def of(cls, deployment: Deployment) -> SettingsOfUse | None:
        """The settings of a deployment; None if its stacks were not read or are of an earlier release."""
        from cicada.usage.limits import UsageLimits

        if deployment.usage_limits is None:
            return None
        told: dict[str, Any] = json.loads(deployment.usage_limits)
        request = told.pop("request")
        return cls(UsageLimits.model_validate(told), request)

    def of_user(self, user: NamedUser, override: Limits | None) -> Limits | None:
        """The limits of a user; None if they depend on groups that are unknown."""
        if user.groups is None and self.limits.members:
            return None
        limits = self.limits.of_user(user.groups or ())
        return limits if override is None else limits.overridden_by(override)

    def of_pool(self, account: Account, override: Limits | None) -> Limits:
        """The limits of a group as a whole, or of all users together."""
        limits = self.limits.deployment if account.kind == "deployment" else self.limits.groups[account.name]
        return limits if override is None else limits.overridden_by(override)


def limit_options() -> dict[str, str]:
    """The options of the limits: ``--usd-day`` of ``usd_day``, and its name in the settings ``usdDay``."""
    from cicada.usage.limits import LimitName, Limits

    return dict(zip(Limits.model_fields, get_args(LimitName), strict=True))
