"""``cicada feedback``: list, count and export what users say of answers."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

from rich.console import Console

from cicada_cli.administration import table_client
from cicada_cli.context import deployment_of
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit
from cicada_cli.grammar import Commands
from cicada_cli.output import complain, console, say_json, show_list
from cicada_cli.shared_options import add_aws, add_json_lines, add_since, add_table

if TYPE_CHECKING:
    from cicada.feedback.record import FeedbackRecord

NEEDS = ("requests_table",)
"""Values of the deployment that the command needs."""
DEFAULT_SINCE = "30d"
COLUMNS = ("asked", "rating", "reason", "strategy", "collections", "question", "comment", "request")
COUNTS = ("by", "value", "up", "down")
_NOTHING = "-"
_BY: dict[str, Callable[[FeedbackRecord], Sequence[str]]] = {
    "rating": lambda one: (one.rating,),
    "reason": lambda one: (one.reason or _NOTHING,) if one.rating == "down" else (),
    "collection": lambda one: one.collections or (_NOTHING,),
    "strategy": lambda one: one.strategies[-1:] or (_NOTHING,),
}
"""What ratings are counted by."""
Show = Callable[[Sequence["FeedbackRecord"], argparse.Namespace, Console], None]


def add_feedback(commands: Commands) -> None:
    """Add the command's parsers."""
    from cicada.protocol.actions import FeedbackReason, Rating

    parser = commands.add_parser(
        "feedback",
        help="list and count ratings of answers",
        description="List, count or export the ratings that users gave to answers.",
        examples=("cicada feedback list --rating down", "cicada feedback export --since 90d > feedback.jsonl"),
    )
    actions: Commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, told, example, show in (
        ("list", "list the ratings, that of the newest question first", "list --rating down --since 7d", _listed),
        ("count", "count by rating, reason, collection and strategy", "count --since 90d", _counted),
        ("export", "print all fields as one JSON object per line", "export > feedback.jsonl", _exported),
    ):
        description = f"{told[0].upper()}{told[1:]}."
        one = actions.add_parser(name, help=told, description=description, examples=(f"cicada feedback {example}",))
        one.add_argument("--rating", choices=get_args(Rating), help="ratings of this kind only")
        one.add_argument(
            "--reason",
            action="append",
            choices=get_args(FeedbackReason),
            default=[],
            metavar="REASON",
            help=f"ratings with this reason only; can be repeated: {', '.join(get_args(FeedbackReason))}",
        )
        add_since(one, DEFAULT_SINCE)
        if name != "export":
            add_json_lines(one)
        group = one.add_argument_group("deployment")
        add_table(group)
        add_aws(group)
        one.set_defaults(run=_run(show))


def _run(show: Show) -> Callable[[argparse.Namespace], Exit]:
    def run(args: argparse.Namespace) -> Exit:
        return feedback(deployment_of(args, NEEDS), args, show, console())

    return run


def feedback(deployment: Deployment, args: argparse.Namespace, show: Show, out: Console) -> Exit:
    """Read the ratings of questions asked since a time, and show those that the options choose."""
    from cicada.delivery.ports import StoreFault
    from cicada.feedback.store import DynamoDbFeedback

    now = time.time()
    store = DynamoDbFeedback(table_client(deployment), deployment.requests_table)
    try:
        found = [one for one in store.newest(since_s=now - args.since, now_s=now) if _chosen(one, args)]
    except StoreFault as fault:
        complain(f"cannot read the feedback: {fault}")
        return Exit.FAILED
    show(found, args, out)
    return Exit.DONE


def _chosen(one: FeedbackRecord, args: argparse.Namespace) -> bool:
    return args.rating in (None, one.rating) and (not args.reason or one.reason in args.reason)


def _listed(found: Sequence[FeedbackRecord], args: argparse.Namespace, out: Console) -> None:
    empty = "No feedback in this period."
    show_list(COLUMNS, found, row=_row, data=_plain, as_json=args.json, out=out, empty=empty)


def _counted(found: Sequence[FeedbackRecord], args: argparse.Namespace, out: Console) -> None:
    def row(count: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(count[name]) for name in COUNTS)

    empty = "No feedback in this period."
    counts = _counts(found)
    show_list(COUNTS, counts, row=row, data=dict, as_json=args.json, out=out, numbers=("up", "down"), empty=empty)


def _exported(found: Sequence[FeedbackRecord], _args: argparse.Namespace, _out: Console) -> None:
    for one in found:
        say_json(_plain(one))


def _counts(found: Sequence[FeedbackRecord]) -> Iterator[dict[str, Any]]:
    """For each value, the most often rated down first. A rating can count for several collections."""
    for by, values in _BY.items():
        counted = Counter((value, one.rating) for one in found for value in values(one))
        names = {value for value, _ in counted}
        for value in sorted(names, key=lambda name: (-counted[name, "down"], -counted[name, "up"], name)):
            yield {"by": by, "value": value, "up": counted[value, "up"], "down": counted[value, "down"]}


def _row(one: FeedbackRecord) -> tuple[str, ...]:
    return (
        datetime.fromtimestamp(one.asked_at_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        one.rating,
        one.reason or "",
        one.strategies[-1] if one.strategies else "",
        ", ".join(one.collections),
        one.question,
        one.comment or "",
        one.request_id,
    )


def _plain(one: FeedbackRecord) -> dict[str, Any]:
    return one.model_dump(mode="json", by_alias=True)
