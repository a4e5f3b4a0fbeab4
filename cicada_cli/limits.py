"""``cicada limits``: limits on use, and the switch that stops all spending."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from time import sleep
from typing import TYPE_CHECKING, Any

from cicada_cli.accounts import SettingsOfUse, add_tenant, add_user, limit_options, records_of, user_named
from cicada_cli.administration import CHANGING, READING, add_deployment, administrative, recorded
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.limit_words import UNITS, is_money, quantity
from cicada_cli.near_names import did_you_mean
from cicada_cli.output import complain, console, note, say, say_json, show_rows
from cicada_cli.shared_options import add_json

if TYPE_CHECKING:
    from cicada.usage.accounts import Account
    from cicada.usage.limits import Limits
    from cicada.usage.records import Overrides

COLUMNS = ("account", "limit", "maximum", "set by")
NONE = "none"
"""The value that removes a limit."""
_NOT_OPTIONS = {"json": False, "user_pool": None, "table": None, "bucket": None}
_NOT_OF_AWS = {"aws_profile": None, "region": None, "endpoint_url": None, "stack_prefix": None}


def add_limits(commands: Commands) -> None:
    """Add the command's parsers."""
    limits = commands.add_parser(
        "limits",
        help="show or change limits on use",
        description="Show or change the limits of users, groups and the deployment.",
        examples=("cicada limits show", "cicada limits set --user ada@example.com --usd-day 5"),
    )
    limits.set_defaults(run=administrative(_show, READING), **_NOT_OPTIONS, **_NOT_OF_AWS)
    actions = limits.add_subparsers(dest="action", metavar="COMMAND")

    showing = actions.add_parser(
        "show",
        help="list the limits",
        description="List the limits in force.",
        examples=("cicada limits show",),
    )
    showing.set_defaults(run=administrative(_show, READING))

    setting = actions.add_parser(
        "set",
        help="override limits",
        description="Override limits of the settings for a user, a group or all users together.",
        examples=(
            "cicada limits set --user ada@example.com --usd-day 5 --requests-minute none",
            "cicada limits set --deployment --usd-day 80",
        ),
    )
    _add_account(setting)
    for field, name in limit_options().items():
        setting.add_argument(
            f"--{field.replace('_', '-')}",
            type=_dollars if is_money(name) else _whole,
            default=argparse.SUPPRESS,
            metavar="USD" if is_money(name) else "N",
            help=f"{'US dollars ' if is_money(name) else ''}{UNITS[name]}; {NONE} removes the limit",
        )
    setting.set_defaults(run=administrative(_set, CHANGING))

    unsetting = actions.add_parser(
        "unset",
        help="remove overrides",
        description="Remove overrides, so that the limits of the settings apply again.",
        examples=("cicada limits unset --user ada@example.com", "cicada limits unset --deployment --usd-day"),
    )
    _add_account(unsetting)
    for field, name in limit_options().items():
        unsetting.add_argument(
            f"--{field.replace('_', '-')}",
            dest="fields",
            action="append_const",
            const=field,
            help=f"remove this override only: {'US dollars ' if is_money(name) else ''}{UNITS[name]}",
        )
    unsetting.set_defaults(run=administrative(_unset, CHANGING))

    stopping = actions.add_parser(
        "stop",
        help="stop all questions",
        description="Refuse every question from now on. Answers in progress are completed.",
        examples=("cicada limits stop",),
    )
    stopping.set_defaults(run=administrative(_stop, CHANGING))
    starting = actions.add_parser(
        "start",
        help="allow questions again",
        description="Allow questions again after `cicada limits stop`.",
        examples=("cicada limits start",),
    )
    starting.set_defaults(run=administrative(_start, CHANGING))

    for name, parser in actions.choices.items():
        add_json(parser)
        add_deployment(parser, bucket=name != "show")


def _add_account(parser: argparse.ArgumentParser) -> None:
    account = parser.add_mutually_exclusive_group()
    add_user(account)
    account.add_argument("--group", metavar="GROUP", help="a group as a whole")
    account.add_argument("--deployment", action="store_true", help="all users together")
    add_tenant(parser)


def _whole(text: str) -> int | None:
    if text == NONE:
        return None
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"must be a whole number or {NONE}")
    return int(text)


def _dollars(text: str) -> float | None:
    if text == NONE:
        return None
    try:
        usd = float(text)
    except ValueError:
        usd = -1
    if not 0 <= usd < float("inf"):
        raise argparse.ArgumentTypeError(f"must be an amount in US dollars, such as 2.50, or {NONE}")
    return usd


# --- commands ---


def _show(args: argparse.Namespace, deployment: Deployment) -> Exit:
    settings, overrides = SettingsOfUse.of(deployment), records_of(deployment).overrides()
    if args.json:
        say_json(_plain(settings, overrides))
        return Exit.DONE
    if settings is None:
        complain("the limits of the settings are unknown: the stacks were not read, or are of an earlier release")
    if rows := [*_rows(settings, overrides)]:
        show_rows(COLUMNS, rows, console(), numbers=("maximum",))
    elif settings is not None:
        note("There are no limits.")
    if overrides.stopped:
        complain("questions are stopped: `cicada limits start` allows them again")
    return Exit.DONE


