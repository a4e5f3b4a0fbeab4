"""Whether passages have the numbers, times and measures of a claim, in whatever form, or the terms of a simple sum."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import combinations

from cicada.citations.codes import Objection
from cicada.citations.known import Known
from cicada.citations.measures import Clock, clocks, measure_of, parts_of_units
from cicada.citations.numbers import Quantity

MAX_APART = 160
"""Characters between two numbers of a passage that may be added or subtracted."""
MAX_YEARS_APART = 400
"""The same, between two years."""
_YEARS = (1000, 2100)
_ROUGHLY, _ROUNDED = Decimal("0.1"), Decimal("0.3")
_SUMMING = re.compile(
    r"\b(?:total|totals|totalling|altogether|in all|sum|together|combined|both|add(?:s|ed)? up|overall|more|less|fewer|"
    r"longer|shorter|later|earlier|older|younger|higher|lower|taller|warmer|colder|heavier|cheaper|dearer|between|"
    r"difference|remain(?:s|ed|ing)?|left|rose by|fell by|increased by|grew by|dropped by|after|year before|"
    r"year after|previous year|following year|insgesamt|zusammen|mehr|weniger|später|früher|länger|übrig|"
    r"vorjahr|gesamt\w*|"
    r"unterschied|höher|älter|au total|en tout|ensemble|de plus|de moins|plus tard|plus|moins|différence|"
    r"en total|juntos|"
    r"suman?|más|menos|después|antes|diferencia|anterior|siguiente|in totale|complessivamente|insieme|più|meno|dopo|"
    r"differenza|precedente|in totaal|samen|meer|minder)\b|合計|全部|合わせて|計|より|差|一共|总共|共|比|多|少|"
    r"高|低|後|后|前|あれば",
    re.IGNORECASE,
)
"""Words of a claim that was calculated."""
_LATER = re.compile(
    r"\b(?:later|after|before|earlier|following|next|previous|ago|for|lasted|später|danach|darauf|zuvor|früher|"
    r"vorher|nach|"
    r"lang|plus tard|après|auparavant|avant|pendant|más tarde|después|antes|durante|dopo|prima|più tardi|per|later|na|"
    r"eerder)\b|後|后|前|間|间",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"\b(?:about|around|roughly|approximately|some|nearly|almost|just|close to|etwa|ungefähr|rund|fast|knapp|"
    r"gut|circa|ca|"
    r"environ|près de|presque|quelque|unos|unas|casi|alrededor de|aproximadamente|quasi|ongeveer|"
    r"bijna)\b[\s.]*(?:an?|the|"
    r"another|de|für)?\s*$|(?:約|およそ|大约|约|近)$",
    re.IGNORECASE,
)
_BEYOND = re.compile(
    r"(?:\b(?:more than|over|above|at least|exceed(?:s|ed|ing)?|mehr als|über|mindestens|plus de|más de|più di|"
    r"oltre|meer dan)"
    r"\b|超过|以上)\s*$",
    re.IGNORECASE,
)
_SHORT_OF = re.compile(
    r"(?:\b(?:less than|fewer than|under|below|at most|up to|no more than|weniger als|unter|höchstens|moins de|"
    r"menos de|"
    r"meno di|minder dan)\b|不到|不足)\s*$",
    re.IGNORECASE,
)


_THE_TWO = re.compile(
    r"\b(?:the|these|both|die|den|der|les|ces|los|las|estos|estas|i|le|gli|de)\s+\w+$|\b(?:beide\w*|both)$",
    re.IGNORECASE,
)
"""Two that were named before: they need not be counted in the passage."""


def missing_amount(told: str, quantities: Sequence[Quantity], cited: Sequence[Known]) -> Objection | None:
    """What a claim counts, measures or times that no passage has; None for nothing.

    Args:
        told: the claim, without its quotations.
        quantities: its numbers.
        cited: the passages that it may draw from.
    """
    for time in clocks(told):
        if time.told_exactly and not _has_clock(time, cited) and any(other.clocks for other in cited):
            return Objection("number_missing", f"the passage does not mention {time.shown}")
    for quantity in quantities:
        if not has_amount(quantity, told, cited):
            there = _units(quantity, cited)
            shown = f"the passage does not mention {quantity.shown}"
            return Objection("number_missing", f"{shown}: it has {', '.join(sorted(there))}" if there else shown)
    return None


def has_amount(quantity: Quantity, told: str, cited: Sequence[Known]) -> bool:
    """Whether a passage has a number of ``told``, a claim without its quotations: in any form, or as a simple sum."""
    there = _units(quantity, cited)
    if there and (not quantity.unit or quantity.unit in there or ("" in there and not _rivals(quantity.unit, there))):
        return True
    return (
        any(time.start <= quantity.start < time.end and _has_clock(time, cited) for time in clocks(told))
        or _is_measured(quantity, cited)
        or _is_rounded(quantity, told, cited)
        or (quantity.value == "2" and _THE_TWO.search(told[: quantity.end]) is not None)
        or any(_is_computed(quantity, told, other) for other in cited)
    )


def _units(quantity: Quantity, cited: Sequence[Known]) -> frozenset[str]:
    """What the passages count with the same number; empty where none has it, and with "" for no unit."""
    return frozenset().union(*(other.numbers.get(quantity.value, ()) for other in cited))


_KINDS = tuple(
    frozenset(kind.split())
    for kind in (
        "metre centimetre millimetre kilometre mile foot inch",
        "gram kilogram tonne pound",
        "litre millilitre",
        "celsius fahrenheit",
        "dollar euro pound yen won ruble yuan",
        "byte kilobyte megabyte gigabyte",
        "bar psi",
    )
)


def _rivals(unit: str, there: frozenset[str]) -> bool:
    """Whether the passage gives a number in another unit of the same kind."""
    return any(unit in kind and kind & there for kind in _KINDS)


def _has_clock(time: Clock, cited: Sequence[Known]) -> bool:
    if any(time.minutes & one.minutes for other in cited for one in other.clocks):
        return True
    hours = {str(minute // 60) for minute in time.minutes if minute % 60 == 0}
    hours |= {f"{minute // 60}:{minute % 60:02}" for minute in time.minutes}
    return any(hour in other.numbers for other in cited for hour in hours)


def _is_measured(quantity: Quantity, cited: Sequence[Known]) -> bool:
    measure = measure_of(quantity)
    if measure is None:
        return False
    return any(measure == measure_of(one) for other in cited for one in other.quantities) or any(
        measure in parts_of_units(other.whole) for other in cited
    )


def _is_rounded(quantity: Quantity, told: str, cited: Sequence[Known]) -> bool:
    """*About*, *more than* or *fewer than* a number that is near one of the passage's."""
    value, before = _decimal(quantity.value), told[max(0, quantity.start - 24) : quantity.start]
    if value is None or value == 0:
        return False
    low, high = value, value
    if _ABOUT.search(before):
        low, high = value * (1 - _ROUGHLY), value * (1 + _ROUGHLY)
    elif _BEYOND.search(before):
        high = value * (1 + _ROUNDED)
    elif _SHORT_OF.search(before):
        low = value * (1 - _ROUNDED)
    else:
        return False
    for other in cited:
        for one in other.quantities:
            there = _decimal(one.value)
            if there is not None and low <= there <= high and _agree(one.unit, quantity.unit):
                return True
        if low != high and any(low <= number <= high for number in _spans_of_years(other)):
            return True
    return False


