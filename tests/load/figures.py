"""What askers had to wait for, in percentiles; and what held them up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.load.machine import ASKERS, CLOUD, Reading
from tests.load.record import Request

BANDS = (1, 5, 10, 20, 40, 80, 160)
"""The least of each band of questions that are open at once."""
BUSY = 0.85
"""The share of all processors from which on they are what a run waits for."""
PHASES = (
    ("asked", "accepted", "the question's acceptance: socket, message processor, its retries"),
    ("accepted", "attempt", "a worker's start: workflow, queue for a free place, a cold start"),
    ("attempt", "sources", "the search, or the agent's first turns"),
    ("sources", "chunk", "the model's first text"),
    ("chunk", "complete", "the rest of the text, its delivery, the check of citations"),
)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that at least this share of them does not exceed (nearest rank). NaN of none."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


@dataclass(frozen=True)
class Row:
    """Waiting times of some questions, in seconds."""

    name: str
    count: int
    p50: float
    p90: float
    p95: float
    p99: float
    most: float

    @classmethod
    def of(cls, name: str, values: Sequence[float]) -> Row:
        """Summed up."""
        return cls(name, len(values), *(percentile(values, share) for share in (0.5, 0.9, 0.95, 0.99, 1)))


def ordinary(requests: Iterable[Request]) -> list[Request]:
    """Those whose waiting is the deployment's: no slow reader's, and none whose socket was cut."""
    return [one for one in requests if not one.is_slow and not one.drops and one.first_text_s is not None]


def by_open(requests: Sequence[Request]) -> list[Row]:
    """First-text times by how many questions were open when each was asked; the last row is of all."""
    rows = []
    chosen = ordinary(requests)
    for least, above in zip(BANDS, (*BANDS[1:], math.inf), strict=True):
        name = f"{least}–{above - 1:.0f}" if above < math.inf else f"{least} and more"
        values = [one.first_text_s or 0 for one in chosen if least <= one.at_once < above]
        if values:
            rows.append(Row.of(name, values))
    return [*rows, Row.of("all", [one.first_text_s or 0 for one in chosen])]


def by_kind(requests: Sequence[Request]) -> list[Row]:
    """First-text times by what was asked."""
    chosen = ordinary(requests)
    kinds = sorted({one.kind for one in chosen})
    return [Row.of(kind, [one.first_text_s or 0 for one in chosen if one.kind == kind]) for kind in kinds]


def by_phase(requests: Sequence[Request]) -> list[Row]:
    """How long each step of the ordinary questions took that went through it."""
    rows = []
    for begin, end, told in PHASES:
        values = [
            max(0.0, one.times[end] - moment)
            for one in ordinary(requests)
            if end in one.times and (moment := _moment(one, begin)) is not None
        ]
        rows.append(Row.of(told, values))
    return rows


def _moment(request: Request, milestone: str) -> float | None:
    return request.followed.asked_at if milestone == "asked" else request.times.get(milestone)


def worst(requests: Sequence[Request]) -> tuple[int, list[Request]] | None:
    """The person who waited longest for a first text in the mean, and their questions."""
    mine: dict[int, list[Request]] = {}
    for one in ordinary(requests):
        mine.setdefault(one.person, []).append(one)
    if not mine:
        return None
    person = max(mine, key=lambda number: _mean([one.first_text_s or 0 for one in mine[number]]))
    return person, [one for one in requests if one.person == person]


def throughput(requests: Sequence[Request], began: float, window_s: float = 60.0) -> tuple[float, float]:
    """Answers a second over the whole run, and in its best minute."""
    ends = sorted(one.followed.ended_at for one in requests if one.followed.ended_at is not None)
    if not ends:
        return 0.0, 0.0
    best, first = 0, 0
    for last, end in enumerate(ends):
        while end - ends[first] > window_s:
            first += 1
        best = max(best, last - first + 1)
    took_s = ends[-1] - began
    return len(ends) / took_s, best / min(window_s, took_s)


@dataclass(frozen=True)
class Load:
    """What the machine did during a run."""

    seconds: float
    busy: float
    """The mean share of all processors that was busy, 0 to 1."""
    busiest: float
    """The same of the busiest minute or so."""
    of_one: Mapping[str, float]
    """Processors that each part used in the mean; the local cloud's process cannot use much more than 1."""
    an_answer_ms: Mapping[str, float]
    """Processor milliseconds for an answer."""
    throttles: int
    invocations: int
    processes: int
    """Of functions, at most."""


def load(readings: Sequence[Reading], answers: int, processors: int, span_s: float = 60.0) -> Load:
    """Summed up, from at least two readings."""
    first, last = readings[0], readings[-1]
    seconds = max(last.at - first.at, 1e-9)
    busiest = 0.0
    for begin in readings:
        end = next((one for one in readings if one.at >= begin.at + span_s), None)
        if end is not None:
            busiest = max(busiest, (end.busy_s - begin.busy_s) / (end.at - begin.at) / processors)
    used = {whose: last.cpu_s.get(whose, 0) - first.cpu_s.get(whose, 0) for whose in last.cpu_s}
    busy = (last.busy_s - first.busy_s) / seconds / processors
    return Load(
        seconds=seconds,
        busy=busy,
        busiest=max(busiest, busy),
        of_one={whose: cpu_s / seconds for whose, cpu_s in used.items()},
        an_answer_ms={whose: 1000 * cpu_s / max(answers, 1) for whose, cpu_s in used.items()},
        throttles=last.throttles - first.throttles,
        invocations=last.invocations - first.invocations,
        processes=max(one.processes for one in readings),
    )


def bottleneck(load: Load, phases: Sequence[Row], processors: int) -> str:
    """What held the answers up, in a sentence or two."""
    slowest = max((row for row in phases if row.count), key=lambda row: row.p95, default=None)
    waits = f" The step with the longest p95 is {slowest.name} ({slowest.p95:.1f} s)." if slowest else ""
    parts = {whose: used for whose, used in load.of_one.items() if whose != ASKERS}
    largest = max(parts, key=lambda whose: parts[whose], default=CLOUD)
    share = parts.get(largest, 0.0) / max(sum(parts.values()), 1e-9)
    if load.of_one.get(CLOUD, 0.0) >= BUSY:
        used = load.of_one[CLOUD]
        cause = f"One processor: the local cloud is one Python process, and it used {used:.2f} of a processor."
    elif load.busiest >= BUSY:
        cause = (
            f"The {processors} processors: they were {load.busiest:.0%} busy in the busiest minute and {load.busy:.0%} "
            f"in the mean; of what the deployment used, {share:.0%} went to {largest}."
        )
    elif load.throttles > load.invocations / 100:
        cause = f"Admission: {load.throttles} of {load.throttles + load.invocations} invocations found no free place."
    else:
        cause = f"None was reached: the processors were {load.busiest:.0%} busy in the busiest minute."
    return cause + waits


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
