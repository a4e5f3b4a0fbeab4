"""``cicada usage``: usage of users, groups and the deployment, and their limits."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cicada_cli.accounts import NamedUser, SettingsOfUse, add_tenant, add_user, records_of, user_named
from cicada_cli.administration import READING, add_deployment, administrative
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.grammar import Commands
from cicada_cli.limit_words import is_money, moment, quantity
from cicada_cli.output import complain, console, note, say_json, show_rows
from cicada_cli.shared_options import add_json
from cicada_cli.text import counted
from cicada_cli.user_pool import UserPool, UserPoolFault

if TYPE_CHECKING:
    from cicada.usage.accounts import Account
    from cicada.usage.limits import Limits, LimitState
    from cicada.usage.records import DynamoDbUsageRecords, MonthOfUse, Overrides

COLUMNS = ("account", "questions", "tokens", "USD", "tokens today", "USD today", "of limits")
DAYS = ("day", "tokens", "USD")
LIMITS = ("limit", "used", "of", "left", "resets")
_NUMBERS = frozenset({"questions", "tokens", "USD", "tokens today", "USD today", "used", "of", "left"})


def add_usage(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "usage",
        help="show what was used",
        description="Show questions, tokens and cost of all users, or of one user, in a month.",
        examples=("cicada usage", "cicada usage --user ada@example.com --month 2026-10"),
    )
    add_user(parser)
    add_tenant(parser)
    parser.add_argument("--month", type=_month, metavar="YYYY-MM", help="month, in UTC (default: this month)")
    add_json(parser)
    parser.set_defaults(run=administrative(_usage, READING))
    add_deployment(parser, bucket=False)


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def _month(text: str) -> str:
    if re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", text) is None:
        raise argparse.ArgumentTypeError("must be a month such as 2026-11")
    return text


def _usage(args: argparse.Namespace, deployment: Deployment) -> Exit:
    now = utc_now()
    month = args.month or f"{now:%Y-%m}"
    records = records_of(deployment)
    reading = Reading(records, records.overrides(), SettingsOfUse.of(deployment), month, now)
    if args.user is None:
        return _all(args, deployment, reading)
    return _one(args, user_named(args, deployment), reading)


@dataclass(frozen=True)
class AccountOfUse:
    """An account's usage, and what is left of its limits."""

    account: Account
    told: str
    """The account's name for people."""
    use: MonthOfUse
    limits: tuple[LimitState, ...]
    """Empty unless the month is the current one."""
    limits_known: bool = True

    def plain(self) -> dict[str, Any]:
        """The account as JSON data."""
        return {
            "account": self.account.kind,
            "name": self.account.name,
            "questions": self.use.total.requests,
            "open": self.use.total.open,
            **_counted(self.use.total.tokens, self.use.total.microusd),
            "reserved": _counted(self.use.total.reserved_tokens, self.use.total.reserved_microusd),
            "days": {f"{day:02}": _counted(use.day_tokens, use.day_microusd) for day, use in self.use.days.items()},
            "limits": [limit.model_dump(mode="json", by_alias=True) for limit in self.limits],
        }


@dataclass(frozen=True)
class Reading:
    """Reads the usage of accounts in a month and compares it with their limits."""

    records: DynamoDbUsageRecords
    overrides: Overrides
    settings: SettingsOfUse | None
    month: str
    now: datetime

    @property
    def is_now(self) -> bool:
        """Whether the month is the current one."""
        return self.month == f"{self.now:%Y-%m}"

    def of_user(self, user: NamedUser, use: MonthOfUse | None = None) -> AccountOfUse:
        """The usage of a user; ``use`` if it has been read already."""
        from cicada.usage.accounts import user as account_of

        account = account_of(user.owner)
        override = self.overrides.limits.get(account)
        limits = None if self.settings is None else self.settings.of_user(user, override)
        found = self.records.month([account], self.month) if use is None else use
        return AccountOfUse(account, user.told, found, self._states(account, found, limits), limits is not None)

    def of_pools(self) -> Iterator[AccountOfUse]:
        """The usage of the limited groups, and of the deployment if it is limited."""
        from cicada.usage.accounts import Account, pool

        if self.settings is None:
            return
        for account in (*(Account("group", name) for name in self.settings.limits.groups), Account("deployment")):
            limits = self.settings.of_pool(account, self.overrides.limits.get(account))
            if limits.stated:
                found = self.records.month(
                    pool(account.kind, account.name, self.settings.limits.pool_shards), self.month
                )
                told = f"group {account.name}" if account.name else "all users"
                yield AccountOfUse(account, told, found, self._states(account, found, limits))

    def _states(self, account: Account, use: MonthOfUse, limits: Limits | None) -> tuple[LimitState, ...]:
        from cicada.usage.accounts import Window
        from cicada.usage.limits import MICRO, LimitState

        if limits is None or not self.is_now:
            return ()
        window = Window.at(self.now.timestamp())
        used = use.on(window.day)
        return tuple(
            LimitState(
                account=account.kind,
                group=account.name if account.kind == "group" else None,
                limit=name,
                most=most / (MICRO if is_money(name) else 1),
                left=max(0, most - used.counted(name, window.minute)) / (MICRO if is_money(name) else 1),
                resets_at_ms=window.ends_at_ms(name),
            )
            for name, most in limits.stated.items()
        )


