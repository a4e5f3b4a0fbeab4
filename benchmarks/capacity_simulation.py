"""A seeded discrete-event simulation of AWS's limiters while very many answers begin within minutes.

Answers arrive at random, at a rate that rises to its height within ``RAMP_S``. An event is a group of calls of one kind
in the same half second: connections, questions, starts, environments, tokens of a model, posts, writes, reads.
Each passes its limiter:

- a *token bucket* (gateway, connections, starts, tokens): refilled continuously up to its burst;
- *environments*: at most so many more in ten seconds, without saving up, up to the account's concurrency;
- a *table*: partitions of a fixed rate each, at first those of a new table. One that is used for more than 80 % splits,
  once in ``SPLIT_S``: AWS states no time, a minute is assumed. A *place* (one item, or keys that only grow) cannot
  be split, and has no more than a partition's rate at any time.

What a limiter refuses comes again after a pause that doubles, as the library and the SDK do it, and is lost after
``TRIES``. Small-number effects are beyond it: calls are counted, not followed one by one.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.capacity_facts import Facts, Habits
from benchmarks.capacity_quotas import ONE_REQUEST, PLACES, Design, Load
from benchmarks.capacity_units import Units

TICK_S = 0.5
RAMP_S, HELD_S = 1_200.0, 120.0
"""How long the load rises, and how long it stays."""
SPLIT_S = 60.0
SPLIT_ABOVE = 0.8
TRIES = 4
SPARED_FOR_S = 300.0
"""How long after a refusal a place is asked less often, where the library does so."""
PAUSE_S = 0.5


@dataclass
class Limiter:
    """Counts what is asked of it, refused and lost."""

    rate: float
    """A second."""
    burst: float
    room: float = 0.0
    at_s: float = 0.0
    asked: float = 0.0
    refused: float = 0.0
    lost: float = 0.0
    peak: float = 0.0
    """The most that was asked for the first time in a second."""
    _second: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def __post_init__(self) -> None:
        self.room = self.burst

    def take(self, count: float, now_s: float, *, again: bool) -> float:
        """How many of these pass."""
        self.refill(now_s)
        if not again:
            self.asked += count
            self._second[int(now_s)] += count
            self.peak = max(self.peak, self._second[int(now_s)])
        passed = min(count, self.room)
        self.room -= passed
        self.refused += count - passed
        return passed

    def refill(self, now_s: float) -> None:
        """Add what has become free."""
        self.room = min(self.burst, self.room + (now_s - self.at_s) * self.rate)
        self.at_s = now_s


class Environments(Limiter):
    """A function's environments: they are kept, and used again."""

    def __init__(self, most: float, new_in_10_s: float) -> None:
        super().__init__(new_in_10_s / 10, new_in_10_s)
        self.most, self.made, self.idle = most, 0.0, 0.0

    def take(self, count: float, now_s: float, *, again: bool) -> float:
        """An idle one, or a new one."""
        idle = min(count, self.idle)
        self.idle -= idle
        self.refill(now_s)
        self.room = min(self.room, max(0.0, self.most - self.made))
        made = super().take(count - idle, now_s, again=again)
        self.made += made
        return idle + made


class Table(Limiter):
    """A table on demand, whose partitions split under heat."""

    def __init__(self, partition: float, at_first: float, most: float) -> None:
        super().__init__(at_first, at_first)
        self._partition, self._most, self._hot_since_s = partition, most, math.inf
        self._used: dict[int, float] = defaultdict(float)

    def take(self, count: float, now_s: float, *, again: bool) -> float:
        """Split, then take."""
        passed = super().take(count, now_s, again=again)
        self._used[int(now_s)] += passed
        hot = self._used[int(now_s) - 1] > SPLIT_ABOVE * self.rate
        self._hot_since_s = min(self._hot_since_s, now_s) if hot else math.inf
        if now_s - self._hot_since_s > SPLIT_S:
            self.rate = min(self._most, 2 * self.rate)
            self.burst, self._hot_since_s = self.rate, math.inf
        return passed

    @property
    def partitions(self) -> int:
        """How many it has by now."""
        return math.ceil(self.rate / self._partition)


@dataclass(frozen=True)
class Outcome:
    """What a limiter did."""

    name: str
    peak: float
    rate: float
    refused: float
    """The share of calls, tries included, that it refused."""
    lost: float
    """The share that was refused ``TRIES`` times."""


