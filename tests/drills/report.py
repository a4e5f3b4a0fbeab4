"""What the drills have shown, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from stacks.alarms import runbook
from tests.drills.deployment import METRIC_MINUTE_S, AlarmChange, Asked, since_minutes
from tests.drills.scene import Outcome, Row

_CELL_CHARS = 130
_ROWS = 2
_HEAD = """\
# Drills

    make drill

starts a local cloud with all alarms, breaks one thing after another, and holds the deployment to what its operator
needs: the alarm fires, the saved query shows the fault, the [runbook](runbooks/README.md)'s mend mends it, and the
alarm comes back. If a scene does not show what it promises, the exit status is 1, and the last lines say why.

    .venv/bin/python -m tests.drills --list                     # the scenes
    .venv/bin/python -m tests.drills issuer-away                # one of them
    .venv/bin/python -m tests.drills --report docs/drills.md    # all, and write this page
    .venv/bin/python -m tests.drills --keep drills              # keep the cloud's state and logs

Alarms are those of the deployed templates, evaluated by the [stand-in of
CloudWatch](../cicada_local/cloudwatch/CONFORMANCE.md), in which a minute takes {minute:g} s. Times are CloudWatch's
minutes since the fault; the last column is in real seconds. Queries are run as they are deployed, by the stand-in of
Logs Insights, over the lines of the functions' logs.
"""


def summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line for each scene, and one for all."""
    for outcome in outcomes:
        told = "shown" if outcome.problem is None else f"NOT SHOWN: {outcome.problem}"
        yield f"{outcome.scene.name:<20} {outcome.took_s:5.1f} s  {told}"
    failed = sum(outcome.problem is not None for outcome in outcomes)
    took_s = sum(outcome.took_s for outcome in outcomes)
    yield f"{len(outcomes) - failed} of {len(outcomes)} scenes have shown what they promise, in {took_s:.0f} s."


def write_report(path: Path, outcomes: Sequence[Outcome], reasons: Mapping[str, str]) -> None:
    """Write the page; ``reasons`` says why alarms are not drilled."""
    path.write_text(report(outcomes) + not_drilled(reasons), encoding="utf-8")


def report(outcomes: Sequence[Outcome]) -> str:
    """The page, as Markdown."""
    lines = [_HEAD.format(minute=METRIC_MINUTE_S), *_table(outcomes)]
    for outcome in outcomes:
        lines += ["", *_section(outcome)]
    return "\n".join(lines) + "\n"


def not_drilled(reasons: Mapping[str, str]) -> str:
    """The end of the page: which alarms no scene raises."""
    lines = [f"- `{name}`: {reason}." for name, reason in reasons.items()]
    return "\n".join(
        ["", "## Not drilled", "", "These alarms are held by their templates' tests alone:", "", *lines, ""]
    )


def _table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "| scene | what breaks | alarm | in alarm after | OK after | seconds |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for outcome in outcomes:
        scene = outcome.scene
        fired, back = (_first(outcome, state) for state in ("ALARM", "OK"))
        yield (
            f"| [{scene.name}](#{scene.name}) | {scene.broken} | {_alarm(scene.alarm)} | {_minutes(fired, outcome)} | "
            f"{_minutes(back, outcome)} | {outcome.took_s:.0f} |"
        )


def _first(outcome: Outcome, state: str) -> AlarmChange | None:
    """The first change to ALARM; the last one to OK."""
    found = [change for change in outcome.changes if change.state == state]
    return None if not found else found[0] if state == "ALARM" else found[-1]


def _minutes(change: AlarmChange | None, outcome: Outcome) -> str:
    return "never" if change is None else f"{since_minutes(change, outcome.since):.0f} min"


def _section(outcome: Outcome) -> Iterator[str]:
    scene = outcome.scene
    yield f"## {scene.name}"
    yield ""
    yield f"{scene.broken} {scene.how}"
    if outcome.problem is not None:
        yield ""
        yield f"**Not shown:** {_cell(outcome.problem, 400)}"
    yield ""
    yield from _asked([asked for asked in outcome.asked if asked.at == "broken"], "While it is broken")
    yield from _asked([asked for asked in outcome.asked if asked.at == "mended"], "After the mend")
    others = ", ".join(map(_alarm, outcome.others))
    yield f"**Alarm** {_alarm(scene.alarm)}" + (f"; {others} fired too" if others else "")
    yield ""
    for change in outcome.changes:
        yield f"- {since_minutes(change, outcome.since):.0f} min: {change.state}. {_cell(change.reason, 240)}"
    yield ""
    yield f"**Query** `{scene.query}` shows {scene.expected}:"
    yield ""
    yield from _rows(outcome.rows)
    yield ""
    yield f"**Mend.** {scene.mend}"
    yield ""
    yield "```"
    yield from "\n".join(outcome.commands).splitlines()
    yield "```"
    yield ""
    if outcome.problem is None:
        yield f"**Over.** {scene.over} The alarm is OK."


def _asked(asked: Sequence[Asked], title: str) -> Iterator[str]:
    """What askers saw: the first, and the last."""
    if not asked:
        return
    yield f"**{title}**, what askers saw" + (
        f" ({len(asked)} questions, the first and the last)" if len(asked) > 2 else ""
    )
    yield ""
    for one in asked if len(asked) <= 2 else (asked[0], asked[-1]):
        yield f"- *{one.question}* {one.saw}"
    yield ""


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        yield "(no rows)"
        return
    columns = list(dict.fromkeys(column for row in rows[:_ROWS] for column in row))
    yield f"| {' | '.join(columns)} |"
    yield f"|{' --- |' * len(columns)}"
    for row in rows[:_ROWS]:
        yield f"| {' | '.join(_cell(row.get(column, '')) for column in columns)} |"
    if len(rows) > _ROWS:
        yield ""
        yield "and further rows."


def _cell(text: str, chars: int = _CELL_CHARS) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def _alarm(name: str) -> str:
    """An alarm, linked to its runbook."""
    return f"[{name}](runbooks/{runbook(name)})"