# --- all users ---


def _all(args: argparse.Namespace, deployment: Deployment, reading: Reading) -> Exit:
    names = _names(deployment)
    groups = None if deployment.wants_sign_in else ()
    users = []
    for owner, use in reading.records.users(reading.month):
        known = names.get(owner.rpartition("/")[2])  # after the tenant
        user = NamedUser(owner, owner, groups) if known is None else replace(known, owner=owner)
        users.append(reading.of_user(user, use))
    users.sort(key=lambda one: (-one.use.total.microusd, -one.use.total.tokens, one.told))
    pools = list(reading.of_pools())
    if args.json:
        say_json(
            {
                "month": reading.month,
                "stopped": reading.overrides.stopped,
                "users": [one.plain() for one in users],
                "pools": [one.plain() for one in pools],
            }
        )
        return Exit.DONE
    out = console()
    if not users and out.is_terminal:
        note(f"No questions were asked in {reading.month}.")
    else:
        show_rows(COLUMNS, (_row(one, reading) for one in (*users, *pools)), out, numbers=tuple(_NUMBERS))
    _warn(reading)
    return Exit.DONE


def _names(deployment: Deployment) -> dict[str, NamedUser]:
    """The users of the pool by subject; empty without a pool or the permission to read it."""
    if deployment.user_pool_id is None:
        return {}
    try:
        users = UserPool.of(deployment.aws, deployment.user_pool_id).users()
    except UserPoolFault as error:
        complain(f"users are shown by subject, because the user pool cannot be read: {error}")
        return {}
    return {user.subject: NamedUser(user.subject, user.email, user.groups) for user in users}


def _row(one: AccountOfUse, reading: Reading) -> Sequence[str]:
    total = one.use.total
    today = one.use.on(reading.now.day) if reading.is_now else None
    return (
        one.told,
        f"{total.requests + total.open:,}",
        f"{total.tokens:,}",
        _usd(total.microusd),
        f"{today.day_tokens:,}" if today else "",
        _usd(today.day_microusd) if today else "",
        ", ".join(map(_share, one.limits)) if one.limits_known else "unknown",
    )


def _share(limit: LimitState) -> str:
    most, left = limit.most or 0, limit.left or 0
    return f"{limit.limit} {(most - left) / most:.0%}" if most else f"{limit.limit} 0"


# --- one user ---


def _one(args: argparse.Namespace, user: NamedUser, reading: Reading) -> Exit:
    found = reading.of_user(user)
    if args.json:
        say_json({"month": reading.month, "stopped": reading.overrides.stopped, **found.plain()})
        return Exit.DONE
    out, use = console(), found.use
    rows = [(f"{reading.month}-{day:02}", f"{on.day_tokens:,}", _usd(on.day_microusd)) for day, on in use.days.items()]
    show_rows(
        DAYS,
        [*rows, (reading.month, f"{use.total.tokens:,}", _usd(use.total.microusd))],
        out,
        numbers=("tokens", "USD"),
    )
    if found.limits:
        if out.is_terminal:
            out.print()
        show_rows(LIMITS, map(_limit_row, found.limits), out, numbers=("used", "of", "left"))
    if not found.limits_known:
        complain("the limits are unknown: they depend on the user's groups, or the stacks were not read")
    total = use.total
    if total.open:
        reserved = f"{total.reserved_tokens:,} tokens and ${_usd(total.reserved_microusd)}"
        complain(f"{counted(total.open, 'question')} being answered: the totals include {reserved} reserved for them")
    _warn(reading)
    return Exit.DONE


def _limit_row(limit: LimitState) -> Sequence[str]:
    most, left = limit.most or 0, limit.left or 0
    when = "" if limit.resets_at_ms is None else moment(limit.resets_at_ms)
    return (limit.limit, *(quantity(limit.limit, amount) for amount in (most - left, most, left)), when)


def _warn(reading: Reading) -> None:
    if reading.overrides.stopped:
        complain("questions are stopped: `cicada limits start` allows them again")


def _counted(tokens: int, microusd: int) -> dict[str, Any]:
    from cicada.usage.limits import MICRO

    return {"tokens": tokens, "usd": microusd / MICRO}


def _usd(microusd: int) -> str:
    from cicada.usage.limits import MICRO

    return f"{microusd / MICRO:,.4f}"
