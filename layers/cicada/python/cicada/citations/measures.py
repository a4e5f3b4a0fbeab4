"""Measures and times of day in one form, whatever they are written in: *half an hour*, *30 minutes*; *18:00*, "
"*6 p.m.*"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from cicada.citations.number_words import NUMBER_WORDS
from cicada.citations.numbers import Quantity

_KEPT = 512
_NOON = 720
_DAY = 1440
_HOURS = 24
_HALF_DAY = 12
_FULL = 60

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

_PARTS = (
    (r"(?:half an?|(?:an? )?half)[ -](hour|minute|day|year|kilometre|kilometer|litre|liter|mile)\b", "1/2"),
    (r"(hour|day|year) and a half", "3/2"),
    (r"(?:eine[rn]?|) ?halbe[nrs]? (stunde|minute|tag|jahr|liter|kilometer)", "1/2"),
    (r"anderthalb (stunden|jahre|tage)|(heure) et demie|(hora|año) y media?", "3/2"),
    (r"demi-(heure|journée|litre)", "1/2"),
    (r"media (hora)|medio (día|año|litro)", "1/2"),
    (r"mezz'?\s?(ora)|mezza (giornata)|mezzo (litro|anno)", "1/2"),
    (r"meia (hora)|half (uur)|(полчаса)|半(時間|小时|日|年)|(半小时|半个小时)", "1/2"),
    (r"(?:quarter of an|quarter) (hour)\b|(viertelstunde)|quart d'(heure)|cuarto de (hora)|quarto d'(ora)", "1/4"),
    (r"three[- ]quarters? of an (hour)|(dreiviertelstunde)|trois quarts d'(heure)", "3/4"),
    (r"(fortnight)", "14"),
    (r"(decade|jahrzehnt|décennie|década|decennio)", "10"),
    (r"(century|jahrhundert|siècle|siglo|secolo)", "100"),
    (
        r"(?<!half )(?<!of )\b(?:an?|one|eine?[nrm]?|une?|una|uno?) "
        r"(second|minute|hour|day|week|month|year|sekunde|stunde|tag|woche|monat|jahr|heure|jour|semaine|mois|an|hora|"
        r"día|semana|mes|año|ora|giorno|settimana|mese|anno)\b",
        "1",
    ),
)  # fmt: skip
_UNIT_OF_PART = {
    word: unit
    for unit, words in {
        "hour": "hour stunde stunden heure hora ora uur полчаса 時間 小时 半小时 半个小时 viertelstunde "
        "dreiviertelstunde",
        "minute": "minute minute",
        "second": "second sekunde",
        "day": "day tag tage journée jour día giorno giornata 日 fortnight",
        "week": "week woche semaine semana settimana",
        "month": "month monat mois mes mese",
        "year": "year jahr jahre an año anno 年 decade jahrzehnt décennie década decennio century jahrhundert siècle "
        "siglo secolo",
        "litre": "litre liter litro",
        "kilometre": "kilometre kilometer",
    }.items()
    for word in words.split()
}
_COMPILED = tuple(
    (re.compile(pattern, re.IGNORECASE), Decimal(part.partition("/")[0]) / Decimal(part.partition("/")[2] or 1))
    for pattern, part in _PARTS
)
_DURATION_HINT = re.compile(
    r"half|quarter|fortnight|decade|century|halb|viertel|jahr|demi|quart|siècle|medi[ao]|cuarto|mezz|meia|полчаса|半|"
    r"\b(?:an?|one|eine?[nrm]?|une?|una|uno?) ",
    re.IGNORECASE,
)

Measure = tuple[str, Decimal]
"""A dimension, and how much of its smallest unit."""


def measure_of(quantity: Quantity) -> Measure | None:
    """A quantity in its dimension's smallest unit; None without a unit that is known."""
    scale = _SCALES.get(quantity.unit)
    if scale is None:
        return None
    try:
        return scale[0], Decimal(quantity.value) * scale[1]
    except InvalidOperation:
        return None


@lru_cache(_KEPT)
def parts_of_units(text: str) -> frozenset[Measure]:
    """Measures without a number: *half an hour*, *a fortnight*, *a week*."""
    if not _DURATION_HINT.search(text):
        return frozenset()
    found = set()
    for pattern, part in _COMPILED:
        for match in pattern.finditer(text):
            word = next((group for group in match.groups() if group), "hour").lower()
            unit = _UNIT_OF_PART.get(word)
            if unit is not None:
                dimension, factor = _SCALES[unit]
                found.add((dimension, part * factor))
    return frozenset(found)


@dataclass(frozen=True)
class Clock:
    """A time of day in a text."""

    minutes: frozenset[int]
    """After midnight; two where morning and evening are not told apart."""
    start: int
    end: int
    """In characters of the text in compatibility form."""
    shown: str
    told_exactly: bool = False
    """With words for parts of an hour, or of the day: it cannot be meant as another number."""


_HOUR_WORDS = {word: value for word, value in NUMBER_WORDS.items() if 0 < value <= _HOURS} | {
    "one": 1, "eins": 1, "une": 1, "una": 1, "l'una": 1, "onze": 11, "once": 11, "sei": 6,
    **{han: value for value, han in enumerate("一 二 三 四 五 六 七 八 九 十 十一 十二".split(), 1)}, "两": 2,
}  # fmt: skip
_WORD = "|".join(sorted((word for word in _HOUR_WORDS if (word.isalpha() and word.isascii()) or word[0] in "fühézgdw"),
                        key=len, reverse=True))  # fmt: skip
