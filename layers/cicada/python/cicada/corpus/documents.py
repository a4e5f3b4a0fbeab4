"""A document as its reader gives it: blocks of text in reading order, each with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

DocType = Literal["pdf", "docx", "markdown", "text", "csv", "json", "yaml", "script"]

BlockKind = Literal["heading", "paragraph", "list_item", "quote", "code", "row", "record"]
"""A ``row`` is of a table or a CSV file, a ``record`` an object of a JSON file, or a mapping of a YAML file."""

METADATA_KEYS = ("author", "created", "modified", "date", "version", "subject", "description", "category", "keywords")
"""What a document may say of itself. Its label, its language and all else that searches, the analysis of its text or
an administrator go by, is not for its author to say."""

SECTION_SEPARATOR = " > "  # joins the headings of a path


@dataclass(frozen=True)
class DocumentBlock:
    """A piece of a document that its author set apart."""

    kind: BlockKind
    text: str  # never blank; of a row or record: its fields as ``name: value``, one a line
    section: tuple[str, ...] = ()  # the headings above it, outermost first; a heading includes itself
    page: int | None = None  # from 1, where the document has pages
    fields: tuple[tuple[str, str], ...] = ()
    """Of a row or a record: names and values in order, the values as text; nothing is left out but empty values."""
    table: int | None = None  # rows of one table have one number


@dataclass(frozen=True)
class Document:
    """One document, read."""

    source: str  # its id: a path relative to the loaded folder, with ``/``, or a caller's name
    title: str
    doc_type: DocType
    digest: str  # SHA-256 of its bytes, in hexadecimal
    blocks: tuple[DocumentBlock, ...]
    """At least one. A script has none: its messages are read by :mod:`cicada.corpus.scripts`."""
    pages: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    """What the file says of itself: some of :data:`METADATA_KEYS`; within the bounds of a passage's metadata."""
    notes: tuple[str, ...] = ()  # for the loader, such as pages without text
