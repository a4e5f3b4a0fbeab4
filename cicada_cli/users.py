"""``cicada users``: manage the users of a deployment with a Cognito user pool."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from cicada_cli.administration import (
    CHANGING,
    add_deployment,
    administrative,
    recorded,
    subject_of,
    table_client,
)
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.near_names import did_you_mean
from cicada_cli.output import console, say, say_json, show_list
from cicada_cli.shared_options import add_json, add_json_lines
from cicada_cli.user_pool import PoolUser, UserExists, UserPool, temporary_password

if TYPE_CHECKING:
    from cicada.revocation import Revocations

DEFAULT_GROUP = "users"
"""The group of a new user if none is named and the pool has this one."""
USERS = ("e-mail", "state", "groups", "subject")
GROUPS = ("group", "description")


def add_users(commands: Commands) -> None:
    """Add the command's parsers."""
    users = commands.add_parser(
        "users",
        help="add, list and remove users",
        description="Manage the users of a deployment with a Cognito user pool.",
        examples=("cicada users list", "cicada users add ada@example.com --group users --group admins"),
    )
    actions = users.add_subparsers(dest="action", required=True, metavar="COMMAND")

    adding = actions.add_parser(
        "add",
        help="add a user",
        description="Add a user. Cognito mails the user a first password.",
        examples=(
            "cicada users add ada@example.com --group users --group admins",
            "cicada users add ada@example.com --password-once    # prints the password instead",
        ),
    )
    adding.add_argument("email", metavar="EMAIL", help="e-mail address of the user")
    adding.add_argument(
        "--group",
        action="append",
        metavar="GROUP",
        help=f"group of the user; can be repeated (default: {DEFAULT_GROUP})",
    )
    adding.add_argument(
        "--password-once", action="store_true", help="print the first password once, instead of mailing it"
    )
    adding.set_defaults(run=administrative(_add, CHANGING))

    listing = actions.add_parser(
        "list",
        help="list users",
        description="List the users with their groups.",
        examples=("cicada users list", "cicada users list --json | jq -r .email"),
    )
    listing.set_defaults(run=administrative(_list, CHANGING))

    removing = actions.add_parser(
        "remove",
        help="remove a user",
        description="Delete a user. Access ends immediately.",
        examples=("cicada users remove ada@example.com",),
    )
    removing.add_argument("email", metavar="EMAIL", help="e-mail address of the user")
    removing.set_defaults(run=administrative(_remove, CHANGING))

    grouping = actions.add_parser(
        "groups",
        help="show or change groups",
        description="List the groups of the pool, or show and change the groups of a user.",
        examples=("cicada users groups", "cicada users groups ada@example.com --add admins"),
    )
    grouping.add_argument("email", metavar="EMAIL", nargs="?", help="e-mail address of the user")
    grouping.add_argument("--add", action="append", default=[], metavar="GROUP", help="add the user to this group")
    grouping.add_argument(
        "--remove",
        action="append",
        default=[],
        metavar="GROUP",
        help="remove the user from this group",
    )
    grouping.set_defaults(run=administrative(_groups, CHANGING))

    revoking = actions.add_parser(
        "revoke",
        help="end a user's sign-ins",
        description="Sign a user out everywhere. The user can sign in again.",
        examples=("cicada users revoke ada@example.com",),
    )
    revoking.add_argument("user", metavar="USER", help="e-mail address of the user, or subject of the tokens")
    revoking.set_defaults(run=administrative(_revoke, CHANGING))

    for name, parser in actions.choices.items():
        (add_json_lines if name in ("list", "groups") else add_json)(parser)
        add_deployment(parser, bucket=True)


def revocations_of(deployment: Deployment) -> Revocations:
    """The deployment's records of revoked tokens."""
    from cicada.revocation import DynamoDbRevocations

    return DynamoDbRevocations(table_client(deployment), deployment.requests_table)


def refuse_tokens(deployment: Deployment, subject: str, user: PoolUser | None) -> int:
    """Revoke a subject's tokens issued up to now, and end its sessions in the pool. Returns the time in epoch seconds.

    The time is the pool's, whose clock stamps its tokens. The clock of another issuer may be ahead.
    """
    from cicada.defaults import CLOCK_LEEWAY_S

    up_to = int(time.time()) + CLOCK_LEEWAY_S if user is None else _pool(deployment).sign_out(user)
    revocations_of(deployment).revoke(subject, up_to=up_to)
    return up_to


def _pool(deployment: Deployment) -> UserPool:
    if deployment.user_pool_id is None:
        why = "it has no sign-in" if not deployment.wants_sign_in else f"its users sign in at {deployment.issuer}"
        raise UsageError(f"the deployment has no user pool: {why}")
    return UserPool.of(deployment.aws, deployment.user_pool_id)


# --- commands ---


def _add(args: argparse.Namespace, deployment: Deployment) -> Exit:
    if args.email.count("@") != 1 or any(character.isspace() for character in args.email):
        raise UsageError(f"invalid e-mail address '{args.email}'")
    pool = _pool(deployment)
    groups = _known_groups(pool, args.group)
    password = temporary_password() if args.password_once else None
    added = True
    with recorded(deployment, "user_added", None, groups=groups) as change:
        try:
            pool.create(args.email, password)
        except UserExists:
            added = False
        user = pool.user(args.email)
        change.subject = _recorded_as(user.subject)
        if not added and password is not None:
            password = _renewed(pool, user, password)
        change.note(created=added, passwordRenewed=not added and password is not None)
        for group in groups:
            pool.join(user, group)
    user = pool.user(args.email)
    if args.json:
        say_json({**described(user), "added": added, "temporaryPassword": password})
        return Exit.DONE
    for line in _told(user, deployment, added=added, password=password):
        say(line)
    return Exit.DONE


