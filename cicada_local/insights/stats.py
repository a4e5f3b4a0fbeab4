"""The command ``stats``: rows that sum up many events."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

Fields = Mapping[str, str]

_UNITS_MS = {
    **dict.fromkeys(("millisecond", "ms", "msec"), 1),
    **dict.fromkeys(("second", "s", "sec"), 1000),
    **dict.fromkeys(("minute", "m", "min"), 60_000),
    **dict.fromkeys(("hour", "h", "hr"), 3_600_000),
    **dict.fromkeys(("day", "d"), 86_400_000),
}
"""Weeks and longer are not served: where they begin is not documented."""
_PERIOD = re.compile(r"(\d+)([A-Za-z]+)")


def bin_ms(period: str) -> int | None:
    """The milliseconds of a period such as ``5m``; None if it is none."""
    match = _PERIOD.fullmatch(period)
    if match is None or not int(match[1]):
        return None
    unit = match[2].lower()
    unit_ms = _UNITS_MS.get(unit) or (_UNITS_MS.get(unit.removesuffix("s")) if len(unit) > 2 else None)
    return None if unit_ms is None else int(match[1]) * unit_ms


def _numbers(values: Sequence[str]) -> list[float]:
    found: list[float] = []
    for value in values:
        try:
            found.append(float(value))
        except ValueError:
            continue
    return found


def _told(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(round(number, 9))


def _percentile(numbers: Sequence[float], percent: float) -> float:
    """The nearest rank."""
    return sorted(numbers)[max(0, math.ceil(percent / 100 * len(numbers)) - 1)]


_OF_NUMBERS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "avg": lambda numbers: sum(numbers) / len(numbers),
    "min": min,
    "max": max,
}
FUNCTIONS = frozenset({"count", "count_distinct", "pct", "earliest", "latest", *_OF_NUMBERS})


@dataclass(frozen=True)
class Aggregate:
    """One column that a function makes of the events of a group."""

    column: str
    function: str
    field: str | None
    """None for all events."""
    percent: float | None = None

    def value(self, events: Sequence[Fields]) -> str | None:
        """The column's value; None without events that have the field. The events are in the order of time."""
        if self.field is None:
            return str(len(events))
        values = [event[self.field] for event in events if self.field in event]
        match self.function:
            case "count":
                return str(len(values))
            case "count_distinct":
                return str(len(set(values)))
            case "earliest" | "latest":
                return (values[0] if self.function == "earliest" else values[-1]) if values else None
        numbers = _numbers(values)
        if not numbers:
            return None
        if self.percent is not None:
            return _told(_percentile(numbers, self.percent))
        return _told(float(_OF_NUMBERS[self.function](numbers)))


@dataclass(frozen=True)
class Group:
    """A field, or a stretch of time, by which events are put together."""

    column: str
    bin_ms: int | None = None

    def value(self, event: Fields) -> str | None:
        """The event's value; None without the field."""
        if self.bin_ms is None:
            return event.get(self.column)
        at = datetime.fromisoformat(event["@timestamp"]).replace(tzinfo=UTC)
        at_ms = round(at.timestamp() * 1000)
        begins = datetime.fromtimestamp((at_ms - at_ms % self.bin_ms) / 1000, UTC)
        return begins.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


@dataclass(frozen=True)
class Stats:
    """The command."""

    aggregates: tuple[Aggregate, ...]
    groups: tuple[Group, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the rows, the groups first."""
        return (*(group.column for group in self.groups), *(one.column for one in self.aggregates))

    def rows(self, events: Sequence[Fields]) -> list[Fields]:
        """A row for each group of events; events without a field that they are grouped by make a group too."""
        grouped: dict[tuple[str | None, ...], list[Fields]] = {}
        for event in sorted(events, key=lambda event: event["@timestamp"]):
            grouped.setdefault(tuple(group.value(event) for group in self.groups), []).append(event)
        if not grouped and not self.groups:
            grouped[()] = []
        return [self._row(key, members) for key, members in grouped.items()]

    def _row(self, key: tuple[str | None, ...], events: Sequence[Fields]) -> Fields:
        pairs = [
            *((group.column, value) for group, value in zip(self.groups, key, strict=True)),
            *((one.column, one.value(events)) for one in self.aggregates),
        ]
        return {column: value for column, value in pairs if value is not None}
