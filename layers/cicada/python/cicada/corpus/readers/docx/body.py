"""Make blocks of the paragraphs and tables of a DOCX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cicada.corpus.documents import BlockKind
from cicada.corpus.readers.blocks import Blocks, one_line
from cicada.corpus.readers.docx.paragraphs import (
    BULLET,
    TITLE,
    ListNumbering,
    Pages,
    Style,
    Styles,
    outline_level,
    words_of,
)
from cicada.corpus.readers.docx.xml import Element
from cicada.corpus.readers.table_rows import add_table
from cicada.errors import DocumentTooLarge

_NO_LIST = "0"
_MAX_DEPTH = 8  # of nested lists, from 0: Word has nine levels
_MAX_HEADING_CHARS = 500  # longer text is not a heading, whatever its style
_INDENT = "  "
_CONTENTS = "toc "  # prefix of the styles of a table of contents


class BodyReader:
    """Reads a body, and everything with its structure: cells, text boxes, notes."""

    def __init__(
        self, blocks: Blocks, styles: Styles, numbering: ListNumbering, notes: Mapping[str, Element], pages: Pages
    ) -> None:
        self.title: str | None = None  # the first paragraph in the style of a title
        self._blocks = blocks
        self._styles = styles
        self._numbering = numbering
        self._notes = notes
        self._pages = pages

    def read(self, element: Element) -> None:
        """Add a body's paragraphs and tables, those in wrappers included."""
        for child in element.children:
            if child.name == "p":
                self._paragraph(child)
            elif child.name == "tbl":
                self._table(child)
            elif child.name not in ("sectPr", "sdtPr", "del", "moveFrom", "Fallback", "tcPr"):
                self.read(child)

    def _paragraph(self, paragraph: Element) -> None:
        style = self._styles.get(paragraph.value("pPr", "pStyle"))
        words = words_of(paragraph, self._pages)
        left_out = style.hidden or style.name.casefold().startswith(_CONTENTS)
        text = "" if left_out else words.text
        if text.strip():
            self._add(paragraph, style, text, words.page)
        for box in words.boxes:
            self.read(box)
        self._add_notes(words.notes, words.page)

    def _add(self, paragraph: Element, style: Style, text: str, page: int) -> None:
        level = outline_level(paragraph.value("pPr", "outlineLvl"), style.level)
        mark, depth = self._mark(paragraph, style)
        if level is not None and len(text) <= _MAX_HEADING_CHARS:
            if level == TITLE and self.title is None:
                self.title = one_line(text)
            numbered = f"{mark} {text}" if mark and mark != BULLET else text
            self._blocks.heading(numbered, max(level, 1), page)
        elif mark is not None:
            self._blocks.add("list_item", f"{_INDENT * depth}{mark} {text.strip()}", page)
        else:
            kind: BlockKind = "quote" if style.is_quote else "code" if style.is_code else "paragraph"
            self._blocks.add(kind, text, page)

    def _mark(self, paragraph: Element, style: Style) -> tuple[str | None, int]:
        """Word's mark before a list's paragraph, if it is one, and the depth of the list."""
        written = paragraph.value("pPr", "numPr", "ilvl")
        depth = int(written) if written and written.isdecimal() else style.depth or 0
        depth = min(depth, _MAX_DEPTH)
        number_id = paragraph.value("pPr", "numPr", "numId") or style.number_id
        if number_id is not None and number_id != _NO_LIST:
            return self._numbering.next(number_id, depth), depth
        return (BULLET, depth) if style.is_list else (None, 0)

    def _table(self, table: Element) -> None:
        rows = [element for element in _within(table, "tr") if not element.has("trPr", "del")]
        cells = [list(_within(row, "tc")) for row in rows]
        if len(rows) < 2 or max(map(len, cells), default=0) < 2:
            for row in cells:
                for cell in row:
                    self.read(cell)
            return
        page = self._pages.number
        texts: list[list[str]] = []
        notes: list[str] = []
        for row in cells:
            texts.append(self._row(row, texts[-1] if texts else [], notes))
        named = True if rows[0].has("trPr", "tblHeader") else None
        add_table(self._blocks, texts, page, named=named)
        self._add_notes(notes, page)

    def _row(self, cells: list[Element], above: list[str], notes: list[str]) -> list[str]:
        """The texts of a row's columns; a cell over several columns fills the first, one over several rows each row."""
        row: list[str] = []
        for cell in cells:
            merged = cell.child("tcPr") and cell.child("tcPr").child("vMerge")  # type: ignore[union-attr]
            if merged and merged.attributes.get("val") != "restart":
                row.append(above[len(row)] if len(row) < len(above) else "")
            else:
                row.append("\n".join(self._lines(cell, notes)))
            span = cell.value("tcPr", "gridSpan") or "1"
            columns = int(span) if span.isdecimal() and len(span) < 6 else 1
            if len(row) + columns > self._blocks.limits.max_fields:
                raise DocumentTooLarge(f"has a row of more than {self._blocks.limits.max_fields:,} fields (max_fields)")
            row += [""] * (columns - 1)
        return row

    def _lines(self, element: Element, notes: list[str]) -> Iterator[str]:
        """The texts of all paragraphs below, with text boxes; collects the ids of their notes."""
        for paragraph in _paragraphs(element):
            words = words_of(paragraph, self._pages)
            notes += words.notes
            if line := words.text.strip():
                yield line
            for box in words.boxes:
                yield from self._lines(box, notes)

    def _add_notes(self, notes: list[str], page: int) -> None:
        for note in notes:
            if note in self._notes:
                text = one_line(" ".join(self._lines(self._notes[note], [])))
                self._blocks.add("paragraph", f"Note {note}: {text}", page)


def _within(element: Element, name: str) -> Iterator[Element]:
    """Children of a name, with those in content controls and tracked insertions."""
    for child in element.children:
        if child.name == name:
            yield child
        elif child.name in ("sdt", "sdtContent", "ins", "moveTo", "customXml"):
            yield from _within(child, name)


def _paragraphs(element: Element) -> Iterator[Element]:
    """Every paragraph below, in order, with nested tables, without text boxes."""
    for child in element.children:
        if child.name == "p":
            yield child
        elif child.name not in ("tcPr", "del", "moveFrom"):
            yield from _paragraphs(child)
