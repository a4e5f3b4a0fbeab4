"""``cicada trace``: the story of a request, from the functions' logs."""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cicada.request_trace import MOST_LINES, insights_query
from cicada_cli import argument_types
from cicada_cli.deployment import Deployment
from cicada_cli.exits import Exit, UsageError
from cicada_cli.output import complain, say, say_json
from cicada_cli.request_trace import LogLine, RequestTrace, TracedSpend, askers
from cicada_cli.shared_options import add_aws, add_since
from cicada_cli.text import counted, one_line
from cicada_cli.trace_words import attempt_words, saved_query, sentence, spent_words, sums, verdict

if TYPE_CHECKING:
    from cicada_cli.log_groups import Insights

DEFAULT_SINCE = "24h"
"""How far back is looked: CloudWatch charges for what a query reads."""
_MOST_ENDS = 100
"""Terminal steps that are asked for by themselves: of a request and of others of the same id, each has one."""


def add_trace(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], run: Callable[[argparse.Namespace], Exit]
) -> None:
    """Add the command to the grammar; ``run`` carries it out."""
    parser = commands.add_parser(
        "trace",
        help="show a request's timeline",
        description="Show a request's timeline from the functions' logs: route, attempts, faults, cost and outcome.",
    )
    parser.add_argument("request_id", metavar="REQUEST_ID", help="the client's requestId")
    add_since(parser, DEFAULT_SINCE)
    parser.add_argument(
        "--asker", type=argument_types.digest, metavar="DIGEST", help="only this user's request, if several have the id"
    )
    parser.add_argument("--every-line", action="store_true", help="also show log lines that are not steps")
    parser.add_argument("--json", action="store_true", help="the timeline as a JSON object")
    add_aws(parser.add_argument_group("deployment"))
    parser.set_defaults(run=run)


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
    """Find a request's lines and tell its story; where several users' requests have the same id, each one's.

    Args:
        deployment: whose logs.
        request_id: the client's id of the question, as :func:`canonical` has it.
        asker: tell the request of this user alone, named by the digest that the lines have.
        since_s: how far back to look, in seconds.
        every_line: show the lines beside the story's steps too.
        as_json: tell it as a JSON object.
        out: where it is shown.
    """
    from cicada_cli.log_groups import CLIENT_CONFIG, Insights, LogsUnavailable, log_groups, stack_prefix

    now_s = time.time()
    try:
        groups = log_groups(deployment)
        if not groups:
            named = f"stacks {deployment.stack_prefix}-…" if deployment.stack_prefix else "the local cloud"
            complain(f"there are no log groups in {named}: is it deployed in this account and region?")
            return Exit.FAILED
        insights = Insights(deployment.aws.client("logs", CLIENT_CONFIG))
        lines, cut = _read(insights, groups, request_id, start_s=now_s - since_s, end_s=now_s)
    except LogsUnavailable as error:
        complain(f"the logs could not be read: {error}")
        return Exit.FAILED
    if not lines:
        complain(
            f"no line of the last {_span(since_s)} names the request {request_id}. --since looks further back; what "
            "was logged within the last minute may not be there yet."
        )
        return Exit.FAILED
    told_of = askers(lines)
    if asker is not None and asker not in told_of:
        there = f"it is of {_listed(told_of)}" if told_of else "no line tells whose it is"
        complain(f"no line of the request {request_id} is of the asker {asker}: {there}")
        return Exit.FAILED
    chosen: Sequence[str | None] = [asker] if asker else told_of or [None]
    if len(chosen) > 1:
        complain(f"{len(told_of)} users' requests have this id, of {_listed(told_of)}: --asker chooses one")
    for whose in chosen:
        story = RequestTrace.of(request_id, lines, asker=whose, cut=cut)
        query = f"{deployment.stack_prefix or stack_prefix(groups)}/{saved_query(story)}"
        if as_json:
            say_json({**plain(story), "savedQuery": query})
        else:
            show(story, out, every_line=every_line)
            _say(out, f"More in CloudWatch Logs Insights: the saved query {query}")
    return Exit.DONE


def _read(
    insights: Insights, groups: Sequence[str], request_id: str, *, start_s: float, end_s: float
) -> tuple[list[LogLine], bool]:
    """A request's lines, and whether some are missing: then the terminal steps, the last to come, are there still.

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
    """A request's id as it stands in the logs. Raises UsageError if it is none."""
    try:
        return str(uuid.UUID(request_id))
    except ValueError:
        raise UsageError(f"{request_id!r} is not a valid request id: it must be a UUID") from None


def plain(story: RequestTrace) -> dict[str, Any]:
    """A story as plain data."""
    end = story.end
    return {
        "requestId": story.request_id,
        "asker": story.asker,
        "outcome": end.step if end else "open",
        "code": end.text("code") if end else None,
        "answeredBy": end.text("answered_by") if end else None,
        "cut": story.cut,
        "beganAt": _instant(story.began_ms),
        "tookMs": story.took_ms,
        "spent": _plain_spent(story.spent),
        "attempts": [
            {
                "attempt": one.number,
                "strategy": one.strategy,
                "worker": one.worker,
                "outcome": one.outcome,
                "code": one.code,
                "afterMs": one.began_ms - story.began_ms,
                "tookMs": one.took_ms,
                "spent": _plain_spent(one.spent),
            }
            for one in story.attempts
        ],
        "lines": [
            {**line.fields, "at": _instant(line.at_ms), "afterMs": line.at_ms - story.began_ms, "logGroup": line.group}
            for line in story.lines
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


def show(story: RequestTrace, out: Console, *, every_line: bool) -> None:
    """The story for people: on a terminal as a table, in a pipe a line a step, separated by tabs."""
    rows = [_row(story, line) for line in (story.lines if every_line else story.in_brief())]
    whose = f" of the asker {one_line(story.asker)}" if story.asker else ""
    if out.is_terminal:
        heading = f"request {story.request_id}{whose}, {_instant(story.began_ms)}"
        out.print(Text(heading, style="bold"), Text(), sep="\n")
        out.print(_table(rows), Text(), sep="\n")
    else:
        for after, attempt, step, words, _ in rows:
            say("\t".join((after, attempt, step, words)))
    for one in story.attempts:
        told = f"attempt {one.number}: {attempt_words(one)} · {spent_words(one.spent)}"
        _say(out, told, "dim" if out.is_terminal else "")
    _say(out, verdict(story), "bold")
    _say(out, sums(story))


def _say(out: Console, words: str, style: str = "") -> None:
    out.print(Text(one_line(words), style=style), soft_wrap=not out.is_terminal)


_Row = tuple[str, str, str, str, str]
"""When, which attempt, which step, what happened, and its style."""


def _row(story: RequestTrace, line: LogLine) -> _Row:
    attempt = story.attempt_of(line)
    number = str(attempt.number) if attempt else str(line.count("attempt") or "")
    after = f"+{(line.at_ms - story.began_ms) / 1000:.3f} s"
    step = one_line(line.step or line.text("level") or "").lower()
    style = "yellow" if line.trouble else "bold" if line is story.end else ""
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
