"""A document as read: blocks of text in reading order, each with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

DocType = Literal["pdf", "docx", "markdown", "text", "csv", "json", "yaml", "script"]

BlockKind = Literal["heading", "paragraph", "list_item", "quote", "code", "row", "record"]
"""A ``row`` of a table or a CSV file; a ``record``: an object of a JSON file, or a mapping of a YAML file."""

METADATA_KEYS = ("author", "created", "modified", "date", "version", "subject", "description", "category", "keywords")
"""Metadata that a document may set. Its label, its language and other keys that control search or analysis are not its
author's to set."""

SECTION_SEPARATOR = " > "  # joins the headings of a path


@dataclass(frozen=True)
class DocumentBlock:
    """A structural element of a document."""

    kind: BlockKind
    text: str  # never blank; of a row or record: its fields as ``name: value``, one a line
    section: tuple[str, ...] = ()  # the headings above it, outermost first; a heading includes itself
    page: int | None = None  # from 1, where the document has pages
    fields: tuple[tuple[str, str], ...] = ()
    """Of a row or a record: names and values as text, in order, without empty values."""
    table: int | None = None  # rows of one table have one number


@dataclass(frozen=True)
class Document:
    """One document, read."""

    source: str  # its id: a path relative to the loaded folder, with ``/``, or a caller's name
    title: str
    doc_type: DocType
    digest: str  # SHA-256 of its bytes, in hexadecimal
    blocks: tuple[DocumentBlock, ...]
    """At least one; a script has none, since :mod:`cicada.corpus.scripts` reads its messages."""
    pages: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    """From the file: some of :data:`METADATA_KEYS`, within the bounds of a passage's metadata."""
    notes: tuple[str, ...] = ()  # for the loader, such as pages without text
