"""The live table: the questions in flight, the faults, and at the end the verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tests.chaos.record import Followed
from tests.chaos.tally import Tally
from tests.chaos.verdict import PROMISES, Verdict

_QUESTION_CHARS = 46
_COLOURS = {"complete": "green", "error": "yellow", "fallback": "magenta", "chunk": "cyan"}


def live(in_flight: Sequence[Followed], ended: Sequence[Followed], tally: Tally) -> RenderableType:
    """What is going on now."""
    table = Table(title=_headline(tally), title_justify="left", expand=True, box=None, pad_edge=False)
    for title, justify in (("", "right"), ("question", "left"), ("attempt", "left"), ("event", "right"), ("", "left")):
        table.add_column(title, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("sockets", justify="right")
    table.add_column("s", justify="right")
    for one in [*ended, *in_flight]:
        table.add_row(*_row(one))
    return Group(table, Text(f"\n{tally.faults_line()}", style="dim"))


def _headline(tally: Tally) -> str:
    return (
        f"kills {tally.kills} of {tally.wanted_kills} · asked {tally.asked} · ended {tally.ended} · "
        f"sockets dropped {sum(tally.drops.values())} · seed {tally.seed} · {tally.elapsed_s():.0f} s"
    )


def _row(one: Followed) -> Sequence[RenderableType]:
    latest = one.latest or {}
    kind = str(latest.get("type", "asked"))
    strategy = _strategy(one)
    sockets = sum(len(screen.arrived) for screen in one.screens)
    took_s = (one.ended_at or time.monotonic()) - one.asked_at
    told = kind if one.ended_at is None else f"[{kind}]"
    return (
        str(one.number),
        Text(one.question[:_QUESTION_CHARS]),
        strategy,
        str(latest.get("seq", "")),
        Text(told, style=_COLOURS.get(kind, "")),
        str(sockets),
        f"{took_s:.1f}",
    )


def _strategy(one: Followed) -> str:
    begun = {
        frame["attempt"]: str(frame["strategy"])
        for screen in one.screens
        for socket in screen.arrived
        for frame in socket
        if frame["type"] == "attempt"
    }
    return " → ".join(begun[number] for number in sorted(begun))


def verdict_lines(verdict: Verdict, tally: Tally, unattributed: int) -> RenderableType:
    """The verdict, for people."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", style="bold")
    table.add_column()
    done = (
        (verdict.requests, "requests: " + _listed(verdict.outcomes)),
        (sum(verdict.answered_by.values()), "answered by: " + _listed(verdict.answered_by)),
        (tally.kills, "workers killed in mid-invocation: " + _listed(tally.kills_by)),
        (sum(tally.drops.values()), "sockets dropped at: " + _listed(tally.drops)),
        (sum(tally.faults.values()), "faults armed, of " + str(len(tally.faults)) + " kinds"),
        (tally.redeployed, f"deployments of new code in mid-run, {tally.published} index versions published"),
        (tally.left, f"requests left by their readers for good; sweeps run: {tally.sweeps}, {_listed(tally.swept)}"),
        (
            verdict.model_calls,
            f"model calls, {verdict.most_model_calls} at most for one request"
            + (f"; {unattributed} more of no known request" if unattributed else ""),
        ),
        (verdict.retrieval_calls, f"for searches beside them, {verdict.most_retrieval_calls} at most for one request"),
    )
    for count, told in done:
        table.add_row(str(count), told)
    table.add_row("", "")
    for kind, broken in verdict.counts().items():
        table.add_row(Text(str(broken), style="bold red" if broken else "bold green"), PROMISES[kind])
    lines = [Text(f"#{one.number} {one.request_id} {one.kind}: {one.why}", style="red") for one in verdict.breaches]
    end = Text("Every promise held." if verdict.holds else "A promise was broken.", style="bold")
    return Group(table, *lines, end, Text(f"seed {tally.seed}, {tally.elapsed_s():.0f} s", style="dim"))


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'none'} {count}" for name, count in sorted(counts.items(), key=lambda one: -one[1]))
