"""What Word counts by itself: the numbers before items and headings, which stand nowhere in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cicada.corpus.readers.docx.xml import Element

BULLET = "-"
_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)
_MAX_COUNTED = 3_999
"""Further on letters and Roman numerals give way to digits."""
_LETTERS = 26


@dataclass(frozen=True)
class _Level:
    form: str
    label: str
    """With ``%1`` for the first level's number."""
    start: int


_UNKNOWN = _Level("bullet", "", 1)


class Numbering:
    """The lists of a document, counted on as its paragraphs come."""

    def __init__(self, part: Element | None) -> None:
        """Read ``numbering.xml``; a document without lists has none."""
        self._levels: dict[tuple[str, int], _Level] = {}
        self._lists: dict[str, str] = {}
        self._counts: dict[str, list[int]] = {}
        for element in part.children if part else []:
            if element.name == "abstractNum":
                self._read_levels(element)
            elif element.name == "num" and (held := element.value("abstractNumId")) is not None:
                self._lists[element.attributes.get("numId", "")] = held

    def next(self, number_id: str, depth: int) -> str:
        """The mark of the next paragraph of a list at a depth from 0: ``-``, or its number as Word shows it."""
        kind = self._lists.get(number_id, number_id)
        level = self._levels.get((kind, depth), _UNKNOWN)
        counts = self._counts.setdefault(kind, [])
        del counts[depth + 1 :]
        while len(counts) <= depth:
            above = self._levels.get((kind, len(counts)), _UNKNOWN)
            counts.append(above.start - (len(counts) == depth))
        counts[depth] += 1
        if level.form == "bullet":
            return BULLET
        if level.form == "none":
            return ""

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            return _shown(counts[at], self._levels.get((kind, at), level).form) if at < len(counts) else ""

        return _PLACEHOLDER.sub(shown, level.label).strip()

    def _read_levels(self, element: Element) -> None:
        kind = element.attributes.get("abstractNumId", "")
        for level in element.children:
            depth = level.attributes.get("ilvl", "")
            if level.name == "lvl" and depth.isdecimal():
                start = level.value("start") or ""
                self._levels[kind, int(depth)] = _Level(
                    level.value("numFmt") or "decimal",
                    level.value("lvlText") or "",
                    int(start) if start.isdecimal() and len(start) < 6 else 1,
                )


def _shown(count: int, form: str) -> str:
    if not 0 < count <= _MAX_COUNTED:
        return str(count)
    match form:
        case "lowerLetter" | "upperLetter":
            letters = chr(ord("a") + (count - 1) % _LETTERS) * ((count - 1) // _LETTERS + 1)
            return letters.upper() if form == "upperLetter" else letters
        case "lowerRoman" | "upperRoman":
            roman = _roman(count)
            return roman.upper() if form == "upperRoman" else roman
        case "decimalZero":
            return f"{count:02}"
        case _:
            return str(count)


def _roman(count: int) -> str:
    written = ""
    for value, letters in _ROMAN:
        times, count = divmod(count, value)
        written += letters * times
    return written
