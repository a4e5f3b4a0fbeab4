"""Group the lines of all pages into headings, paragraphs and items of lists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cicada.corpus.readers.blocks import Blocks
from cicada.corpus.readers.pdf.lines import TextLine, without_running

_LARGER = 1.12  # times the text's size: the least size of a heading
_MAX_HEADING_CHARS = 200
_MAX_BOLD_CHARS = 100
_CLOSEST = 0.8  # of the font size: the least distance of lines in a column
_GAP = 1.3  # times the usual line distance: a paragraph begins
_INDENT = 0.8  # of the font size: the indent of a paragraph's first line
_SAME_SIZE = 0.08
_SAME_LINE = 0.3  # of the font size: separate pieces at one height
_ITEM = re.compile(r"(?:[•‣◦●▪■–—*-]|\(?\d{1,2}[.)]|\(?[a-z]\))\s+\S")
_SENTENCE_END = re.compile(r"[.!?:;…][\"'”’»)\]]*$")
_HYPHENATED = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_NUMBER_BEFORE = re.compile(r"^(?:chapter\s+|§\s*)?(?:\d+|[ivxlc]+|[a-z])(?:\.\d+)*[.):]?\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Bookmark:
    """An entry of the document's outline; pages and levels count from 1."""

    title: str
    level: int
    page: int


def add_pages(blocks: Blocks, pages: Sequence[Sequence[TextLine]], bookmarks: Sequence[Bookmark]) -> bool:
    """Add the blocks of all pages, without running heads and page numbers; returns whether there were any.

    Headings are the lines in the outline, or, without one, lines in larger letters, and bold lines by themselves.
    """
    kept = without_running(pages)
    look = _Look([line for page in kept for line in page])
    marks: dict[int, list[Bookmark]] = {}
    for bookmark in bookmarks:
        marks.setdefault(bookmark.page, []).append(bookmark)
    for number, lines in enumerate(kept, start=1):
        _add_page(blocks, number, lines, look, marks.get(number, []), outlined=bool(bookmarks))
    return any(len(page) != len(rest) for page, rest in zip(pages, kept, strict=True))


class _Look:
    """The usual layout of the document."""

    def __init__(self, lines: Sequence[TextLine]) -> None:
        sizes: Counter[float] = Counter()
        bold = 0
        for line in lines:
            sizes[line.size] += len(line.text)
            bold += line.bold * len(line.text)
        self.size = sizes.most_common(1)[0][0] if sizes else 0.0
        self.bold_is_rare = bold < 0.3 * sizes.total()
        larger = sorted((size for size in sizes if self.size and size >= _LARGER * self.size), reverse=True)
        self._levels: dict[float, int] = {}
        for size in larger:
            near = next((held for held in self._levels if abs(held - size) <= _SAME_SIZE * held), None)
            self._levels[size] = self._levels[near] if near else len(set(self._levels.values())) + 1
        self.bold_level = len(set(self._levels.values())) + 1
        self.hyphenated = {word for line in lines for word in _HYPHENATED.findall(line.text)}

    def level(self, line: TextLine, above: TextLine | None, below: TextLine | None) -> int | None:
        """The level of a heading by its layout, from 1; None for other text."""
        if not any(map(str.isalpha, line.text)):
            return None
        if len(line.text) <= _MAX_HEADING_CHARS and (level := self._levels.get(line.size)):
            return level
        alone = not (above and _continues(above, line)) and not (below and below.bold and _continues(line, below))
        if line.bold and self.bold_is_rare and alone and len(line.text) <= _MAX_BOLD_CHARS:
            return None if _SENTENCE_END.search(line.text) or _ITEM.match(line.text) else self.bold_level
        return None


def _continues(above: TextLine, below: TextLine) -> bool:
    """Whether two lines look alike and are close, so that they may be one heading."""
    alike = above.bold == below.bold and abs(above.size - below.size) <= _SAME_SIZE * max(above.size, below.size)
    return alike and 0 < above.y - below.y <= 1.8 * below.size


