"""Detect a file's format by its beginning and its name."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from cicada.corpus.documents import DocType
from cicada.corpus.messages import is_of_a_script
from cicada.errors import DocumentUnsupported

HEAD_BYTES = 16_384  # of a file: enough to detect its format

_BY_SUFFIX: dict[str, DocType] = {
    ".pdf": "pdf", ".docx": "docx", ".docm": "docx", ".md": "markdown", ".markdown": "markdown",
    ".txt": "text", ".text": "text", ".log": "text", ".rst": "text", ".csv": "csv", ".tsv": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".yaml": "yaml", ".yml": "yaml",
}  # fmt: skip
SUFFIXES = tuple(_BY_SUFFIX)  # supported file name endings

_FOREIGN = {
    b"PK\x03\x04": "ZIP archive",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "binary Office document (.doc, .xls, .ppt)",
    b"\x1f\x8b": "gzip",
    b"\x89PNG": "image",
    b"\xff\xd8\xff": "image",
    b"GIF8": "image",
    b"{\\rtf": "Rich Text",
    b"\x7fELF": "executable",
    b"MZ\x90": "executable",
    b"SQLite format 3": "SQLite database",
}
_PDF = re.compile(rb"%PDF-\d")
_PDF_WITHIN_BYTES = 1_024  # PDF viewers accept the mark within these
_FIRST_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{")
_TOKEN = re.compile(rb'[{}\[\]]|"((?:[^"\\]|\\.)*+)(?:"\s*+(:)?|\\?\Z)', re.DOTALL)
"""A bracket, or a string with its content, and the colon after a name."""


def doc_type_of(source: str, head: bytes) -> DocType:
    """The format of the file ``source`` that begins with ``head``.

    A PDF is recognised under any name. A JSON file whose first object has a message's fields is a script. Raises
    DocumentUnsupported; the message names the format, if it is known.
    """
    suffix = PurePosixPath(source).suffix.lower()
    if _PDF.search(head[:_PDF_WITHIN_BYTES]):
        return "pdf"
    found = _BY_SUFFIX.get(suffix)
    if found in ("pdf", "docx"):
        return found
    if what := next((what for mark, what in _FOREIGN.items() if head.startswith(mark)), None):
        raise DocumentUnsupported(f"unsupported format: {what}; supported: {', '.join(SUFFIXES)}")
    if found == "json":
        return "script" if is_of_a_script(_names_of_first_object(head)) else "json"
    if found:
        return found
    if not suffix and b"\0" not in head:
        return "text"
    raise DocumentUnsupported(f"unsupported format: {suffix or 'binary data'}; supported: {', '.join(SUFFIXES)}")


def _names_of_first_object(head: bytes) -> set[str]:
    """The names of the first object, as far as ``head`` goes, without those of nested values."""
    names: set[str] = set()
    opening = _FIRST_OBJECT.match(head)
    if opening is None:
        return names
    depth = 1
    for token in _TOKEN.finditer(head, opening.end()):
        if token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
            if not depth:
                break
        elif depth == 1 and token[2]:
            names.add(token[1].decode("utf-8", "replace"))
    return names