def _spans_of_years(known: Known) -> Iterator[Decimal]:
    years = [value for one in known.quantities if (value := _decimal(one.value)) is not None and _is_year(value)]
    for one, other in combinations(years, 2):
        yield abs(other - one)


def _is_computed(quantity: Quantity, told: str, known: Known) -> bool:
    """Whether two numbers that stand near each other add up to a claim's number, or differ by it."""
    value = _decimal(quantity.value)
    if value is None:
        return False
    sums = _SUMMING.search(told) is not None
    numbers = [(one, number) for one in known.quantities if (number := _decimal(one.value)) is not None]
    for (one, first), (other, second) in combinations(numbers, 2):
        apart = other.start - one.end
        if _is_year(first) and _is_year(second):
            if abs(second - first) == value and quantity.unit in ("", "year") and apart <= MAX_YEARS_APART:
                return True
        elif apart > MAX_APART:
            continue
        elif _is_year(value) and (_is_year(first) or _is_year(second)):
            span, unit = (second, other.unit) if _is_year(first) else (first, one.unit)
            nearby = known.whole[max(0, one.start - 30) : other.end + 30]
            if unit == "year" and abs(value - (first + second - span)) == span and _LATER.search(nearby):
                return True
        elif (
            sums
            and _agree(one.unit, other.unit)
            and _agree(one.unit or other.unit, quantity.unit)
            and value in (first + second, abs(first - second))
        ):
            return True
    return False


def _agree(one: str, other: str) -> bool:
    return not one or not other or one == other


def _is_year(value: Decimal) -> bool:
    return _YEARS[0] <= value <= _YEARS[1] and value == value.to_integral_value()


def _decimal(value: str) -> Decimal | None:
    try:
        return Decimal(value)
    except InvalidOperation:
        return None