def _add_page(
    blocks: Blocks, page: int, lines: Sequence[TextLine], look: _Look, marks: Sequence[Bookmark], *, outlined: bool
) -> None:
    at, unmet = _met(lines, marks) if outlined else ({}, [])
    for mark in unmet:
        blocks.enter(mark.title, mark.level)
    usual = _usual_gap(lines)
    paragraph: list[TextLine] = []
    heading: tuple[int, list[TextLine]] | None = None

    def end() -> None:
        nonlocal heading
        if heading:
            blocks.heading(" ".join(line.text for line in heading[1]), heading[0], page)
            heading = None
        if paragraph:
            kind = "list_item" if _ITEM.match(paragraph[0].text) else "paragraph"
            blocks.add(kind, _joined(paragraph, look.hyphenated), page)  # type: ignore[arg-type]
            paragraph.clear()

    for number, line in enumerate(lines):
        above = lines[number - 1] if number else None
        below = lines[number + 1] if number + 1 < len(lines) else None
        level = at.get(number) if outlined else look.level(line, above, below)
        if level is not None:
            if heading and heading[0] == level and above and _continues(above, line) and not outlined:
                heading[1].append(line)
            else:
                end()
                heading = (level, [line])
            continue
        if heading or (paragraph and _begins(paragraph, line, usual)):
            end()
        paragraph.append(line)
    end()


def _met(lines: Sequence[TextLine], marks: Sequence[Bookmark]) -> tuple[Mapping[int, int], list[Bookmark]]:
    """The levels of a page's lines that bookmarks name, by line number, and the bookmarks that name none."""
    found: dict[int, int] = {}
    unmet: list[Bookmark] = []
    after = -1
    keys = [_key(line.text) for line in lines]
    for mark in marks:
        wanted = _key(mark.title)
        number = next((at for at in range(after + 1, len(lines)) if wanted and keys[at] == wanted), None)
        if number is None:
            unmet.append(mark)
        else:
            found[number] = mark.level
            after = number
    return found, unmet


def _key(title: str) -> str:
    """A title without its number, spaces and signs."""
    bare = _NUMBER_BEFORE.sub("", title)
    return "".join(char for char in (bare or title).casefold() if char.isalnum())


def _usual_gap(lines: Sequence[TextLine]) -> float:
    """The distance of lines in a paragraph: the lower quartile, which suits pages of short paragraphs."""
    gaps = sorted(
        gap for above, below in pairwise(lines) if (gap := above.y - below.y) >= _CLOSEST * max(above.size, below.size)
    )
    return gaps[len(gaps) // 4] if gaps else 0.0


def _begins(paragraph: Sequence[TextLine], line: TextLine, usual: float) -> bool:
    """Whether a line begins another paragraph."""
    last = paragraph[-1]
    gap = last.y - line.y
    if abs(gap) < _SAME_LINE * line.size:
        return False
    if _ITEM.match(line.text) or abs(last.size - line.size) > _SAME_SIZE * last.size:
        return True
    if gap < 0:  # the next column
        return bool(_SENTENCE_END.search(last.text))
    left = min(held.x for held in paragraph)
    indented = line.x - left > _INDENT * line.size and bool(_SENTENCE_END.search(last.text)) and len(paragraph) > 1
    return indented or (usual > 0 and gap > _GAP * min(usual, 2 * line.size))


def _joined(lines: Sequence[TextLine], hyphenated: set[str]) -> str:
    """One text; a word divided at a line's end is joined, unless it is hyphenated elsewhere."""
    text = lines[0].text
    for line in lines[1:]:
        divided = re.search(r"([^\W\d_]+)-$", text)
        rest = re.match(r"[^\W\d_]+", line.text)
        if divided and rest and rest[0][0].islower():
            text = (text if f"{divided[1]}-{rest[0]}" in hyphenated else text[:-1]) + line.text
        else:
            text += f" {line.text}"
    return text
