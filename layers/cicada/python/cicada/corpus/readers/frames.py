"""The messages between the process that reads documents and its parent.

A document is sent as JSON, and the parent checks every part: the child's output is as untrusted as its input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from cicada import errors
from cicada.corpus.documents import BlockKind, DocType, Document, DocumentBlock
from cicada.corpus.readers.blocks import rendered
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.naming import MAX_TITLE_CHARS
from cicada.errors import DocumentRefused
from cicada.text.visible import visible

MAX_MESSAGE_CHARS = 500
_KINDS = frozenset(get_args(BlockKind))
_TYPES = frozenset(get_args(DocType))


class MalformedResultError(Exception):
    """The child's output is not a result: it was killed while writing, or compromised."""


def _refusals(kind: type[DocumentRefused] = DocumentRefused) -> Iterator[type[DocumentRefused]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _refusals(below)


_REFUSALS = {kind.code: kind for kind in _refusals() if kind.__module__ == errors.__name__}


@dataclass(frozen=True)
class Order:
    """What the child is to read; the file itself is sent as an open descriptor."""

    source: str
    title: str | None
    limits: ReadLimits

    def write(self) -> bytes:
        """As JSON, short enough for one message of any kind of socket."""
        title = self.title and self.title[:MAX_TITLE_CHARS]
        return json.dumps([self.source, title, vars(self.limits)], ensure_ascii=False).encode(errors="replace")

    @classmethod
    def read(cls, data: bytes) -> Order:
        """The inverse of :meth:`write`."""
        source, title, limits = json.loads(data)
        return cls(source, title, ReadLimits(**limits))


def written_document(document: Document) -> bytes:
    """A document for the parent, which remakes the text of rows and records from their fields."""
    sections: dict[tuple[str, ...], int] = {}
    blocks = [
        [
            block.kind,
            None if block.fields else block.text,
            sections.setdefault(block.section, len(sections)),
            block.page,
            block.fields,
            block.table,
        ]
        for block in document.blocks
    ]
    head = [document.source, document.title, document.doc_type, document.digest, document.pages]
    return json.dumps([head, dict(document.metadata), document.notes, list(sections), blocks]).encode()


def written_refusal(error: DocumentRefused) -> bytes:
    """A refusal for the parent."""
    return json.dumps({"code": error.code, "message": str(error)[:MAX_MESSAGE_CHARS]}).encode()


def max_result_bytes(limits: ReadLimits) -> int:
    """An upper bound for a document within the limits: six bytes a character, and each block's overhead."""
    return 6 * limits.max_text_chars + 400 * limits.max_blocks + 2**20


def read_result(data: bytes) -> Document:
    """The document that the child read. Raises DocumentRefused if the child refused it, and MalformedResultError."""
    try:
        found = json.loads(data)
        if isinstance(found, dict):
            raise _REFUSALS[found["code"]](visible(str(found["message"]))[:MAX_MESSAGE_CHARS])
        (source, title, doc_type, digest, pages), metadata, notes, sections, blocks = found
        _check(doc_type in _TYPES)
        headings = [tuple(map(_string, section)) for section in sections]
        return Document(
            source=_string(source),
            title=_string(title),
            doc_type=doc_type,
            digest=_string(digest),
            blocks=tuple(_block(block, headings) for block in blocks),
            pages=_number(pages),
            metadata={_string(name): _string(value) for name, value in metadata.items()},
            notes=tuple(map(_string, notes)),
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise MalformedResultError(type(error).__name__) from None


def _block(written: Any, headings: list[tuple[str, ...]]) -> DocumentBlock:
    kind, text, section, page, pairs, table = written
    fields = tuple((_string(name), _string(value)) for name, value in pairs)
    text = rendered(fields) if fields else _string(text)
    _check(kind in _KINDS and bool(text.strip()))
    return DocumentBlock(kind, text, headings[section], _number(page), fields, _number(table))


def _string(value: Any) -> str:
    _check(isinstance(value, str))
    return str(value)


def _number(value: Any) -> int | None:
    _check(value is None or type(value) is int)
    return None if value is None else int(value)


def _check(holds: bool) -> None:
    if not holds:
        raise ValueError