class Simulation:
    """One run."""

    def __init__(
        self,
        answers: float,
        unit: Units,
        facts: Facts,
        habits: Habits,
        design: Design,
        *,
        seed: int,
        quotas: Mapping[str, float],
        used: tuple[str, ...] = (),
        ramp_s: float = RAMP_S,
    ) -> None:
        """``quotas``: the account's, by their names in the facts; ``used``: settings that are set (see the places)."""
        self._load = Load(answers, unit, habits)
        self._ramp_s = ramp_s
        self._unit = unit
        self._facts = facts
        self._design = design
        self._random = random.Random(seed)
        self._events: defaultdict[int, dict[tuple[str, int], float]] = defaultdict(dict)
        """By tick, how many calls of a name are tried for which time."""
        self._refused_at_s: dict[str, float] = {}
        self._free: defaultdict[int, float] = defaultdict(float)
        """By tick, how many environments become free."""
        burst = facts.quotas["gateway"].burst or 0.0
        gateway, starts = quotas["gateway"], quotas["starts"]
        writes, reads = facts.ceiling("partitionWrites"), facts.ceiling("partitionReads")
        new = facts.ceiling("newTableWrites")
        self.limiters: dict[str, Limiter] = {
            "new connections": Limiter(quotas["connections"], quotas["connections"]),
            "gateway": Limiter(gateway, max(burst, gateway / 2)),
            "starts": Limiter(starts, starts),
            "new environments": Environments(quotas["concurrency"], facts.ceiling("scalingPer10S")),
            "model tokens": Limiter(quotas["tokens"] / 60, quotas["tokens"]),
            "table, writes": Table(writes, max(new, quotas.get("warmWrites", new)), quotas["tableWrites"]),
            "table, reads": Table(reads, 3 * max(new, quotas.get("warmWrites", new)), quotas["tableReads"]),
        }
        self._places = [place for place in PLACES if not place.only_if or place.only_if in used]
        for place in self._places:
            ceiling = facts.ceiling(place.limiter)
            self.limiters[place.name] = Limiter(ceiling, ceiling)

    def run(self) -> list[Outcome]:
        """Let time pass; what the limiters did."""
        for tick in range(int((self._ramp_s + HELD_S) / TICK_S)):
            now_s = tick * TICK_S
            share = min(1.0, (now_s + TICK_S) / self._ramp_s)
            environments = self.limiters["new environments"]
            assert isinstance(environments, Environments)
            environments.idle += self._free.pop(tick, 0.0)
            self._arrive(now_s, share)
            events = self._events[tick]
            while events:
                (name, tried), count = next(iter(events.items()))
                del events[name, tried]
                self._handle(now_s, name, count, tried)
            del self._events[tick]
        return [
            Outcome(
                name,
                limiter.peak,
                limiter.rate,
                limiter.refused / max(1.0, limiter.asked + limiter.refused - limiter.lost),
                limiter.lost / max(1.0, limiter.asked),
            )
            for name, limiter in self.limiters.items()
        ]

    def _arrive(self, now_s: float, share: float) -> None:
        load = self._load
        self._later(now_s, "new connections", self._drawn(load.connects_a_second * share * TICK_S))
        begun = self._drawn(load.a_second * share * TICK_S)
        self._later(now_s, "starts", begun)
        self._later(now_s, "gateway", begun)
        for place in self._places:
            if place.name == ONE_REQUEST:
                continue
            refuses = (
                place.spared is not None and self._refused_at_s.get(place.name, -SPARED_FOR_S) > now_s - SPARED_FOR_S
            )
            demand = place.spared if refuses and place.spared is not None else place.demand
            self._later(now_s, place.name, self._drawn(demand(load, self._design) * share * TICK_S))

    def _begin(self, now_s: float, count: float) -> None:
        """Answers whose worker has its environment: its calls are spread over the time that it takes."""
        unit = self._unit
        steps = max(1, round(unit.seconds / TICK_S))
        for step in range(steps):
            at_s = now_s + step * TICK_S
            self._later(at_s, "gateway", count * unit.posts / steps)
            self._later(at_s, "table, writes", count * unit.of_table("write") / steps)
            self._later(at_s, "table, reads", count * unit.of_table("read") / steps)

    def _handle(self, at_s: float, name: str, count: float, tried: int) -> None:
        limiter = self.limiters[name]
        weight = self._unit.input_tokens + self._unit.output_tokens if name == "model tokens" else 1.0
        passed = limiter.take(count * weight, at_s, again=tried > 0) / weight
        if (left := count - passed) > 1e-6:
            self._refused_at_s[name] = at_s
            if tried + 1 < TRIES:
                self._later(at_s + PAUSE_S * 2**tried * (0.5 + self._random.random()), name, left, tried + 1)
            else:
                limiter.lost += left * weight
        if not passed:
            return
        match name:
            case "starts":
                self._later(at_s, "new environments", passed)
            case "new environments":
                done_s = at_s + self._unit.billed_s.get("Answer", self._unit.seconds)
                self._free[round(done_s / TICK_S)] += passed
                self._later(at_s, "model tokens", passed)
            case "model tokens":
                self._begin(at_s, passed)

    def _later(self, at_s: float, name: str, count: float, tried: int = 0) -> None:
        if count > 0:
            events = self._events[round(at_s / TICK_S)]
            events[name, tried] = events.get((name, tried), 0.0) + count

    def _drawn(self, mean: float) -> float:
        """A number of arrivals: Poisson's, by its normal form where it is large."""
        if mean > 50:
            return max(0.0, round(self._random.gauss(mean, math.sqrt(mean))))
        limit, count, product = math.exp(-mean), 0, self._random.random()
        while product > limit:
            count, product = count + 1, product * self._random.random()
        return float(count)
