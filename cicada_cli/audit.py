"""``cicada audit``: what administrators changed, by whom, and how it ended."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.listing import show_rows
from cicada_cli.output import complain, say_json
from cicada_cli.shared_options import add_since

if TYPE_CHECKING:
    from cicada.audit.listing import Recorded

NEEDS = ("bucket",)
"""What the command must know of the deployment."""
DEFAULT_SINCE = "30d"
COLUMNS = ("when", "action", "outcome", "subject", "actor", "details")


def add_audit(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], Exit],
    add_aws: Callable[[argparse._ArgumentGroup], None],
) -> None:
    """Add the command to the grammar; ``run`` carries it out."""
    from cicada.audit.records import ACTIONS

    parser = commands.add_parser(
        "audit",
        help="list what administrators changed",
        description="List the audit records of administrators' changes, newest first.",
    )
    add_since(parser, DEFAULT_SINCE)
    parser.add_argument(
        "--action",
        action="append",
        choices=ACTIONS,
        default=[],
        metavar="ACTION",
        help=f"only this action; can be repeated: {', '.join(ACTIONS)}",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per line and record")
    parser.set_defaults(run=run)
    group = parser.add_argument_group("deployment")
    group.add_argument("--bucket", help="the bucket that holds the audit records (CICADA_INDEX_BUCKET)")
    add_aws(group)


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

    wanted = {*actions, UNREADABLE} if actions else None  # an unreadable record may be of any action
    moment = now()
    found: list[Recorded] = []
    try:
        for one in list_records(store_of(deployment), since=moment - timedelta(seconds=since_s), now=moment):
            if wanted is None or one.action in wanted:
                found.append(one)
    except IndexUnavailable as error:
        complain(f"the audit records could not be read: {error}")
        return Exit.FAILED
    if as_json:
        for one in found:
            say_json(_plain(one))
    elif found or not out.is_terminal:
        show_rows(COLUMNS, map(_row, found), out)
    else:
        out.print("Nothing was changed in this time.")
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
