"""Metrics, aggregated by the minute as they come in."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cicada_local.cloudwatch.clock import MINUTE_S, MetricClock

KEPT_MINUTES = 15 * 24 * 60
"""CloudWatch keeps data points of a minute for 15 days."""
_PERCENTILE = re.compile(r"p(100|\d{1,2}(?:\.\d{1,10})?)")
_DIGITS = 4
"""Values are told apart by so many digits, so that a minute's latencies take little room."""

Series = dict[int, float]
"""Values by the beginning of their period, seconds since the epoch."""


@dataclass(frozen=True)
class Metric:
    """A metric's identity: each set of dimensions is a metric of its own."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...] = ()
    """Sorted by name."""

    @classmethod
    def of(cls, namespace: str, name: str, dimensions: Mapping[str, str] | None = None) -> Metric:
        """The metric with these dimensions."""
        return cls(namespace, name, tuple(sorted((dimensions or {}).items())))


@dataclass(slots=True)
class Cell:
    """What came in during a minute, or some."""

    count: int = 0
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf
    values: Counter[float] = field(default_factory=Counter)
    """How often each value came, rounded."""

    def add(self, value: float) -> None:
        """Take in a value."""
        self.count += 1
        self.total += value
        self.least, self.most = min(self.least, value), max(self.most, value)
        self.values[_rounded(value)] += 1

    def merge(self, other: Cell, *, values: bool) -> None:
        """Take in another's; ``values`` only where percentiles are asked for."""
        self.count += other.count
        self.total += other.total
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        if values:
            self.values.update(other.values)


class MetricStore:
    """Takes in values, and tells statistics of them. Holds a few numbers for each minute of each metric."""

    def __init__(self, clock: MetricClock) -> None:
        """Hold nothing yet."""
        self.clock = clock
        self._cells: dict[Metric, dict[str, dict[int, Cell]]] = {}

    def record(self, metric: Metric, *values: float, unit: str = "None", at: float | None = None) -> None:
        """Take in values.

        Args:
            metric: whose.
            values: at least one.
            unit: one of CloudWatch's.
            at: when, in CloudWatch's time; now if not given.
        """
        minute = int((self.clock.now() if at is None else at) // MINUTE_S) * MINUTE_S
        minutes = self._cells.setdefault(metric, {}).setdefault(unit, {})
        cell = minutes.get(minute)
        if cell is None:
            cell = minutes[minute] = Cell()
            if len(minutes) > KEPT_MINUTES:
                del minutes[min(minutes)]
        for value in values:
            cell.add(value)

    def count(self, namespace: str, name: str, dimensions: Mapping[str, str], value: float = 1) -> None:
        """Take in a count, now."""
        self.record(Metric.of(namespace, name, dimensions), value, unit="Count")

    def metrics(self) -> list[Metric]:
        """All that have values, sorted."""
        return sorted(self._cells, key=lambda metric: (metric.namespace, metric.name, metric.dimensions))

    def statistic(
        self, metric: Metric, statistic: str, starts: Iterable[int], period_s: int, unit: str | None = None
    ) -> Series:
        """A statistic of each period that has values.

        Args:
            metric: whose.
            statistic: as :func:`is_statistic` takes it.
            starts: the beginnings of the periods, at whole minutes.
            period_s: their length.
            unit: leaves out values with another one.
        """
        by_unit = self._cells.get(metric, {})
        chosen = [minutes for name, minutes in by_unit.items() if unit in (None, name)]
        found: Series = {}
        for start in starts if chosen else ():
            value = _value(self._merged(chosen, start, period_s, statistic), statistic)
            if value is not None:
                found[start] = value
        return found

    @staticmethod
    def _merged(chosen: list[dict[int, Cell]], start: int, period_s: int, statistic: str) -> Cell:
        merged, percentile = Cell(), statistic.startswith("p")
        for minutes in chosen:
            for minute in _within(minutes, start, period_s):
                merged.merge(minutes[minute], values=percentile)
        return merged


def _within(minutes: Mapping[int, Cell], start: int, period_s: int) -> Iterator[int]:
    if len(minutes) * MINUTE_S < period_s:
        return (minute for minute in sorted(minutes) if start <= minute < start + period_s)
    return (minute for minute in range(start, start + period_s, MINUTE_S) if minute in minutes)


def is_statistic(text: str) -> bool:
    """Whether a statistic is served: the five simple ones, and percentiles from ``p0`` to ``p100``."""
    return text in _SIMPLE or _PERCENTILE.fullmatch(text) is not None


_SIMPLE = ("SampleCount", "Sum", "Average", "Minimum", "Maximum")


def _value(cell: Cell, statistic: str) -> float | None:
    if cell.count == 0:
        return None
    match statistic:
        case "SampleCount":
            return float(cell.count)
        case "Sum":
            return cell.total
        case "Average":
            return cell.total / cell.count
        case "Minimum":
            return cell.least
        case "Maximum":
            return cell.most
    return _percentile(cell, float(statistic[1:]))


def _percentile(cell: Cell, percent: float) -> float:
    """The least value that is at least as great as this share of all: the nearest rank."""
    rank = max(1, math.ceil(cell.count * percent / 100))
    seen = 0
    for value in sorted(cell.values):
        seen += cell.values[value]
        if seen >= rank:
            return min(max(value, cell.least), cell.most)
    return cell.most


def _rounded(value: float) -> float:
    if value == 0:
        return 0.0
    return round(value, _DIGITS - 1 - math.floor(math.log10(abs(value))))
