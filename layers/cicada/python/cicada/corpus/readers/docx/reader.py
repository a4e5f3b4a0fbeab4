"""Read DOCX files: headings, paragraphs, lists and tables."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from cicada.corpus.documents import DocumentBlock
from cicada.corpus.readers.blocks import Blocks, Content, bounded_metadata
from cicada.corpus.readers.docx.body import BodyReader
from cicada.corpus.readers.docx.paragraphs import ListNumbering, Pages, Styles
from cicada.corpus.readers.docx.xml import Archive, Element, parsed
from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import DocumentBroken, DocumentEncrypted, DocumentUnsupported

_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_MAIN = "/officeDocument"
_ELEMENTS_A_LEVEL = 4  # a nested table is four elements deeper, and counts as one level
_PAGE_CHARS = 6_000  # more than a page holds: longer stretches between breaks are not pages
_PROPERTIES = {"creator": "author"} | {name: name for name in ("subject", "keywords", "created", "modified")}


def read_docx(data: bytes, limits: ReadLimits) -> Content:
    """Text as Word shows it: with tracked insertions, without deletions and hidden text.

    Pages are known if Word recorded its page breaks, or if the author's breaks are no further apart than a page. Raises
    DocumentBroken, DocumentEncrypted, DocumentTooLarge, DocumentUnsafe for a harmful archive or XML, and
    DocumentUnsupported for Word before 2007.
    """
    if data.startswith(_OLD_OFFICE):
        if _ENCRYPTED_PACKAGE in data:
            raise DocumentEncrypted("is password-protected")
        raise DocumentUnsupported("is a Word 97-2003 document: save it as .docx")
    archive = Archive(data, limits)

    def part(name: str) -> Element | None:
        held = archive.read(name)
        return None if held is None else parsed(held, limits.max_depth * _ELEMENTS_A_LEVEL, limits.max_elements)

    main = _main_part(part("_rels/.rels"))
    folder = posixpath.dirname(main)
    document = part(main)
    text = document and document.child("body")
    if text is None:
        raise DocumentBroken("is not a DOCX: the text part is missing")
    blocks = Blocks(limits)
    pages = Pages(rendered=any(element.name == "lastRenderedPageBreak" for element in text.walk()))
    notes = {**_notes(part(f"{folder}/footnotes.xml")), **_notes(part(f"{folder}/endnotes.xml"))}
    numbering = ListNumbering(part(f"{folder}/numbering.xml"))
    body = BodyReader(blocks, Styles(part(f"{folder}/styles.xml")), numbering, notes, pages)
    body.read(text)
    properties = dict(_properties(part("docProps/core.xml")))
    found = blocks.all()
    paged = pages.number > 1 and (pages.rendered or _fit_pages(found))
    return Content(
        "docx",
        found if paged else tuple(replace(block, page=None) for block in found),
        title=properties.pop("title", None) or body.title or blocks.first_heading(),
        pages=pages.number if paged else None,
        metadata=bounded_metadata(properties),
    )


def _main_part(relations: Element | None) -> str:
    for relation in relations.children if relations else []:
        if relation.attributes.get("Type", "").endswith(_MAIN) and relation.attributes.get("TargetMode") != "External":
            return relation.attributes.get("Target", "").lstrip("/")
    raise DocumentBroken("is not a DOCX: no text part is declared")


def _notes(part: Element | None) -> dict[str, Element]:
    elements = part.children if part else []
    return {note.attributes.get("id", ""): note for note in elements if "type" not in note.attributes}


def _properties(part: Element | None) -> Iterator[tuple[str, str]]:
    for element in part.children if part else []:
        if element.name == "title" and element.text.strip():
            yield "title", element.text
        elif element.name in _PROPERTIES:
            yield _PROPERTIES[element.name], element.text


def _fit_pages(blocks: tuple[DocumentBlock, ...]) -> bool:
    chars: Counter[int | None] = Counter()
    for block in blocks:
        chars[block.page] += len(block.text)
    return max(chars.values(), default=0) <= _PAGE_CHARS
