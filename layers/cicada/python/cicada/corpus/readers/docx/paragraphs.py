"""One paragraph of a DOCX: its text, its style, and its list number."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cicada.corpus.readers.docx.xml import Element

_LEFT_OUT = frozenset(
    {"del", "moveFrom", "Fallback", "rt", "pPr", "rPr", "sdtPr", "instrText", "delText", "delInstrText", "tblPr"}
)
"""Deleted text, field codes, fallbacks for older programs, pronunciations, and properties."""
_WRITTEN = {"tab": "\t", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}


@dataclass
class Pages:
    """The current page, counted by one kind of breaks."""

    rendered: bool  # whether Word recorded its page breaks; else the author's breaks count
    number: int = 1

    def turn(self, *, rendered: bool) -> None:
        """Count a break."""
        self.number += rendered is self.rendered


@dataclass
class ParagraphText:
    """The text of a paragraph."""

    parts: list[str] = field(default_factory=list)
    page: int = 1  # of its first word
    boxes: list[Element] = field(default_factory=list)  # text boxes anchored in it
    notes: list[str] = field(default_factory=list)  # ids of the footnotes it refers to
    begun: bool = False  # whether a word was read

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.parts)

    def add_text(self, text: str, page: int) -> None:
        """Add a run's text; the paragraph's page is that of its first visible text."""
        if not self.begun and text.strip():
            self.page, self.begun = page, True
        self.parts.append(text)


def words_of(paragraph: Element, pages: Pages) -> ParagraphText:
    """The paragraph's text, with its text boxes apart."""
    words = ParagraphText(page=pages.number)
    if paragraph.has("pPr", "pageBreakBefore"):
        pages.turn(rendered=False)
    _read(paragraph, words, pages)
    return words


def _read(element: Element, words: ParagraphText, pages: Pages) -> None:
    for child in element.children:
        name = child.name
        if name in _LEFT_OUT or (name == "r" and child.has("rPr", "vanish")):
            continue
        if name == "t":
            words.add_text(child.text, pages.number)
        elif name in _WRITTEN:
            words.parts.append(_WRITTEN[name])
        elif name == "br":
            if child.attributes.get("type") == "page":
                pages.turn(rendered=False)
            words.parts.append("\n")
        elif name == "lastRenderedPageBreak":
            pages.turn(rendered=True)
        elif name == "txbxContent":
            words.boxes.append(child)
        elif name in ("footnoteReference", "endnoteReference"):
            words.notes.append(child.attributes.get("id", ""))
            words.parts.append(f" (note {child.attributes.get('id', '')})")
        else:
            _read(child, words, pages)


BULLET = "-"
_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)
_MAX_COUNTED = 3_999  # above it, letters and Roman numerals become digits
_LETTERS = 26


@dataclass(frozen=True)
class _Level:
    form: str
    label: str  # with ``%1`` for the first level's number
    start: int


_UNKNOWN = _Level("bullet", "", 1)


class ListNumbering:
    """The lists of a document (``numbering.xml``), with counters."""

    def __init__(self, part: Element | None) -> None:
        self._levels: dict[tuple[str, int], _Level] = {}
        self._lists: dict[str, str] = {}
        self._counts: dict[str, list[int]] = {}
        for element in part.children if part else []:
            if element.name == "abstractNum":
                self._read_levels(element)
            elif element.name == "num" and (held := element.value("abstractNumId")) is not None:
                self._lists[element.attributes.get("numId", "")] = held

    def next(self, number_id: str, depth: int) -> str:
        """The mark of a list's next paragraph at a depth from 0: ``-``, or its number as Word shows it."""
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


TITLE = 0  # the level of the document's own title
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_QUOTES = frozenset({"quote", "intense quote", "block text"})
_CODE = frozenset({"html preformatted", "source code", "code", "macro text", "preformatted text"})
_LIST = re.compile(r"list (?:bullet|number)(?: ([2-9]))?", re.IGNORECASE)
_BODY_TEXT_LEVEL = 9  # Word's outline level of body text


@dataclass(frozen=True)
class Style:
    """The used properties of a paragraph's style, inherited ones included."""

    name: str = ""
    level: int | None = None  # of a heading, from 1; :data:`TITLE` for the title; None for other text
    number_id: str | None = None
    depth: int | None = None
    hidden: bool = False

    @property
    def is_quote(self) -> bool:
        """Whether it is for quotations."""
        return self.name.casefold() in _QUOTES

    @property
    def is_code(self) -> bool:
        """Whether it is for code."""
        return self.name.casefold() in _CODE

    @property
    def is_list(self) -> bool:
        """Whether it is one of Word's list styles."""
        return bool(_LIST.fullmatch(self.name))


_PLAIN = Style()


class Styles:
    """The styles of a document (``styles.xml``) by their ids."""

    def __init__(self, part: Element | None) -> None:
        found = [element for element in part.children if element.name == "style"] if part else []
        self._elements = {element.attributes.get("styleId", ""): element for element in found}
        self._styles: dict[str, Style] = {}

    def get(self, style_id: str | None) -> Style:
        """The style; an unknown one is plain text."""
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
    """The level of a heading, from 1; Word's outline levels count from 0."""
    if written is None or not written.isdecimal():
        return inherited
    return int(written) + 1 if int(written) < _BODY_TEXT_LEVEL else None
