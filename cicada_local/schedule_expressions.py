"""When a schedule is due: EventBridge's ``rate(…)`` and ``cron(…)``, in UTC, and what EventBridge refuses is refused.

Source: Amazon EventBridge User Guide, "Setting a schedule pattern for scheduled rules".
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Protocol


class ScheduleInvalid(ValueError):
    """EventBridge would not take this expression; the message says what is wrong with it."""


class Schedule(Protocol):
    """A parsed expression."""

    def after(self, moment: datetime) -> datetime | None:
        """When it is due next, counted from a moment at which it was due or was created; None for never again."""
        ...


def parse_schedule(expression: str) -> Schedule:
    """Read ``rate(5 minutes)`` or ``cron(0 12 ? * MON-FRI *)``.

    Raises:
        ScheduleInvalid: it is neither, or breaks a rule of its kind.
    """
    if found := _RATE.fullmatch(expression):
        return _rate(int(found["value"]), found["unit"])
    if found := _CRON.fullmatch(expression):
        return _cron(found["fields"].split())
    raise ScheduleInvalid(f"{expression!r} is neither rate(value unit) nor cron(fields)")


# --- rates ---

_RATE = re.compile(r"rate\((?P<value>[0-9]+) (?P<unit>[a-z]+)\)")
_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}


@dataclass(frozen=True)
class Rate:
    """Due again and again after a period."""

    period: timedelta

    def after(self, moment: datetime) -> datetime:
        """One period later."""
        return moment + self.period


def _rate(value: int, unit: str) -> Rate:
    singular = unit.removesuffix("s")
    if value < 1 or singular not in _UNITS:
        raise ScheduleInvalid(f"rate({value} {unit}) is no positive number of minutes, hours or days")
    if (unit == singular) != (value == 1):
        raise ScheduleInvalid(f"rate({value} {unit}): the unit is singular for 1, and plural for more")
    return Rate(value * _UNITS[singular])


# --- cron ---

_CRON = re.compile(r"cron\((?P<fields>[^()]*)\)")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_WEEKDAYS_OF_ONE_WEEK = 7

Days = Callable[[int, int], frozenset[int]]
"""Of a year and a month: the days on which a schedule is due."""


@dataclass(frozen=True)
class _Field:
    """What one of the six fields may hold."""

    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()
    """Of its values, in order from ``first``."""
    steps: bool = True
    """Whether ``/`` is known to it."""

    def values(self, written: str) -> frozenset[int]:
        """The values that ``*``, or numbers, ranges and steps in a list, stand for."""
        return frozenset(value for item in written.split(",") for value in self._item(item))

    def value(self, written: str) -> int:
        """One value, by its number or its name."""
        upper = written.upper()
        if upper in self.names:
            return self.first + self.names.index(upper)
        if not re.fullmatch(r"[0-9]{1,4}", written) or not self.first <= int(written) <= self.last:
            raise self.invalid(written)
        return int(written)

    def invalid(self, written: str) -> ScheduleInvalid:
        return ScheduleInvalid(f"cron: {written!r} is no {self.name} from {self.first} to {self.last}")

    def _item(self, item: str) -> range:
        span, slash, step = item.partition("/")
        if slash and not (self.steps and re.fullmatch(r"[1-9][0-9]{0,3}", step)):
            raise self.invalid(item)
        first, dash, last = span.partition("-")
        if span == "*":
            low, high = self.first, self.last
        elif dash:
            low, high = self.value(first), self.value(last)
        else:
            low = self.value(span)
            high = self.last if slash else low  # 5/10 goes on to the end
        if low > high:
            raise self.invalid(item)
        return range(low, high + 1, int(step or 1))


_MINUTE, _HOUR = _Field("minute", 0, 59), _Field("hour", 0, 23)
_DAY_OF_MONTH, _MONTH = _Field("day of the month", 1, 31), _Field("month", 1, 12, _MONTHS)
_DAY_OF_WEEK = _Field("day of the week", 1, 7, _WEEKDAYS, steps=False)
_YEAR = _Field("year", 1970, 2199)


@dataclass(frozen=True)
class Cron:
    """Due at minutes of the calendar."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: Days
    months: frozenset[int]
    years: frozenset[int]

    def after(self, moment: datetime) -> datetime | None:
        """The first due minute that begins after the moment."""
        earliest = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        return next((due for due in self._from(earliest.date()) if due >= earliest), None)

    def _from(self, first: date) -> Iterator[datetime]:
        for year in sorted(year for year in self.years if year >= first.year):
            for month in sorted(self.months):
                if (year, month) < (first.year, first.month):
                    continue
                for day in sorted(self.days(year, month)):
                    if date(year, month, day) < first:
                        continue
                    for hour in sorted(self.hours):
                        for minute in sorted(self.minutes):
                            yield datetime(year, month, day, hour, minute, tzinfo=UTC)


def _cron(fields: Sequence[str]) -> Cron:
    if len(fields) != 6:
        raise ScheduleInvalid(f"cron: {len(fields)} fields instead of six")
    minute, hour, day_of_month, month, day_of_week, year = fields
    if (day_of_month == "?") == (day_of_week == "?"):
        raise ScheduleInvalid("cron: one of day of the month and day of the week must be '?', and only one")
    return Cron(
        _MINUTE.values(minute),
        _HOUR.values(hour),
        _days_of_week(day_of_week) if day_of_month == "?" else _days_of_month(day_of_month),
        _MONTH.values(month),
        _YEAR.values(year),
    )


def _days_of_month(written: str) -> Days:
    if written == "L":
        return lambda year, month: frozenset({_length(year, month)})
    if found := re.fullmatch(r"([0-9]+)W", written):
        wanted = _DAY_OF_MONTH.value(found[1])
        return lambda year, month: _nearest_weekday(year, month, wanted)
    values = _DAY_OF_MONTH.values(written)
    return lambda year, month: frozenset(day for day in values if day <= _length(year, month))


def _days_of_week(written: str) -> Days:
    if found := re.fullmatch(r"(\w+)#([1-5])", written):
        weekday, number = _DAY_OF_WEEK.value(found[1]), int(found[2])
        return lambda year, month: frozenset(_on(year, month, {weekday})[number - 1 : number])
    if found := re.fullmatch(r"(\w+)L", written):
        weekday = _DAY_OF_WEEK.value(found[1])
        return lambda year, month: frozenset(_on(year, month, {weekday})[-1:])
    weekdays = frozenset({_DAY_OF_WEEK.last}) if written == "L" else _DAY_OF_WEEK.values(written)
    return lambda year, month: frozenset(_on(year, month, weekdays))


def _length(year: int, month: int) -> int:
    return monthrange(year, month)[1]


def _on(year: int, month: int, weekdays: set[int] | frozenset[int]) -> list[int]:
    """The days of a month that are one of some weekdays, of which Sunday is the first."""
    days = range(1, _length(year, month) + 1)
    return [day for day in days if date(year, month, day).isoweekday() % _WEEKDAYS_OF_ONE_WEEK + 1 in weekdays]


def _nearest_weekday(year: int, month: int, wanted: int) -> frozenset[int]:
    """The day from Monday to Friday that is nearest to a day, in the same month; none where there is no such day."""
    if wanted > _length(year, month):
        return frozenset()
    working = _on(year, month, {2, 3, 4, 5, 6})
    return frozenset({min(working, key=lambda day: abs(day - wanted))})