def _set(args: argparse.Namespace, deployment: Deployment) -> Exit:
    from cicada.usage.limits import Limits

    names = limit_options()
    given = {field: vars(args)[field] for field in names if field in vars(args)}
    if not given:
        raise UsageError("missing a limit, such as --usd-day 2")
    settings = SettingsOfUse.of(deployment)
    for field, most in given.items():
        _check_holds_a_question(names[field], most, settings)
    account = _account(args, deployment, settings)
    changes = Limits(**given)
    stored = changes.model_dump(mode="json", by_alias=True, exclude_unset=True)
    with recorded(deployment, "limits_set", _subject(account), **stored) as change:
        before = records_of(deployment).set_limits(account, changes)
        _wait_until_it_holds()
        change.note(before=_written(before))
    return _done(args, account, f"{_told(args)}: {_listed(changes)}. It applies to the next question.", before, stored)


def _unset(args: argparse.Namespace, deployment: Deployment) -> Exit:
    account = _account(args, deployment, SettingsOfUse.of(deployment))
    fields = args.fields or list(limit_options())
    with recorded(deployment, "limits_unset", _subject(account), limits=[limit_options()[one] for one in fields]) as it:
        before = records_of(deployment).unset_limits(account, fields)
        _wait_until_it_holds()
        it.note(before=_written(before))
    return _done(args, account, f"{_told(args)}: the limits of the settings apply again.", before, {})


def _stop(args: argparse.Namespace, deployment: Deployment) -> Exit:
    return _switch(args, deployment, stopped=True)


def _start(args: argparse.Namespace, deployment: Deployment) -> Exit:
    return _switch(args, deployment, stopped=False)


def _switch(args: argparse.Namespace, deployment: Deployment, *, stopped: bool) -> Exit:
    with recorded(deployment, "spending_stopped" if stopped else "spending_started", "deployment") as change:
        before = records_of(deployment).stop(stopped)
        _wait_until_it_holds()
        change.note(stoppedBefore=before)
    if args.json:
        say_json({"stopped": stopped, "stoppedBefore": before})
    elif stopped:
        say("Questions are stopped. Answers in progress are completed. `cicada limits start` allows questions again.")
    else:
        say("Questions are allowed again.")
    return Exit.DONE


def _wait_until_it_holds() -> None:
    """Wait until every process has read the change."""
    from cicada.usage.accounts import HOLD_S

    sleep(HOLD_S)


def _account(args: argparse.Namespace, deployment: Deployment, settings: SettingsOfUse | None) -> Account:
    from cicada.usage.accounts import Account, user

    if args.user is not None:
        return user(user_named(args, deployment).owner)
    if args.deployment:
        return Account("deployment")
    if args.group is None:
        raise UsageError("missing an account: --user, --group or --deployment")
    if settings is not None and args.group not in settings.limits.groups:
        known = ", ".join(settings.limits.groups) or "no group"
        raise UsageError(
            f"the usage of group {args.group} is not counted: the setting usageLimits.groups has {known}."
            + did_you_mean(args.group, settings.limits.groups)
        )
    return Account("group", args.group)


def _check_holds_a_question(name: str, most: float | None, settings: SettingsOfUse | None) -> None:
    if settings is None or not most or name.startswith("requests"):
        return
    least = settings.request["usd" if is_money(name) else "tokens"]
    if most < least:
        raise UsageError(
            f"{name} must be 0, {NONE} or at least {quantity(name, least)}, which a question reserves before it is "
            "answered"
        )


# --- output ---


def _subject(account: Account) -> str:
    return f"{account.kind}/{account.name}" if account.name else account.kind


def _told(args: argparse.Namespace) -> str:
    if args.user is not None:
        return str(args.user)
    return "all users" if args.group is None else f"group {args.group}"


def _written(limits: Limits) -> Mapping[str, Any]:
    return limits.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _listed(limits: Limits) -> str:
    return ", ".join(f"{name} {most}" for name, most in _amounts(_written(limits)))


def _amounts(limits: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, most in limits.items():
        yield name, NONE if most is None else quantity(name, most)


def _done(args: argparse.Namespace, account: Account, told: str, before: Limits, changed: Mapping[str, Any]) -> Exit:
    if args.json:
        say_json({"account": account.kind, "name": account.name, "before": _written(before), "set": changed})
    else:
        say(told)
    return Exit.DONE


def _rows(settings: SettingsOfUse | None, overrides: Overrides) -> Iterator[tuple[str, ...]]:
    """The limits of the settings, then the overrides."""
    if settings is not None:
        limits = settings.limits
        for account, stated in (
            ("each user", limits.user),
            *((f"each member of {group}", each) for group, each in limits.members.items()),
            *((f"group {group}", pool) for group, pool in limits.groups.items()),
            ("all users", limits.deployment),
        ):
            for name, most in _amounts(stated.model_dump(mode="json", by_alias=True, exclude_none=True)):
                yield account, name, most, "settings"
    for account_of, changed in sorted(overrides.limits.items(), key=lambda one: _subject(one[0])):
        told = {"user": f"user {account_of.name}", "group": f"group {account_of.name}"}
        for name, most in _amounts(_written(changed)):
            yield told.get(account_of.kind, "all users"), name, most, "override"


def _plain(settings: SettingsOfUse | None, overrides: Overrides) -> dict[str, Any]:
    stated = None if settings is None else settings.limits.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {
        "stopped": overrides.stopped,
        "request": None if settings is None else settings.request,
        "settings": stated,
        "overrides": [
            {"account": account.kind, "name": account.name, "limits": _written(limits)}
            for account, limits in overrides.limits.items()
        ],
    }