def _renewed(pool: UserPool, user: PoolUser, password: str) -> str | None:
    """Replace the first password of a user who has never signed in. Other users keep their own password."""
    if not user.invited:
        return None
    pool.set_temporary_password(user, password)
    return password


def _told(user: PoolUser, deployment: Deployment, *, added: bool, password: str | None) -> list[str]:
    groups = f" (groups: {', '.join(user.groups)})" if user.groups else ""
    lines = [f"{'Added' if added else 'Already exists:'} {user.email}{groups}."]
    if password is not None:
        lines += [f"First password, shown once: {password}", "The user must change it within seven days."]
    elif added:
        lines.append("Cognito mails the first password to the user.")
    if not user.enabled:
        return [
            *lines,
            f"The user is disabled. If a removal was interrupted, `cicada users remove {user.email}` completes it.",
        ]
    page = f" --page {deployment.page}" if deployment.page else ""
    return [*lines, f"Sign in: cicada login{page}"]


def _list(args: argparse.Namespace, deployment: Deployment) -> Exit:
    show_list(
        USERS,
        _pool(deployment).users(),
        row=lambda user: (user.email, _state(user), ", ".join(user.groups), user.subject),
        data=described,
        as_json=args.json,
        out=console(),
        empty="The pool has no users. `cicada users add EMAIL` adds one.",
    )
    return Exit.DONE


def _remove(args: argparse.Namespace, deployment: Deployment) -> Exit:
    """Delete a user. The order of the steps allows an interrupted removal to be completed."""
    pool = _pool(deployment)
    user = pool.user(args.email)
    with recorded(deployment, "user_removed", _recorded_as(user.subject)):
        pool.disable(user)
        revocations_of(deployment).revoke(user.subject, up_to=pool.sign_out(user))
        pool.delete(user)
    return _done(args, f"Removed {user.email}. Their tokens are revoked.", described(user) | {"removed": True})


def _groups(args: argparse.Namespace, deployment: Deployment) -> Exit:
    pool = _pool(deployment)
    if args.email is None:
        if args.add or args.remove:
            raise UsageError("missing e-mail address: cicada users groups EMAIL --add GROUP")
        return _list_groups(args, pool)
    _known_groups(pool, [*args.add, *args.remove])
    user = pool.user(args.email)
    if args.add or args.remove:
        details = {"added": args.add, "removed": args.remove, "before": list(user.groups)}
        with recorded(deployment, "user_groups_changed", _recorded_as(user.subject), **details):
            for group in args.add:
                pool.join(user, group)
            for group in args.remove:
                pool.leave(user, group)
        user = pool.user(args.email)
    when = " The change takes effect when the user's token is refreshed." if args.add or args.remove else ""
    told = f"{user.email}: {', '.join(user.groups) or 'no groups'}.{when}"
    return _done(args, told, described(user))


def _list_groups(args: argparse.Namespace, pool: UserPool) -> Exit:
    show_list(
        GROUPS,
        sorted(pool.groups().items()),
        row=lambda group: group,
        data=lambda group: dict(zip(GROUPS, group, strict=True)),
        as_json=args.json,
        out=console(),
        empty="The pool has no groups.",
    )
    return Exit.DONE


def _revoke(args: argparse.Namespace, deployment: Deployment) -> Exit:
    """End a user's sign-ins. With an issuer of your own, only the subject's tokens are revoked."""
    if not deployment.wants_sign_in:
        raise UsageError("this deployment has no sign-in")
    subject, user = subject_of(deployment, args.user)
    with recorded(deployment, "user_revoked", _recorded_as(subject)) as change:
        up_to = refuse_tokens(deployment, subject, user)
        change.note(refusedUpTo=up_to)
    told = f"Revoked the tokens of {args.user}."
    if deployment.user_pool_id is not None:  # Cognito does not end the cookie of its own pages
        told += " A browser can sign in again without the password for an hour after the last sign-in."
    return _done(args, told, {"subject": subject, "refusedUpTo": up_to})


def _recorded_as(subject: str) -> str:
    """How audit records name a user."""
    return f"user/{subject}"


# --- output ---


def described(user: PoolUser) -> dict[str, Any]:
    """A user as JSON data."""
    return {
        "email": user.email,
        "subject": user.subject,
        "status": user.status,
        "enabled": user.enabled,
        "groups": list(user.groups),
        "createdAt": user.created_at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def _state(user: PoolUser) -> str:
    if not user.enabled:
        return "disabled"
    return "invited" if user.invited else user.status.lower()


def _done(args: argparse.Namespace, told: str, data: dict[str, Any]) -> Exit:
    if args.json:
        say_json(data)
    else:
        say(told)
    return Exit.DONE


def _known_groups(pool: UserPool, asked: Sequence[str] | None) -> list[str]:
    """The named groups, or the default group if none is named and the pool has it.

    Raises:
        UsageError: the pool lacks a named group.
    """
    known = pool.groups()
    if asked is None:
        return [DEFAULT_GROUP] if DEFAULT_GROUP in known else []
    if missing := [group for group in asked if group not in known]:
        near = did_you_mean(missing[0], known) or f" The pool has {', '.join(sorted(known)) or 'no groups'}."
        raise UsageError(f"unknown group {', '.join(missing)}.{near}")
    return list(asked)
