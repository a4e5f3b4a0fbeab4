"""``cicada trace``: show a request's timeline from the functions' logs."""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cicada.request_trace import MOST_LINES, insights_query
from cicada_cli import argument_types
from cicada_cli.context import deployment_of
from cicada_cli.deployment import STACKS, Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.grammar import Commands
from cicada_cli.output import complain, console, say, say_json
from cicada_cli.request_trace import LogLine, RequestTrace, TracedSpend, askers
from cicada_cli.shared_options import add_aws, add_json_lines, add_since
from cicada_cli.text import counted, one_line
from cicada_cli.trace_words import attempt_words, saved_query, sentence, spent_words, sums, verdict

if TYPE_CHECKING:
    from cicada_cli.log_groups import Insights

DEFAULT_SINCE = "24h"
"""How far back to look: CloudWatch charges for the data that a query reads."""
_MOST_ENDS = 100
"""Limit of the query for terminal steps. Each request has one; requests of several users can have the same id."""


def add_trace(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "trace",
        help="show a request's timeline",
        description="Show a request's timeline from the functions' logs: route, attempts, faults, cost and outcome.",
        examples=("cicada trace 0d7c4c2e-5b7e-4d4e-9a53-5c2a5c7f1f0e --since 7d",),
    )
    parser.add_argument("request_id", metavar="REQUEST_ID", help="requestId of the client")
    add_since(parser, DEFAULT_SINCE)
    parser.add_argument(
        "--asker", type=argument_types.digest, metavar="DIGEST", help="this user's request only, if several have the id"
    )
    parser.add_argument("--every-line", action="store_true", help="show log lines that are not steps too")
    add_json_lines(parser)
    add_aws(parser.add_argument_group("deployment"))
    parser.set_defaults(run=_trace)


def _trace(args: argparse.Namespace) -> Exit:
    request_id = canonical(args.request_id)
    return trace(
        deployment_of(args, STACKS),
        request_id,
        asker=args.asker,
        since_s=args.since,
        every_line=args.every_line,
        as_json=args.json,
        out=console(),
    )


def trace(
    deployment: Deployment,
    request_id: str,
    *,
    asker: str | None,
    since_s: int,
    every_line: bool,
    as_json: bool,
    out: Console,
) -> Exit:
    """Show the timeline of a request, or of each user's request if several have the same id.

    Args:
        deployment: where the logs are.
        request_id: the id in the form of :func:`canonical`.
        asker: the digest of the only user to show; None for all.
        since_s: how far back to look, in seconds.
        every_line: show lines that are not steps too.
        as_json: print JSON.
        out: where to print.
    """
    from cicada_cli.log_groups import CLIENT_CONFIG, Insights, LogsUnavailable, log_groups, stack_prefix

    now_s = time.time()
    try:
        groups = log_groups(deployment)
        if not groups:
            named = f"stacks {deployment.stack_prefix}-…" if deployment.stack_prefix else "the local cloud"
            complain(f"no log groups in {named}. Is it deployed in this account and Region?")
            return Exit.FAILED
        insights = Insights(deployment.aws.client("logs", CLIENT_CONFIG))
        lines, cut = _read(insights, groups, request_id, start_s=now_s - since_s, end_s=now_s)
    except LogsUnavailable as error:
        complain(f"cannot read the logs: {error}")
        return Exit.FAILED
    if not lines:
        complain(
            f"no log line of the last {_span(since_s)} names request {request_id}. --since looks further back; the "
            "last minute may not be available yet."
        )
        return Exit.FAILED
    told_of = askers(lines)
    if asker is not None and asker not in told_of:
        there = f"its asker is {_listed(told_of)}" if told_of else "its lines name no asker"
        complain(f"no log line of request {request_id} has the asker {asker}: {there}")
        return Exit.FAILED
    chosen: Sequence[str | None] = [asker] if asker else told_of or [None]
    if len(chosen) > 1:
        complain(f"requests of {len(told_of)} users have this id: {_listed(told_of)}. --asker selects one")
    for whose in chosen:
        timeline = RequestTrace.of(request_id, lines, asker=whose, cut=cut)
        query = f"{deployment.stack_prefix or stack_prefix(groups)}/{saved_query(timeline)}"
        if as_json:
            say_json({**plain(timeline), "savedQuery": query})
        else:
            show(timeline, out, every_line=every_line)
            _say(out, f"More in CloudWatch Logs Insights: the saved query {query}")
    return Exit.DONE


