"""What a run has shown, as Markdown: the generated part of ``docs/load.md``."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.load import figures
from tests.load.checker import PROMISES, Verdict
from tests.load.figures import Load, Row
from tests.load.people import SHARES
from tests.load.run import Outcome

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
_BREACHES_SHOWN = 20


def write(path: Path, outcome: Outcome) -> None:
    """Put a run into a page, in place of what stands between its marks; a page without marks becomes the run's."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    measured = f"{BEGIN}\n\n{markdown(outcome)}\n{END}"
    if BEGIN in text and END in text:
        before, rest = text.split(BEGIN, 1)
        text = f"{before}{measured}{rest.split(END, 1)[1]}"
    else:
        text = f"{text.rstrip()}\n\n{measured}\n" if text else f"{measured}\n"
    path.write_text(text, encoding="utf-8")


def markdown(outcome: Outcome) -> str:
    """A run: what was done, what was checked, what askers waited for, and what held them up."""
    requests, tally = outcome.requests, outcome.tally
    load = figures.load(outcome.readings, tally.ended, outcome.processors)
    phases = figures.by_phase(requests)
    lines = [*_headline(outcome, load), ""]
    lines += ["### Promises", "", *_promises(outcome.verdict), ""]
    lines += ["### First text", "", "In seconds from the question to the first text on the asker's screen.", ""]
    lines += [*_table("questions open at once", figures.by_open(requests)), ""]
    lines += [*_table("what was asked", figures.by_kind(requests)), ""]
    lines += ["### Where the time went", "", *_table("step", phases), ""]
    lines += [*_worst(outcome), ""]
    lines += ["### Bottleneck", "", figures.bottleneck(load, phases, outcome.processors), "", *_parts(load), ""]
    lines += ["### What happened meanwhile", "", *_happened(outcome, load), ""]
    return "\n".join(lines)


def _headline(outcome: Outcome, load: Load) -> list[str]:
    extent, tally = outcome.extent, outcome.tally
    mean, best = figures.throughput(outcome.requests, outcome.began)
    mix = ", ".join(f"{kind} {share:g} %" for kind, share in SHARES.items())
    state = "" if outcome.complete else " **The run is under way: this is what it has shown so far.**"
    return [
        f"`--sockets {extent.sockets} --questions {extent.questions} --seed {outcome.seed} --pace {extent.pace:g}` on "
        f"{outcome.processors} processors ({platform.machine()}), Python {platform.python_version()}.{state}",
        "",
        f"- {tally.asked} of {extent.questions} questions asked over {extent.sockets} sockets in {load.seconds:.0f} s; "
        f"{tally.ended} ended, {tally.most_open} were open at once at most.",
        f"- {mean:.2f} answers a second over the whole run, {best:.2f} in its best minute.",
        f"- Asked: {mix}.",
    ]


def _promises(verdict: Verdict | None) -> list[str]:
    if verdict is None:
        return ["Not checked yet."]
    lines = ["| requests | |", "| ---: | --- |"]
    lines += [f"| {broken} | {PROMISES[promise]} |" for promise, broken in verdict.counts().items()]
    lines += [f"| {verdict.unread} | not checked, for want of time |"] if verdict.unread else []
    lines += ["", f"{verdict.requests} requests ended: {_listed(verdict.outcomes)}; answered by: "]
    lines[-1] += (
        f"{_listed(verdict.answered_by)}. Their answers rest on {verdict.index_versions} versions of the index."
    )
    shown = verdict.breaches[:_BREACHES_SHOWN]
    lines += ["", *(f"- `{one.request_id}` {one.promise}: {one.why}" for one in shown)] if shown else []
    return lines


def _table(title: str, rows: Sequence[Row]) -> list[str]:
    lines = [
        f"| {title} | questions | p50 | p90 | p95 | p99 | most |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        times = (row.p50, row.p90, row.p95, row.p99, row.most)
        lines.append(f"| {row.name} | {row.count} | " + " | ".join(f"{value:.2f}" for value in times) + " |")
    return lines


def _worst(outcome: Outcome) -> list[str]:
    found = figures.worst(outcome.requests)
    if found is None:
        return ["Nobody has seen a text yet."]
    person, mine = found
    times = [one.first_text_s for one in mine if one.first_text_s is not None]
    faults = sum(one.gateway_faults for one in mine)
    return [
        f"The worst client is person {person}: of {len(mine)} questions, the first text came after "
        f"{sum(times) / len(times):.1f} s in the mean and {max(times):.1f} s at most; {faults} of its frames were not "
        "handed on by API Gateway."
    ]


def _parts(load: Load) -> list[str]:
    lines = ["| part | processors in the mean | milliseconds of a processor for an answer |", "| --- | ---: | ---: |"]
    for whose in sorted(load.of_one, key=lambda one: -load.of_one[one]):
        if load.an_answer_ms[whose] >= 1:
            lines.append(f"| {whose} | {load.of_one[whose]:.2f} | {load.an_answer_ms[whose]:.0f} |")
    return [
        *lines,
        "",
        f"At most {load.processes} processes of functions lived at once. Of {load.invocations + load.throttles} "
        f"invocations, {load.throttles} were throttled.",
    ]


def _happened(outcome: Outcome, load: Load) -> list[str]:
    requests, tally = outcome.requests, outcome.tally
    again = sum(one.asked_again for one in requests)
    lines = [f"- after {at:.0f} s: {told}" for at, told in tally.happened]
    slow = len({one.person for one in requests if one.is_slow})
    faults, disordered = (sum(getattr(one, name) for one in requests) for name in ("gateway_faults", "disordered"))
    lines += [
        f"- {tally.drops} sockets were cut under an answer; {slow} people read slowly.",
        f"- API Gateway answered {faults} frames with its own error; the clients sent them again.",
        f"- {disordered} frames came out of their order or a second time over one socket; the clients put them right.",
        f"- Clients gave up {sum(tally.refusals.values())} times ({_listed(tally.refusals)}); their people asked "
        f"{again} times again.",
    ]
    return lines


def _listed(counts: Mapping[str, int] | Iterable[tuple[str, int]]) -> str:
    pairs = sorted(dict(counts).items(), key=lambda one: -one[1])
    return ", ".join(f"{name or 'none'} {count}" for name, count in pairs) or "none"