_H = rf"(?P<h>\d{{1,2}}|{_WORD})"
_MINUTE_WORD = r"(?P<part>half|quarter|five|ten|twenty-five|twenty|\d{1,2}(?= minutes| past)|[a-z]{3,6}(?= past))"
_MINUTE_WORDS = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}
_AFTERNOON = (
    r"p\.? ?m\b\.?|in the (?:afternoon|evening)|at night|abends|nachmittags|nachts|du soir|de l'après-midi|"
    r"de la (?:tarde|noche)|del pomeriggio|di sera|da tarde|da noite|'s avonds"
)
_MORNING = r"a\.? ?m\b\.?|in the morning|morgens|vormittags|früh|du matin|de la mañana|di mattina|del mattino|da manhã"
_HALF = rf"(?:\s*(?:(?P<pm>{_AFTERNOON})|(?P<am>{_MORNING})))"
_CLOCKS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:a )?{_MINUTE_WORD}(?: minutes)? (?P<way>past|after|to|before) {_H}\b(?! [a-z]+s\b){_HALF}?",
        rf"\b(?P<dehalf>halb) {_H}\b{_HALF}?",
        rf"\bviertel (?P<way>nach|vor) {_H}\b{_HALF}?",
        rf"\b(?P<h>\d{{1,2}})\s*(?:[:.h]|heures? |uhr )\s?(?P<m>[0-5]\d)(?![.,]?\d| ?%)(?: ?(?:uhr|h|"
        rf"heures?)\b)?{_HALF}?",
        rf"\b{_H}(?: heures?| ore|) (?:et|y|e) (?P<part>demie?|media|mezza|mezzo|quart|cuarto|un quarto|meia){_HALF}?",
        rf"\b{_H}(?: heures?|) (?:moins le|menos|meno un) (?P<less>quart|cuarto|quarto){_HALF}?",
        rf"\b{_H}(?: (?:o'clock|uhr|heures?|uur|ore)\b| ?h\b){_HALF}?",
        rf"\b{_H}{_HALF}",
        r"(?P<noon>\bnoon|\bmidday|\bmittags?\b|\bmidi\b|\bmediodía|\bmezzogiorno|正午|中午)",
        r"(?P<midnight>\bmidnight|\bmitternacht|\bminuit|\bmedianoche|\bmezzanotte|真夜中|午夜)",
        r"(?P<pm>午後|下午|晚上|夜)?(?P<am>午前|上午|早上|朝)?の?(?P<h>\d{1,2}|"
        r"[一二三四五六七八九十两]{1,3})[時点](?!間|间)"
        r"(?:(?P<part>半)|(?P<m>\d{1,2}|[一二三四五六七八九十]{1,3})分)?",
    )
)
_CLOCK_HINT = re.compile(
    r"\d\s?[:.h]\s?\d\d|\b(?:past|to|after|before|o'clock|uhr|halb|viertel|heures?|noon|midday|midnight|mittags?|midi|"
    r"minuit|mediod|mediano|mezzog|mezzan|y media|y cuarto|menos|mezza|quarto|morning|evening|afternoon|night|abends|"
    r"morgens|soir|matin|tarde|noche|mañana|uur|[ap]\.?\s?m)\b|[時点]|正午|中午|午夜|真夜中|\dh\b",
    re.IGNORECASE,
)


@lru_cache(_KEPT)
def clocks(text: str) -> tuple[Clock, ...]:
    """The times of day in a text that are written as such; *at nine* is a number."""
    text = unicodedata.normalize("NFKC", text)
    if not _CLOCK_HINT.search(text):
        return ()
    found: list[Clock] = []
    for pattern in _CLOCKS:
        for match in pattern.finditer(text):
            if any(match.start() < one.end and one.start < match.end() for one in found):
                continue
            minutes = _minutes(match)
            if minutes:
                group = match.groupdict()
                exactly = any(group.get(name) for name in ("part", "way", "dehalf", "less", "pm", "am"))
                found.append(Clock(frozenset(minutes), match.start(), match.end(), match[0].strip(), exactly))
    return tuple(sorted(found, key=lambda one: one.start))


def _minutes(match: re.Match[str]) -> set[int]:
    group = match.groupdict()
    if group.get("noon"):
        return {_NOON}
    if group.get("midnight"):
        return {0, _DAY}
    hour = _hour(group.get("h") or "")
    if hour is None or hour > _HOURS:
        return set()
    minute = 0
    part, way = (group.get("part") or "").lower(), (group.get("way") or "").lower()
    if group.get("m"):
        minute = _hour(group["m"]) or 0
    elif way in ("nach", "vor"):
        minute = 15
    elif part:
        known = 15 if "quart" in part or "cuart" in part else 30
        minute = int(part) if part.isdigit() else _MINUTE_WORDS.get(part, _hour(part) or known)
    if group.get("less"):
        hour, minute = hour - 1, 45
    if way in ("to", "before", "vor"):
        hour, minute = hour - 1, _FULL - minute
    if group.get("dehalf"):
        hour, minute = hour - 1, 30
    if group.get("pm"):
        return {(hour % _HALF_DAY + _HALF_DAY) * _FULL + minute}
    if group.get("am"):
        return {hour % _HALF_DAY * _FULL + minute}
    if hour > _HALF_DAY or (group.get("h") or "").startswith("0"):
        return {hour * _FULL + minute}
    return {hour * _FULL + minute, (hour + _HALF_DAY) % _HOURS * _FULL + minute}


def _hour(shown: str) -> int | None:
    if shown.isdigit():
        return int(shown)
    low = shown.lower()
    if low in _HOUR_WORDS:
        return _HOUR_WORDS[low]
    tens, _, ones = low.partition("十")
    if "十" in low:
        return (_HOUR_WORDS.get(tens, 1) if tens else 1) * 10 + (_HOUR_WORDS.get(ones, 0) if ones else 0)
    return None
