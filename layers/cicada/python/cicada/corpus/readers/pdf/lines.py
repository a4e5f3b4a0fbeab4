"""The lines of one page, with the size of their letters and their place."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdf import PageObject

_SAME_LINE = 0.5
"""Of a letter's size: text that is shifted by less stands on the same line, such as an exponent."""
_GAP = 0.8
"""Of a letter's size: pieces of a line that are farther apart are different words."""
_LETTER_WIDTH = 0.5
"""Of a letter's size: about as wide is a letter on average."""
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_SYMBOL_BULLETS = dict.fromkeys((0xF0B7, 0xF0A7, 0xF0D8, 0xF076, 0xF02D), "\u2022")
"""Bullets of Word's symbol fonts, which have private codes."""
_SIGNS = _LIGATURES | _SYMBOL_BULLETS
_BOLD = re.compile(r"bold|black|heavy|semibold|cmbx", re.IGNORECASE)


@dataclass(frozen=True)
class Line:
    """A line of text."""

    text: str
    x: float
    """Where it begins, in points from the left."""
    y: float
    """Its base line, in points from the bottom."""
    size: float
    """Of most of its letters, in points."""
    bold: bool


@dataclass
class _Piece:
    text: str
    x: float
    y: float
    size: float
    bold: bool


def lines_of(page: PageObject) -> list[Line]:
    """The page's lines in the order in which they are drawn, which is the reading order of nearly all documents."""
    lines: list[Line] = []
    pieces: list[_Piece] = []

    def end_line() -> None:
        if line := _line(pieces):
            lines.append(line)
        pieces.clear()

    def visit(text: str, cm: Sequence[float], tm: Sequence[float], font: Any, size: float | None) -> None:
        if not text:
            return
        x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
        y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
        points = abs(size or 0.0) * math.hypot(tm[2], tm[3]) * math.hypot(cm[2], cm[3])
        bold = bool(font and _BOLD.search(str(font.get("/BaseFont", ""))))
        for number, part in enumerate(text.split("\n")):
            if number:
                end_line()
            if not part.strip():
                if part and pieces:
                    pieces[-1].text += part
                continue
            if pieces and abs(y - pieces[-1].y) > _SAME_LINE * max(points, pieces[-1].size):
                end_line()
            if pieces and _apart(pieces[-1], x, points):
                pieces[-1].text += " "
            pieces.append(_Piece(part, x, y, points, bold))

    page.extract_text(visitor_text=visit)
    end_line()
    return lines


def _apart(last: _Piece, x: float, size: float) -> bool:
    if last.text.endswith(" "):
        return False
    ends = last.x + _LETTER_WIDTH * last.size * len(last.text)
    return x - ends > _GAP * size or x < last.x


def _line(pieces: list[_Piece]) -> Line | None:
    text = " ".join("".join(piece.text for piece in pieces).split()).translate(_SIGNS)
    if not text:
        return None
    sizes: dict[float, int] = {}
    for piece in pieces:
        sizes[round(piece.size, 1)] = sizes.get(round(piece.size, 1), 0) + len(piece.text)
    size = max(sizes, key=sizes.__getitem__)
    bold = all(piece.bold for piece in pieces if piece.text.strip())
    return Line(text, pieces[0].x, pieces[0].y, size, bold)
