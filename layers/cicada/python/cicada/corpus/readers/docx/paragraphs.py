"""One paragraph of a DOCX: its words, without what its readers do not see."""

from __future__ import annotations

from dataclasses import dataclass, field

from cicada.corpus.readers.docx.xml import Element

_LEFT_OUT = frozenset(
    {"del", "moveFrom", "Fallback", "rt", "pPr", "rPr", "sdtPr", "instrText", "delText", "delInstrText", "tblPr"}
)
"""Deleted text, codes of fields, what older programs show instead, pronunciations, and properties."""
_WRITTEN = {"tab": "\t", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}


@dataclass
class Pages:
    """The page that is being read, counted by the breaks of one kind."""

    rendered: bool
    """Whether Word recorded where its pages ended; else the author's own breaks count."""
    number: int = 1

    def turn(self, *, rendered: bool) -> None:
        """A break was met."""
        self.number += rendered is self.rendered


@dataclass
class Words:
    """What was read of a paragraph."""

    parts: list[str] = field(default_factory=list)
    page: int = 1
    """Where its first word stands."""
    boxes: list[Element] = field(default_factory=list)
    """The text boxes that are anchored in it."""
    notes: list[str] = field(default_factory=list)
    """Ids of the footnotes it refers to."""
    begun: bool = False
    """Whether a word was read."""

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.parts)


def words_of(paragraph: Element, pages: Pages) -> Words:
    """The paragraph's text. What stands in text boxes comes apart from it."""
    words = Words(page=pages.number)
    if paragraph.has("pPr", "pageBreakBefore"):
        pages.turn(rendered=False)
    _read(paragraph, words, pages)
    return words


def _read(element: Element, words: Words, pages: Pages) -> None:
    for child in element.children:
        name = child.name
        if name in _LEFT_OUT or (name == "r" and child.has("rPr", "vanish")):
            continue
        if name == "t":
            if not words.begun and child.text.strip():
                words.page, words.begun = pages.number, True
            words.parts.append(child.text)
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
