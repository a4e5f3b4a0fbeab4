"""From a file's bytes to a document, in this process. What comes from others goes through :mod:`.sandbox`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from cicada.corpus.documents import DocType, Document
from cicada.corpus.readers.blocks import Content
from cicada.corpus.readers.csv_rows import read_csv
from cicada.corpus.readers.detect import HEAD_BYTES, doc_type_of
from cicada.corpus.readers.docx.reader import read_docx
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.markdown import read_markdown
from cicada.corpus.readers.naming import checked_source, title_of
from cicada.corpus.readers.pdf.reader import read_pdf
from cicada.corpus.readers.plain import read_plain
from cicada.corpus.readers.records import read_json, read_yaml
from cicada.errors import CicadaError, DocumentBroken, DocumentTooLarge, DocumentWithoutText

READERS: Mapping[DocType, Callable[[bytes, ReadLimits], Content]] = {
    "pdf": read_pdf,
    "docx": read_docx,
    "markdown": read_markdown,
    "text": read_plain,
    "csv": read_csv,
    "json": read_json,
    "yaml": read_yaml,
    "script": read_json,
}


def read_document(source: str, data: bytes, *, title: str | None = None, limits: ReadLimits | None = None) -> Document:
    """Read one document.

    Args:
        source: what it is known by; its ending tells the format where the content does not.
        title: what it is called; by default what the file says, else the source's last part.
        limits: the bounds; those on memory and time hold in :func:`.sandbox.read_safely` alone.

    Raises:
        DocumentRefused: one of its subclasses says why; no other exception comes from a document's content.
    """
    limits = limits or ReadLimits()
    checked_source(source)
    if len(data) > limits.max_bytes:
        raise DocumentTooLarge(f"has {len(data):,} bytes, more than {limits.max_bytes:,} (max_bytes)")
    doc_type = doc_type_of(source, data[:HEAD_BYTES])
    if not data.strip():
        raise DocumentWithoutText("is empty")
    try:
        content = READERS[doc_type](data, limits)
    except (CicadaError, MemoryError, ModuleNotFoundError):  # a library that is not there is no fault of the document
        raise
    except RecursionError:
        raise DocumentTooLarge("is nested too deeply (max_depth)") from None
    except Exception as error:  # a library meets a broken file in many ways
        raise DocumentBroken(f"cannot be read as {doc_type}: {type(error).__name__}") from error
    if not content.blocks and content.doc_type != "script":
        raise DocumentWithoutText("holds no text")
    return Document(
        source=source,
        title=title_of(source, title, content.title),
        doc_type=content.doc_type,
        digest=hashlib.sha256(data).hexdigest(),
        blocks=content.blocks,
        pages=content.pages,
        metadata=content.metadata,
        notes=content.notes,
    )
