"""When a schedule is due: every expression against the calendar, minute by minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada_local.schedule_expressions import ScheduleInvalid, parse_schedule

MINUTE = timedelta(minutes=1)
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def first(expression, moment, count=1):
    """The next times that it is due, as text."""
    found = []
    for _ in range(count):
        moment = parse_schedule(expression).after(moment)
        found.append(moment and moment.strftime("%Y-%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("expression", "period"),
    [
        ("rate(1 minute)", timedelta(minutes=1)),
        ("rate(5 minutes)", timedelta(minutes=5)),
        ("rate(1 hour)", timedelta(hours=1)),
        ("rate(36 hours)", timedelta(hours=36)),
        ("rate(7 days)", timedelta(days=7)),
    ],
)
def test_a_rate_is_due_one_period_later(expression, period):
    moment = at("2026-02-27T13:14:15.5")
    assert parse_schedule(expression).after(moment) == moment + period


@pytest.mark.parametrize(
    "expression",
    [
        "rate(0 minutes)",
        "rate(1 minutes)",
        "rate(2 minute)",
        "rate(1.5 hours)",
        "rate(-1 hour)",
        "rate(1 week)",
        "rate(1  hour)",
        "rate(1 Hour)",
        "rate( 1 hour )",
        "Rate(1 hour)",
        "rate(1 hour) ",
        "rate(٣ hours)",
        "at(2026-01-01T00:00:00)",
        "cron(* * * * *)",
        "cron(0 0 * * ? * *)",
        "cron(0 0 * * * *)",
        "cron(0 0 ? * ? *)",
        "cron(60 0 * * ? *)",
        "cron(0 24 * * ? *)",
        "cron(0 0 0 * ? *)",
        "cron(0 0 32 * ? *)",
        "cron(0 0 * 13 ? *)",
        "cron(0 0 ? * 8 *)",
        "cron(0 0 ? * 0 *)",
        "cron(0 0 * * ? 1969)",
        "cron(0 0 * * ? 2200)",
        "cron(? 0 * * ? *)",
        "cron(0 0 ? * MON#6 *)",
        "cron(0 0 ? * 3#1,6#3 *)",
        "cron(0 0 ? * 2/2 *)",
        "cron(0 0 ? * FRI-MON *)",
        "cron(0 0 LW * ? *)",
        "cron(0 0 0W * ? *)",
        "cron(0 0 1,L * ? *)",
        "cron(0,, 0 * * ? *)",
        "cron(5-1 0 * * ? *)",
        "cron(0/0 0 * * ? *)",
        "cron(/5 0 * * ? *)",
        "cron(0-5/ 0 * * ? *)",
        "cron(-5 0 * * ? *)",
        "cron(0 0 * JANUARY ? *)",
        "cron()",
        "cron",
        "",
        "1 hour",
    ],
)
def test_what_eventbridge_refuses_is_refused(expression):
    with pytest.raises(ScheduleInvalid):
        parse_schedule(expression)


@pytest.mark.parametrize(
    ("expression", "due"),
    [  # the examples of the user guide, and days that not every month has
        ("cron(0 10 * * ? *)", ["2026-01-30 10:00", "2026-01-31 10:00", "2026-02-01 10:00"]),
        ("cron(15 12 * * ? *)", ["2026-01-30 12:15", "2026-01-31 12:15", "2026-02-01 12:15"]),
        ("cron(0 18 ? * MON-FRI *)", ["2026-01-30 18:00", "2026-02-02 18:00", "2026-02-03 18:00"]),
        ("cron(0 8 1 * ? *)", ["2026-02-01 08:00", "2026-03-01 08:00", "2026-04-01 08:00"]),
        ("cron(0/15 * * * ? *)", ["2026-01-30 09:45", "2026-01-30 10:00", "2026-01-30 10:15"]),
        ("cron(0/5 8-17 ? * MON-FRI *)", ["2026-01-30 09:35", "2026-01-30 09:40", "2026-01-30 09:45"]),
        ("cron(15 10 ? * 6L 2026-2028)", ["2026-01-30 10:15", "2026-02-27 10:15", "2026-03-27 10:15"]),
        ("cron(0 9 ? * 2#1 *)", ["2026-02-02 09:00", "2026-03-02 09:00", "2026-04-06 09:00"]),
        ("cron(0 0 ? * tue#5 *)", ["2026-03-31 00:00", "2026-06-30 00:00", "2026-09-29 00:00"]),
        ("cron(0 0 L * ? *)", ["2026-01-31 00:00", "2026-02-28 00:00", "2026-03-31 00:00"]),
        ("cron(0 0 ? * L *)", ["2026-01-31 00:00", "2026-02-07 00:00", "2026-02-14 00:00"]),
        ("cron(0 0 31 * ? *)", ["2026-01-31 00:00", "2026-03-31 00:00", "2026-05-31 00:00"]),
        ("cron(0 0 29 FEB ? *)", ["2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"]),
        ("cron(0 0 1W * ? *)", ["2026-02-02 00:00", "2026-03-02 00:00", "2026-04-01 00:00"]),
        ("cron(0 0 31W * ? *)", ["2026-03-31 00:00", "2026-05-29 00:00", "2026-07-31 00:00"]),
        ("cron(0 0 1 1 ? 2027,2030)", ["2027-01-01 00:00", "2030-01-01 00:00", None]),
        ("cron(30 9 30 1 ? 2026)", [None]),
        ("cron(0 0 30 2 ? *)", [None]),
    ],
)
def test_a_cron_expression_is_due_by_the_calendar(expression, due):
    assert first(expression, at("2026-01-30T09:30:59"), len([x for x in due if x]) + (None in due)) == due


class Field(NamedTuple):
    text: str
    values: frozenset[int]


@st.composite
def items(draw, low, high, names=(), steps=True):
    """One item of a field, as it is written, and the values that it means."""

    def written(value):
        return draw(st.sampled_from([str(value), names[value - low]])) if names else str(value)

    begin = draw(st.integers(low, high))
    end = draw(st.integers(begin, high))
    step = draw(st.integers(1, high + 1)) if steps and draw(st.booleans()) else None
    match draw(st.sampled_from(["every", "one", "range"])):
        case "every":
            text, last, begin = "*", high, low
        case "one":  # with a step it goes on to the end
            text, last = written(begin), begin if step is None else high
        case "range":
            text, last = f"{written(begin)}-{written(end)}", end
    return Field(text if step is None else f"{text}/{step}", frozenset(range(begin, last + 1, step or 1)))


@st.composite
def fields(draw, low, high, names=(), steps=True):
    parts = draw(st.lists(items(low, high, names, steps), min_size=1, max_size=3))
    return Field(",".join(part.text for part in parts), frozenset().union(*(part.values for part in parts)))


@st.composite
def crons(draw):
    """An expression, and whether it is due in a minute."""
    minute, hour, month = draw(fields(0, 59)), draw(fields(0, 23)), draw(fields(1, 12, MONTHS))
    any_year = Field("*", frozenset(range(1970, 2200)))
    year = draw(st.just(any_year) | st.integers(2025, 2030).map(lambda one: Field(str(one), frozenset({one}))))
    if draw(st.booleans()):
        day, weekday = draw(fields(1, 31)), Field("?", frozenset(range(1, 8)))
    else:
        day, weekday = Field("?", frozenset(range(1, 32))), draw(fields(1, 7, WEEKDAYS, steps=False))

    def due(moment):
        return (
            moment.minute in minute.values
            and moment.hour in hour.values
            and moment.day in day.values
            and moment.month in month.values
            and moment.isoweekday() % 7 + 1 in weekday.values
            and moment.year in year.values
        )

    return f"cron({minute.text} {hour.text} {day.text} {month.text} {weekday.text} {year.text})", due


MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2029, 1, 1), timezones=st.just(UTC))


@settings(max_examples=150)
@given(crons(), MOMENTS)
def test_a_cron_expression_is_due_at_the_first_minute_that_fits(cron, moment):
    expression, due = cron
    begin = moment.replace(second=0, microsecond=0) + MINUTE
    last = begin + (2 * 24 * 60 - 1) * MINUTE
    by_hand = next(filter(due, (begin + number * MINUTE for number in range(2 * 24 * 60))), None)
    found = parse_schedule(expression).after(moment)
    if by_hand is None:
        assert found is None or (found > last and due(found))
    else:
        assert found == by_hand


@settings(max_examples=50)
@given(st.integers(1, 31), MOMENTS)
def test_the_nearest_weekday_is_a_day_from_monday_to_friday_next_to_the_day_in_its_month(day, moment):
    found = parse_schedule(f"cron(0 0 {day}W * ? *)").after(moment)
    assert found is not None
    assert found.isoweekday() <= 5
    assert abs(found.day - day) <= (2 if day == 1 or found.month != (found + timedelta(days=3)).month else 1)
