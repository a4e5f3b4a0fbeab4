"""What a document's styles say of its paragraphs: which are headings, and which belong to a list."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cicada.corpus.readers.docx.xml import Element

TITLE = 0
"""The level of the document's own title."""
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_QUOTES = frozenset({"quote", "intense quote", "block text"})
_CODE = frozenset({"html preformatted", "source code", "code", "macro text", "preformatted text"})
_LIST = re.compile(r"list (?:bullet|number)(?: ([2-9]))?", re.IGNORECASE)
_BODY_TEXT_LEVEL = 9
"""Word's outline level of what is no heading."""


@dataclass(frozen=True)
class Style:
    """What matters of a paragraph's style, with what it takes from those it is based on."""

    name: str = ""
    level: int | None = None
    """Of a heading, from 1; :data:`TITLE` for the title; None for other text."""
    number_id: str | None = None
    depth: int | None = None
    hidden: bool = False

    @property
    def is_quote(self) -> bool:
        """Whether it sets quotations apart."""
        return self.name.casefold() in _QUOTES

    @property
    def is_code(self) -> bool:
        """Whether it sets code apart."""
        return self.name.casefold() in _CODE

    @property
    def is_list(self) -> bool:
        """Whether it is one of Word's own styles for lists."""
        return bool(_LIST.fullmatch(self.name))


_PLAIN = Style()


class Styles:
    """The styles of a document by their ids."""

    def __init__(self, part: Element | None) -> None:
        """Read ``styles.xml``; a document may have none."""
        found = [element for element in part.children if element.name == "style"] if part else []
        self._elements = {element.attributes.get("styleId", ""): element for element in found}
        self._styles: dict[str, Style] = {}

    def get(self, style_id: str | None) -> Style:
        """The style; of an unknown one, plain text."""
        if style_id is None:
            return _PLAIN
        if style_id not in self._styles:
            self._resolve(style_id)
        return self._styles.get(style_id, _PLAIN)

    def _resolve(self, style_id: str) -> None:
        chain: dict[str, Element] = {}  # each style is resolved once, however many are based on it, or on one another
        while style_id not in self._styles and style_id not in chain and (element := self._elements.get(style_id)):
            chain[style_id] = element
            style_id = element.value("basedOn") or ""
        style = self._styles.get(style_id, _PLAIN)
        for held_id, element in reversed(chain.items()):
            style = self._styles[held_id] = _refined(style, element)


def _refined(base: Style, element: Element) -> Style:
    name = element.value("name") or ""
    level = outline_level(element.value("pPr", "outlineLvl"), base.level)
    if match := _HEADING.fullmatch(name):
        level = int(match[1])
    elif name.casefold() == "title":
        level = TITLE
    depth = element.value("pPr", "numPr", "ilvl")
    return Style(
        name=name,
        level=level,
        number_id=element.value("pPr", "numPr", "numId") or base.number_id,
        depth=int(depth) if depth and depth.isdecimal() else base.depth,
        hidden=base.hidden or element.has("rPr", "vanish"),
    )


def outline_level(written: str | None, inherited: int | None) -> int | None:
    """The level of a heading from 1 by Word's outline level, which counts from 0."""
    if written is None or not written.isdecimal():
        return inherited
    return int(written) + 1 if int(written) < _BODY_TEXT_LEVEL else None
