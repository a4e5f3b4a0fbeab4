"""Read plain text: paragraphs, lists and underlined headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from cicada.corpus.readers.blocks import Blocks, Content
from cicada.corpus.readers.decoding import decoded
from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import DocumentTooLarge

_BLANK = re.compile(r"\n[ \t]*\n\s*")
_UNDERLINE = re.compile(r"(=|-|~|\*)\1{2,}\s*")
_LEVELS = {"=": 1, "-": 2, "~": 3, "*": 3}
_ITEM = re.compile(r"[ \t]*(?:[-*\u2022\u2023\u25cf\u25aa]|\(?\d{1,3}[.)])[ \t]+\S")
_LINE_ENDS = re.compile("\r\n?")
_WRAPPED_CHARS = range(50, 121)  # usual line widths of text wrapped by an editor
_WRAPPED_SPREAD = 20


def read_plain(data: bytes, limits: ReadLimits) -> Content:
    """Paragraphs end at blank lines, or in a text without any at each line's end. A form feed ends a page. Raises
    DocumentBroken and DocumentTooLarge."""
    text, notes = decoded(data)
    pages = _LINE_ENDS.sub("\n", text).split("\f")
    if len(pages) > limits.max_pages:
        raise DocumentTooLarge(f"has more than {limits.max_pages:,} pages (max_pages)")
    paged = len(pages) > 1
    blocks = Blocks(limits)
    for number, page in enumerate(pages, start=1):
        for paragraph in _paragraphs(page):
            _add(blocks, paragraph, number if paged else None)
    count = len(pages) if paged else None
    return Content("text", blocks.all(), title=blocks.first_heading(), pages=count, notes=notes)


def _paragraphs(text: str) -> Iterator[list[str]]:
    """The lines of each paragraph. In a text without blank lines each line is one, unless lines were wrapped."""
    for part in _BLANK.split(text.strip("\n")):
        lines = [line for line in part.split("\n") if line.strip()]
        if not _BLANK.search(text) and not _is_wrapped(lines) and not _is_listed(lines):
            yield from ([line] for line in lines)
        elif lines:
            yield lines


def _add(blocks: Blocks, lines: list[str], page: int | None) -> None:
    if len(lines) > 1 and (mark := _UNDERLINE.fullmatch(lines[1])) and len(lines[0].strip()) <= 2 * len(lines[1]):
        blocks.heading(lines[0], _LEVELS[mark[1]], page)
        lines = lines[2:]
    if len(lines) == 1 and _UNDERLINE.fullmatch(lines[0].strip()):
        return
    if _is_listed(lines):
        for item in _items(lines):
            blocks.add("list_item" if _ITEM.match(item[0]) else "paragraph", _joined(item), page)
    elif lines:
        blocks.add("paragraph", _joined(lines) if _is_wrapped(lines) else "\n".join(lines), page)


def _is_listed(lines: list[str]) -> bool:
    return any(_ITEM.match(line) for line in lines[:2]) and (
        len(lines) == 1 or sum(map(bool, map(_ITEM.match, lines))) > 1
    )


def _items(lines: list[str]) -> Iterator[list[str]]:
    """The lines of each item; lines without a mark belong to the item before."""
    item: list[str] = []
    for line in lines:
        if _ITEM.match(line) and item:
            yield item
            item = []
        item.append(line)
    if item:
        yield item


def _joined(lines: list[str]) -> str:
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return indent + " ".join(line.strip() for line in lines)


def _is_wrapped(lines: list[str]) -> bool:
    """Whether all lines but the last have about one width, as wrapped by an editor and unlike a poem."""
    widths = [len(line) for line in lines[:-1]]
    if not widths or not _WRAPPED_CHARS.start <= (middle := median(widths)) < _WRAPPED_CHARS.stop:
        return False
    return sum(abs(width - middle) <= _WRAPPED_SPREAD for width in widths) >= 0.8 * len(widths)
