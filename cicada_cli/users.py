"""``cicada users``: who may sign in to a deployment with a user pool, and whose access ends."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from cicada_cli.administration import CHANGING, Runner, add_deployment, recorded, subject_of, table_client
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.output import say, say_json
from cicada_cli.user_pool import PoolUser, UserExists, UserPool, temporary_password

if TYPE_CHECKING:
    from cicada.revocation import Revocations

DEFAULT_GROUP = "users"
"""Where a new user goes if no group is named and the pool has this one."""


def add_users(commands: argparse._SubParsersAction[argparse.ArgumentParser], run: Runner) -> None:
    """Add the commands to the grammar."""
    users = commands.add_parser("users", help="manage users", description="Manage the users of a deployment.")
    actions = users.add_subparsers(dest="action", required=True, metavar="ACTION")

    adding = actions.add_parser("add", help="add a user", description="Add a user, who is mailed a first password.")
    adding.add_argument("email", metavar="EMAIL", help="the user's e-mail address")
    adding.add_argument(
        "--group",
        action="append",
        metavar="GROUP",
        help=f"a group; can be repeated (default: {DEFAULT_GROUP})",
    )
    adding.add_argument(
        "--password-once", action="store_true", help="print the first password in place of mailing it; it is shown once"
    )
    adding.set_defaults(run=run(_add, CHANGING))

    listing = actions.add_parser("list", help="list users", description="List the users with their groups.")
    listing.set_defaults(run=run(_list, CHANGING))

    removing = actions.add_parser("remove", help="remove a user", description="Delete a user; access ends at once.")
    removing.add_argument("email", metavar="EMAIL", help="the user's e-mail address")
    removing.set_defaults(run=run(_remove, CHANGING))

    grouping = actions.add_parser(
        "groups", help="show or change groups", description="List the groups, or show and change those of a user."
    )
    grouping.add_argument("email", metavar="EMAIL", nargs="?", help="the user's e-mail address")
    grouping.add_argument("--add", action="append", default=[], metavar="GROUP", help="add to this group")
    grouping.add_argument("--remove", action="append", default=[], metavar="GROUP", help="remove from this group")
    grouping.set_defaults(run=run(_groups, CHANGING))

    revoking = actions.add_parser(
        "revoke", help="end a user's sign-ins", description="Sign a user out everywhere; the user may sign in again."
    )
    revoking.add_argument("user", metavar="USER", help="the user's e-mail address, or the subject of the tokens")
    revoking.set_defaults(run=run(_revoke, CHANGING))

    for parser in actions.choices.values():
        parser.add_argument("--json", action="store_true", help="a JSON object, or a list of them")
        add_deployment(parser, bucket=True)


def revocations_of(deployment: Deployment) -> Revocations:
    """Where a deployment notes whose tokens it refuses."""
    from cicada.revocation import DynamoDbRevocations

    return DynamoDbRevocations(table_client(deployment), deployment.requests_table)


def refuse_tokens(deployment: Deployment, subject: str, user: PoolUser | None) -> int:
    """Refuse a subject's tokens that were issued up to now, and end those of the pool. Returns when, in epoch seconds.

    The pool answers by the clock that stamps its tokens. Another issuer's may be ahead.
    """
    from cicada.defaults import CLOCK_LEEWAY_S

    up_to = int(time.time()) + CLOCK_LEEWAY_S if user is None else _pool(deployment).sign_out(user)
    revocations_of(deployment).revoke(subject, up_to=up_to)
    return up_to


def _pool(deployment: Deployment) -> UserPool:
    if deployment.user_pool_id is None:
        who = "nobody signs in" if not deployment.wants_sign_in else f"its users are those of {deployment.issuer}"
        raise UsageError(f"the deployment has no user pool: {who}")
    return UserPool.of(deployment.aws, deployment.user_pool_id)


# --- commands ---


def _add(args: argparse.Namespace, deployment: Deployment) -> Exit:
    if args.email.count("@") != 1 or any(character.isspace() for character in args.email):
        raise UsageError(f"{args.email} is not an e-mail address")
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
    """Give a user who has never signed in another first password; one who has keeps the own."""
    if not user.invited:
        return None
    pool.set_temporary_password(user, password)
    return password


def _told(user: PoolUser, deployment: Deployment, *, added: bool, password: str | None) -> list[str]:
    groups = f", in {', '.join(user.groups)}" if user.groups else ""
    lines = [f"{'Added' if added else 'Already there:'} {user.email}{groups}."]
    if password is not None:
        lines += [f"First password, shown once: {password}", "It is changed at the first sign-in, within seven days."]
    elif added:
        lines.append("A first password is on its way by e-mail.")
    if not user.enabled:
        return [
            *lines,
            f"The user is disabled, as by an interrupted removal: `cicada users remove {user.email}` ends it.",
        ]
    page = f" --page {deployment.page}" if deployment.page else ""
    return [*lines, f"Sign in: cicada login{page}"]


def _list(args: argparse.Namespace, deployment: Deployment) -> Exit:
    users = _pool(deployment).users()
    if args.json:
        say_json([described(user) for user in users])
        return Exit.DONE
    for user in users:
        say("\t".join((user.email, _state(user), ", ".join(user.groups), user.subject)))
    return Exit.DONE


def _remove(args: argparse.Namespace, deployment: Deployment) -> Exit:
    """Delete a user. In this order, what was interrupted can be completed: the subject is known until the end."""
    pool = _pool(deployment)
    user = pool.user(args.email)
    with recorded(deployment, "user_removed", _recorded_as(user.subject)):
        pool.disable(user)
        revocations_of(deployment).revoke(user.subject, up_to=pool.sign_out(user))
        pool.delete(user)
    return _done(args, f"Removed {user.email}; tokens up to now are refused.", described(user) | {"removed": True})


def _groups(args: argparse.Namespace, deployment: Deployment) -> Exit:
    pool = _pool(deployment)
    if args.email is None:
        if args.add or args.remove:
            raise UsageError("an e-mail address is required: cicada users groups EMAIL --add GROUP")
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
    when = " A token has them from its next refresh on." if args.add or args.remove else ""
    told = f"{user.email}: {', '.join(user.groups) or 'in no group'}.{when}"
    return _done(args, told, described(user))


def _list_groups(args: argparse.Namespace, pool: UserPool) -> Exit:
    found = sorted(pool.groups().items())
    if args.json:
        say_json([{"group": name, "description": description} for name, description in found])
        return Exit.DONE
    for name, description in found:
        say(f"{name}\t{description}".rstrip())
    return Exit.DONE


def _revoke(args: argparse.Namespace, deployment: Deployment) -> Exit:
    """End a user's sign-ins; of an issuer of the deployer's, the subject's tokens alone."""
    if not deployment.wants_sign_in:
        raise UsageError("nobody signs in to this deployment")
    subject, user = subject_of(deployment, args.user)
    with recorded(deployment, "user_revoked", _recorded_as(subject)) as change:
        up_to = refuse_tokens(deployment, subject, user)
        change.note(refusedUpTo=up_to)
    told = f"Tokens of {args.user} up to now are refused."
    if deployment.user_pool_id is not None:  # Cognito does not end the cookie of its own pages
        told += " A browser may sign in again without the password for an hour after its last sign-in."
    return _done(args, told, {"subject": subject, "refusedUpTo": up_to})


def _recorded_as(subject: str) -> str:
    """How audit records name a user."""
    return f"user/{subject}"


# --- what is shown ---


def described(user: PoolUser) -> dict[str, Any]:
    """A user as plain data."""
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
    """The groups that were asked for; the usual one, where the pool has it, if none was.

    Raises:
        UsageError: the pool does not have one of them.
    """
    known = pool.groups()
    if asked is None:
        return [DEFAULT_GROUP] if DEFAULT_GROUP in known else []
    if missing := [group for group in asked if group not in known]:
        raise UsageError(f"there is no group {', '.join(missing)}; the pool has {', '.join(sorted(known)) or 'none'}")
    return list(asked)
