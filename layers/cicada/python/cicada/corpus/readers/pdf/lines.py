"""The lines of a PDF's pages, without running heads and page numbers.

Content may also repeat on many pages, such as certificates or totals of tables. So a line is dropped only if it is at
the edge, apart from the text, and equal on most pages, or differing only by a number that counts up with them; a number
alone even if it is not apart.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdf import PageObject

_SAME_LINE = 0.5  # of the font size: a smaller shift, as of an exponent, stays on the line
_GAP = 0.8  # of the font size: a wider gap separates words
_LETTER_WIDTH = 0.5  # of the font size: the average width of a letter
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_SYMBOL_BULLETS = dict.fromkeys((0xF0B7, 0xF0A7, 0xF0D8, 0xF076, 0xF02D), "\u2022")
"""Bullets in the private codes of Word's symbol fonts."""
_SIGNS = _LIGATURES | _SYMBOL_BULLETS
_BOLD = re.compile(r"bold|black|heavy|semibold|cmbx", re.IGNORECASE)


@dataclass(frozen=True)
class TextLine:
    """A line of text."""

    text: str
    x: float  # of its start, in points from the left
    y: float  # of its baseline, in points from the bottom
    size: float  # of most of its letters, in points
    bold: bool


@dataclass
class _Piece:
    text: str
    x: float
    y: float
    size: float
    bold: bool


def lines_of(page: PageObject) -> list[TextLine]:
    """The page's lines as drawn, which is the reading order of nearly all documents."""
    lines: list[TextLine] = []
    pieces: list[_Piece] = []

    def end_line() -> None:
        if line := _line(pieces):
            lines.append(line)
        pieces.clear()

    def visit(text: str, cm: Sequence[float], tm: Sequence[float], font: Any, size: float | None) -> None:
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


def _line(pieces: list[_Piece]) -> TextLine | None:
    text = " ".join("".join(piece.text for piece in pieces).split()).translate(_SIGNS)
    if not text:
        return None
    sizes: Counter[float] = Counter()
    for piece in pieces:
        sizes[round(piece.size, 1)] += len(piece.text)
    size = max(sizes, key=sizes.__getitem__)
    bold = all(piece.bold for piece in pieces if piece.text.strip())
    return TextLine(text, pieces[0].x, pieces[0].y, size, bold)


_EDGE_ROWS = 2  # rows at a page's top and bottom that may be running heads
_SHARE = 0.6  # of all pages: the least that a running head is on
_PAGES = 3  # the least that a running head is on; page numbers need as many in a row
_SAME_HEIGHT = 0.3  # of the font size: lines of one row, or at one height on several pages
_APART = 2.0  # times the usual font size: the least distance of a running head from the text
_WIDER = 1.3  # times the usual row distance: likewise
_WIDEST = 2.5  # times the usual font size: the greatest row distance taken as usual
_FURTHEST = 50  # from the page's number: a number in words that is further away, as of a certificate, is content
_NUMBER = re.compile(r"(?<![\d.,])\d{1,4}(?![\d.,])")
_LONE_NUMBER = re.compile(
    r"(?:page\s+|seite\s+|[-–—]\s*)?\d{1,4}(?:\s*(?:/|of|von)\s*\d{1,4})?(?:\s*[-–—])?", re.IGNORECASE
)

_Row = Sequence[TextLine]
_Key = tuple[str, str, int]  # text before and after a number, and its difference to the page's number
_Counted = tuple[int, TextLine]  # a page, and a line with a number


def without_running(pages: Sequence[Sequence[TextLine]]) -> list[list[TextLine]]:
    """The pages' lines without running heads and page numbers, unless a page has nothing else."""
    rows = [_rows(page) for page in pages]
    size = _usual_size(pages)
    apart = _rows_apart(rows, size)
    edges = [(_edge(page, apart), _edge(page[::-1], apart)) for page in rows]
    heads = [[line for edge in page for row in edge for line in row] for page in edges]
    counts = Counter(text for page in heads for text in {line.text for line in page})
    same = {text for text, count in counts.items() if count >= max(_PAGES, _SHARE * len(pages))}
    dropped = {id(line) for page in heads for line in page if line.text in same}
    counting: defaultdict[_Key, list[_Counted]] = defaultdict(list)
    for number, (page, edge) in enumerate(zip(rows, edges, strict=True), start=1):
        for line in _may_count(page, edge, same, size):
            for key in _keys(line.text, number):
                counting[key].append((number, line))
    for found in counting.values():
        dropped.update(id(line) for _, line in _page_numbers(found, len(pages)))
    return [[line for line in page if id(line) not in dropped] or list(page) for page in pages]


def _keys(text: str, page: int) -> Iterator[_Key]:
    """A key for each number of a line that may be the page's."""
    lone = _LONE_NUMBER.fullmatch(text)
    for digits in _NUMBER.finditer(text):
        further = int(digits[0]) - page
        if lone or abs(further) <= _FURTHEST:
            yield text[: digits.start()], text[digits.end() :], further


def _rows(page: Sequence[TextLine]) -> list[_Row]:
    """A page's lines grouped by height, from the top."""
    rows: list[list[TextLine]] = []
    for line in sorted(page, key=lambda line: -line.y):
        if not rows or rows[-1][0].y - line.y > _SAME_HEIGHT * line.size:
            rows.append([])
        rows[-1].append(line)
    return list(rows)


def _usual_size(pages: Sequence[Sequence[TextLine]]) -> float:
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[line.size] += len(line.text)
    return max(sizes, key=sizes.__getitem__, default=0.0)


def _rows_apart(pages: Sequence[Sequence[_Row]], size: float) -> float:
    """The least distance of a running head from the text, in points."""
    distances = [above[0].y - below[0].y for page in pages for above, below in pairwise(page)]
    usual = min(median(distances), _WIDEST * size) if distances else 0.0
    return max(_APART * size, _WIDER * usual)


def _edge(inwards: Sequence[_Row], apart: float) -> list[_Row]:
    """The outermost rows, if they are few and apart from the others."""
    for count, (outer, inner) in enumerate(pairwise(inwards[: _EDGE_ROWS + 1]), start=1):
        if abs(outer[0].y - inner[0].y) > apart:
            return list(inwards[:count])
    return []


def _may_count(
    page: Sequence[_Row], edges: Sequence[Sequence[_Row]], same: set[str], size: float
) -> Iterator[TextLine]:
    """The lines of a page that may be its number: alone, apart from lines equal on all pages."""
    for edge in edges:
        own = [line for row in edge for line in _others(row, same)]
        if len(own) == 1 and own[0].size <= size and not _LONE_NUMBER.fullmatch(own[0].text):
            yield own[0]
    rest = [own for row in page if (own := _others(row, same))]
    for row in (rest[0], rest[-1]) if len(rest) > 1 else ():
        if len(row) == 1 and _LONE_NUMBER.fullmatch(row[0].text):
            yield row[0]


def _others(row: _Row, same: set[str]) -> list[TextLine]:
    return [line for line in row if line.text not in same]


def _page_numbers(found: Sequence[_Counted], pages: int) -> list[_Counted]:
    """The lines with numbers that are at one height on enough pages, if any."""
    height = median(line.y for _, line in found)
    level = [(page, line) for page, line in found if abs(line.y - height) <= _SAME_HEIGHT * line.size]
    on = {page for page, _ in level}
    if not any(all(page + further in on for further in range(_PAGES)) for page in on):
        return []
    lone = all(_LONE_NUMBER.fullmatch(line.text) for _, line in level)
    return level if lone or len(on) >= _SHARE * pages else []