def _read(
    insights: Insights, groups: Sequence[str], request_id: str, *, start_s: float, end_s: float
) -> tuple[list[LogLine], bool]:
    """A request's lines, and whether some are missing. The terminal steps are always included.

    Raises:
        LogsUnavailable: the logs could not be read.
    """
    from cicada_cli.log_groups import COLUMNS

    lines = insights.lines(groups, insights_query(request_id, COLUMNS), start_s=start_s, end_s=end_s)
    if len(lines) < MOST_LINES:
        return lines, False
    ends = insights.lines(groups, ends_query(request_id, COLUMNS), start_s=start_s, end_s=end_s)
    return [*lines, *(line for line in ends if line not in lines)], True


def ends_query(request_id: str, fields: Iterable[str]) -> str:
    """The query for the latest of a request's terminal steps; see :func:`cicada.request_trace.insights_query`."""
    return "\n".join(
        [
            f"fields @timestamp, {', '.join(fields)}",
            f'| filter request_id = "{request_id}"',
            '| filter step = "complete" or step = "ended"',
            "| sort @timestamp desc",
            f"| limit {_MOST_ENDS}",
        ]
    )


def _listed(named: Sequence[str]) -> str:
    return ", ".join(one_line(asker) for asker in named)


def canonical(request_id: str) -> str:
    """A request's id in the form of the logs. Raises UsageError if it is not a UUID."""
    try:
        return str(uuid.UUID(request_id))
    except ValueError:
        raise UsageError(f"invalid request id {request_id!r}: must be a UUID") from None


def plain(timeline: RequestTrace) -> dict[str, Any]:
    """A timeline as JSON data."""
    end = timeline.end
    return {
        "requestId": timeline.request_id,
        "asker": timeline.asker,
        "outcome": end.step if end else "open",
        "code": end.text("code") if end else None,
        "answeredBy": end.text("answered_by") if end else None,
        "cut": timeline.cut,
        "beganAt": _instant(timeline.began_ms),
        "tookMs": timeline.took_ms,
        "spent": _plain_spent(timeline.spent),
        "attempts": [
            {
                "attempt": one.number,
                "strategy": one.strategy,
                "worker": one.worker,
                "outcome": one.outcome,
                "code": one.code,
                "afterMs": one.began_ms - timeline.began_ms,
                "tookMs": one.took_ms,
                "spent": _plain_spent(one.spent),
            }
            for one in timeline.attempts
        ],
        "lines": [
            {
                **line.fields,
                "at": _instant(line.at_ms),
                "afterMs": line.at_ms - timeline.began_ms,
                "logGroup": line.group,
            }
            for line in timeline.lines
        ],
    }


def _plain_spent(spent: TracedSpend) -> dict[str, float]:
    return {
        "modelCalls": spent.calls,
        "inputTokens": spent.input_tokens,
        "outputTokens": spent.output_tokens,
        "costUsd": spent.cost_usd,
        "unpricedCalls": spent.unpriced,
    }


def show(timeline: RequestTrace, out: Console, *, every_line: bool) -> None:
    """Show a timeline for people."""
    rows = [_row(timeline, line) for line in (timeline.lines if every_line else timeline.in_brief())]
    whose = f" (asker {one_line(timeline.asker)})" if timeline.asker else ""
    if out.is_terminal:
        heading = f"request {timeline.request_id}{whose}, {_instant(timeline.began_ms)}"
        out.print(Text(heading, style="bold"), Text(), sep="\n")
        out.print(_table(rows), Text(), sep="\n")
    else:
        for after, attempt, step, words, _ in rows:
            say("\t".join((after, attempt, step, words)))
    for one in timeline.attempts:
        told = f"attempt {one.number}: {attempt_words(one)} · {spent_words(one.spent)}"
        _say(out, told, "dim" if out.is_terminal else "")
    _say(out, verdict(timeline), "bold")
    _say(out, sums(timeline))


def _say(out: Console, words: str, style: str = "") -> None:
    out.print(Text(one_line(words), style=style), soft_wrap=not out.is_terminal)


_Row = tuple[str, str, str, str, str]
"""Time, attempt, step, description and style."""


def _row(timeline: RequestTrace, line: LogLine) -> _Row:
    attempt = timeline.attempt_of(line)
    number = str(attempt.number) if attempt else str(line.count("attempt") or "")
    after = f"+{(line.at_ms - timeline.began_ms) / 1000:.3f} s"
    step = one_line(line.step or line.text("level") or "").lower()
    style = "yellow" if line.trouble else "bold" if line is timeline.end else ""
    return after, number, step.replace("_", " "), one_line(sentence(line)), style


def _table(rows: list[_Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("after", justify="right", style="cyan", no_wrap=True)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("step", no_wrap=True)
    table.add_column("what happened", ratio=1, overflow="fold")
    for after, number, step, words, style in rows:
        table.add_row(after, number, step, Text(words), style=style)
    return table


def _instant(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _span(seconds: int) -> str:
    size_s, name = next(unit for unit in reversed(argument_types.DURATIONS.values()) if seconds % unit[0] == 0)
    return counted(seconds // size_s, name)
