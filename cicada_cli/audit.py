"""``cicada audit``: list administrative changes, by whom, and their outcome."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cicada_cli.context import deployment_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.grammar import Commands
from cicada_cli.output import complain, console, show_list
from cicada_cli.shared_options import add_aws, add_bucket, add_json_lines, add_since

if TYPE_CHECKING:
    from cicada.audit.listing import Recorded

NEEDS = ("bucket",)
"""Values of the deployment that the command needs."""
DEFAULT_SINCE = "30d"
COLUMNS = ("when", "action", "outcome", "subject", "actor", "details")


def add_audit(commands: Commands) -> None:
    """Add the command's parser."""
    from cicada.audit.records import ACTIONS

    parser = commands.add_parser(
        "audit",
        help="list administrative changes",
        description="List the audit records of administrative changes, newest first.",
        examples=("cicada audit --since 7d", "cicada audit --since 90d --action user_removed --json"),
    )
    add_since(parser, DEFAULT_SINCE)
    parser.add_argument(
        "--action",
        action="append",
        choices=ACTIONS,
        default=[],
        metavar="ACTION",
        help=f"list this action only; can be repeated: {', '.join(ACTIONS)}",
    )
    add_json_lines(parser)
    parser.set_defaults(run=_audit)
    group = parser.add_argument_group("deployment")
    add_bucket(group, "the audit records")
    add_aws(group)


def _audit(args: argparse.Namespace) -> Exit:
    deployment = deployment_of(args, NEEDS)
    return audit(deployment, since_s=args.since, actions=args.action, as_json=args.json, out=console())


def audit(
    deployment: Deployment,
    *,
    since_s: int,
    actions: Sequence[str],
    as_json: bool,
    out: Console,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Exit:
    """List the records."""
    from cicada.audit.listing import UNREADABLE, list_records
    from cicada.errors import IndexUnavailable
    from cicada_cli.index import store_of

    wanted = {*actions, UNREADABLE} if actions else None  # an unreadable record could have any action
    moment = now()
    found: list[Recorded] = []
    try:
        for one in list_records(store_of(deployment), since=moment - timedelta(seconds=since_s), now=moment):
            if wanted is None or one.action in wanted:
                found.append(one)
    except IndexUnavailable as error:
        complain(f"cannot read the audit records: {error}")
        return Exit.FAILED
    empty = "No changes in this period."
    show_list(COLUMNS, found, row=_row, data=_plain, as_json=as_json, out=out, empty=empty)
    return Exit.DONE


def _plain(one: Recorded) -> dict[str, Any]:
    return {
        "id": one.id,
        "at": _instant(one.at),
        "action": one.action,
        "actor": one.actor,
        "subject": one.subject,
        "outcome": one.outcome,
        "fault": one.fault,
        "endedAt": None if one.ended_at is None else _instant(one.ended_at),
        "details": one.details,
    }


def _row(one: Recorded) -> tuple[str, ...]:
    outcome = one.outcome if one.fault is None else f"{one.outcome}: {one.fault}"
    return (_instant(one.at), one.action, outcome, one.subject or "", one.actor, _details(one.details))


def _details(details: Mapping[str, Any]) -> str:
    return " ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in details.items()
    )


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
