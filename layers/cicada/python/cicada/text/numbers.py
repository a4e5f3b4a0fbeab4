"""Read the numbers of a text: digits, words, percentages, amounts and times of day, each with its unit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from cicada.text.characters import compared, compatible, raised_apart
from cicada.text.word_lists import word_lists

_LISTS = word_lists("cicada.text", "number_words.json")


def _table(name: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in _LISTS[name])


NUMBER_WORDS = {word: int(value) for word, value in _table("numbers").items()}
"""By lower-case word, without words that are not numbers in other languages (*sei*, *once*)."""
DOUBTFUL_WORDS = {word: int(value) for word, value in _table("doubtful").items()}  # what such words can stand for
MULTIPLIERS = {word: Decimal(value) for word, value in _table("multipliers").items()}
UNITS = _table("units")  # by word in lower case: the unit's canonical name
CURRENCIES = _table("currencies")
TIMES = {sign: unit.replace("-", "") for sign, unit in _table("unspaced_units").items()}
COUNTERS = frozenset("".join(_LISTS["counters"]))
"""Characters after a number that counts things, and not days or hours."""

_FRACTION = re.compile("(?<![0-9])([0-9]{0,12})([\u00bc-\u00be\u2150-\u215e])")  # of one character: 1½ is 1.5, not 11⁄2
_DIGIT_RUN = re.compile(r"\d+")
_KEPT = 512  # texts whose reading is remembered
_MAX_DIGITS = 18
_TEN, _TWENTY = 10, 20
_DIGITS = r"\d{1,3}(?:[,.\u00a0\u202f '’]\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,:]\d+)*"
_HYPHENATED = rf"(?i:\b(?:{'|'.join(sorted(filter(lambda word: '-' in word, NUMBER_WORDS), reverse=True))})\b)"
"""Number words of several parts: *soixante-dix*."""
_TOKEN = re.compile(
    rf"(?P<digits>{_DIGITS})|(?P<han>[〇零一二三四五六七八九十百千万億两兩]+)|(?P<word>{_HYPHENATED}|"
    rf"[^\W\d_〇零一二三四五六七八九十百千万億两兩]+)|(?P<sign>[%°$€£¥₩₽])"
)
_ORDINAL_ENDING = _LISTS["ordinal_endings"]
_HAN = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_HAN_MYRIADS = {"万": 10_000, "億": 100_000_000}
_THOUSANDS = re.compile(r"\d{1,3}([,.\u00a0\u202f '’])\d{3}(?:\1\d{3})*(?:[.,]\d{1,2})?")
_PLAIN_DECIMAL = re.compile(r"\d+(?:\.\d+)?")
_CLOCK = re.compile(r"0*(\d{1,2}):(\d{2})(?::\d{2})?")
_ALONE = _LISTS["multipliers_alone"]  # multipliers that are numbers without one before them
_AND = _LISTS["joining"]
_ONES = _LISTS["ones_after_joining"]
_UNIT_REACH = 2  # words after a number among which its unit is looked for
_NO_ADJECTIVES = _LISTS["no_adjectives"]
"""Words that separate a number from a later unit: *three every day*."""

_SCALES = {
    unit: (dimension, Decimal(factor))
    for dimension, units in {
        "time": "second:1 minute:60 hour:3600 day:86400 week:604800",
        "long time": "month:1 year:12",
        "mass": "gram:1 kilogram:1000 tonne:1000000",
        "length": "millimetre:1 centimetre:10 metre:1000 kilometre:1000000",
        "volume": "millilitre:1 litre:1000",
        "power": "watt:1 kilowatt:1000",
    }.items()
    for unit, factor in (pair.split(":") for pair in units.split())
}


@dataclass(frozen=True)
class Quantity:
    """A number in canonical form."""

    value: str
    unit: str  # canonical; empty where none is known
    shown: str  # as the text has it
    start: int
    end: int  # of the number alone, in characters of the text in compatibility form (NFKC)

    @property
    def measure(self) -> tuple[str, Decimal]:
        """Its dimension and its value in that dimension's smallest unit: an hour is 60 minutes.

        The unit stands in for an unknown dimension, and a value that is not a decimal (a time, a version) for its own.
        """
        try:
            value = Decimal(self.value)
        except InvalidOperation:
            return self.value, Decimal(0)
        dimension, factor = _SCALES.get(self.unit, (self.unit, Decimal(1)))
        return dimension, value * factor


@lru_cache(_KEPT)
def quantities(text: str, *, doubtful: bool = False) -> tuple[Quantity, ...]:
    """The numbers of a text in any language, in order; ``doubtful``: with words that are often not numbers (*one*,
    *sei*, *once*)."""
    apart = _FRACTION.sub(_decimal_of, raised_apart(text))
    return tuple(_found(compatible(apart), DOUBTFUL_WORDS if doubtful else {}))


def digits_in(text: str) -> list[str]:
    """The runs of digits of a text, in order: ``10²`` has two, ``1,500`` has two, and ``１２`` is 12."""
    return _DIGIT_RUN.findall(compared(text))


def _decimal_of(fraction: re.Match[str]) -> str:
    decimal = format(int(fraction[1] or 0) + Decimal(str(round(unicodedata.numeric(fraction[2]), 4))), "f")
    return f"{decimal}0" if _THOUSANDS.fullmatch(decimal) else decimal


def _found(text: str, doubtful: Mapping[str, int]) -> Iterator[Quantity]:
    tokens = list(_TOKEN.finditer(text))
    at = 0
    while at < len(tokens):
        value, used = _value(tokens, at, doubtful)
        if value is None:
            at += 1
            continue
        unit, with_unit = _unit(tokens, at, at + used)
        start, end = tokens[at].start(), tokens[at + used - 1].end()
        yield Quantity(value, unit, text[start : max(end, tokens[with_unit - 1].end())].strip(), start, end)
        at += used


def _value(tokens: list[re.Match[str]], at: int, doubtful: Mapping[str, int]) -> tuple[str | None, int]:
    """The number that begins at a token, and how many tokens it takes."""
    token = tokens[at]
    if token["digits"]:
        return _of_digits(tokens, at)
    if token["han"]:
        return (None if token["han"] == "一" and not doubtful else str(_han(token["han"]))), 1
    word = _word(tokens, at)
    if word in NUMBER_WORDS or word in MULTIPLIERS or word in doubtful:
        return _spelled(tokens, at, doubtful)
    return None, 1


def _of_digits(tokens: list[re.Match[str]], at: int) -> tuple[str, int]:
    """*7:10*, *1,500*, *3 million*, *2nd*."""
    digits = tokens[at]["digits"]
    if clock := _CLOCK.fullmatch(digits):
        return f"{int(clock[1])}:{clock[2]}", 1
    number = _decimal(digits)
    if number is None:
        return digits, 1
    following = _word(tokens, at + 1)
    adjoined = bool(following) and tokens[at + 1].start() == tokens[at].end()
    if following in MULTIPLIERS and (len(following) > 2 or adjoined):
        return _shown(number * MULTIPLIERS[following]), 2
    return _shown(number), 2 if following in _ORDINAL_ENDING and adjoined else 1


def _spelled(tokens: list[re.Match[str]], at: int, doubtful: Mapping[str, int]) -> tuple[str | None, int]:
    """*Twenty-five thousand*; a lone *one* is more often a pronoun than a number."""
    total = current = Decimal(0)
    used, last = 0, 0
    while word := _word(tokens, at + used):
        value = NUMBER_WORDS.get(word, doubtful.get(word))
        if value is not None and (used == 0 or (last >= _TWENTY and value < last) or last == -1):
            current += value
            last = value
        elif word in MULTIPLIERS and len(word) > 2 and (used or word in _ALONE):
            scale = MULTIPLIERS[word]
            current = (current or 1) * scale
            if scale >= 1000:
                total, current = total + current, Decimal(0)
            last = -1  # any number may follow a multiplier
        elif not (word in _AND and last >= _TWENTY and _follows(tokens, at + used + 1)):
            break
        used += 1
    if not used:
        return None, 1
    return (None if total + current == 1 and not doubtful else _shown(total + current)), used


def _word(tokens: list[re.Match[str]], at: int) -> str:
    """The word at a token, in lower case; empty for another token, and past the end."""
    return (tokens[at]["word"] or "").lower() if at < len(tokens) else ""


def _follows(tokens: list[re.Match[str]], at: int) -> bool:
    """Whether a number below ten is at a token: *treinta y dos*."""
    word = _word(tokens, at)
    return 0 < NUMBER_WORDS.get(word, 1 if word in _ONES else 0) < _TEN


def _unit(tokens: list[re.Match[str]], at: int, after: int) -> tuple[str, int]:
    """The unit around a number, and the index after its last token."""
    if at and tokens[at - 1]["sign"] in CURRENCIES:
        return CURRENCIES[tokens[at - 1]["sign"]], after
    if found := _written_unit(tokens, after):
        return found
    following = _word(tokens, after)[:1]
    return TIMES.get(following, "count" if following in COUNTERS else ""), after


def _written_unit(tokens: list[re.Match[str]], after: int) -> tuple[str, int] | None:
    for place in range(after, min(after + _UNIT_REACH, len(tokens))):
        token = tokens[place]
        if token["digits"] or token["han"] or (token["sign"] and _precedes_number(tokens, place)):
            return None
        word, following = (token["word"] or token["sign"]).lower(), _word(tokens, place + 1)
        if word == "per" and following == "cent":
            return "%", place + 2
        if word == "°":
            word += following
        if word in UNITS and (place == after or len(word) > 2):
            return UNITS[word], place + 1
        if word in _NO_ADJECTIVES or word in NUMBER_WORDS:
            return None
    return None


def _precedes_number(tokens: list[re.Match[str]], at: int) -> bool:
    """Whether a sign stands right before a number, and so is its unit: *213. $6*."""
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    return following is not None and bool(following["digits"]) and following.start() == tokens[at].end()


def _decimal(digits: str) -> Decimal | None:
    """The value of digits with either custom of separators; None for any other (``1.2.3``, ``030 123 456``)."""
    if len(digits) > _MAX_DIGITS:
        return None
    grouped = _THOUSANDS.fullmatch(digits)
    plain = digits.replace(grouped[1], "") if grouped and not digits.startswith("0") else digits
    plain = plain.replace(",", ".")
    return Decimal(plain) if _PLAIN_DECIMAL.fullmatch(plain) else None


def _shown(value: Decimal) -> str:
    return format(value.normalize(), "f")


def _han(run: str) -> int:
    """The value of a run of Chinese numerals: by place (``一九六二``) or with units (``二百十三``)."""
    if all(sign in _HAN for sign in run):
        return int("".join(str(_HAN[sign]) for sign in run))
    total = section = digit = 0
    for sign in run:
        if sign in _HAN:
            digit = _HAN[sign]
        elif sign in _HAN_UNITS:
            section += (digit or 1) * _HAN_UNITS[sign]
            digit = 0
        else:
            total += (section + digit or 1) * _HAN_MYRIADS[sign]
            section = digit = 0
    return total + section + digit
