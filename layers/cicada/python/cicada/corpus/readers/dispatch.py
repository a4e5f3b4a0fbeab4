"""Read a file's bytes in this process. Untrusted files go through :mod:`.sandbox`."""

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
    "pdf": read_pdf, "docx": read_docx, "markdown": read_markdown, "text": read_plain,
    "csv": read_csv, "json": read_json, "yaml": read_yaml, "script": read_json,
}  # fmt: skip


def read_document(source: str, data: bytes, *, title: str | None = None, limits: ReadLimits | None = None) -> Document:
    """Read one document; its format is detected by content, then by the source's ending.

    ``title``: by default the file's own, else the source's name; ``limits``: those of memory and time only apply in
    :func:`.sandbox.read_safely`. Raises a subclass of DocumentRefused, and no other exception for a document's content.
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
    except (CicadaError, MemoryError, ModuleNotFoundError):  # a missing library is not the document's fault
        raise
    except RecursionError:
        raise DocumentTooLarge("is nested too deeply (max_depth)") from None
    except Exception as error:  # libraries fail in many ways for broken files
        raise DocumentBroken(f"cannot parse as {doc_type}: {type(error).__name__}") from error
    if not content.blocks and content.doc_type != "script":
        raise DocumentWithoutText("contains no text")
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
