"""Load what reading a format needs, since a process that reads a document can load nothing: see :mod:`.confinement`.

Libraries, and Python itself, load some modules on first use. So each format's libraries are imported whole, and a small
document of the format is read.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import pkgutil
import zipfile
from collections.abc import Mapping

from cicada.corpus.documents import DocType
from cicada.corpus.readers.detect import doc_type_of
from cicada.corpus.readers.dispatch import read_document
from cicada.errors import DocumentUnsupported

PDF_MARK = b"%PDF-"
_LIBRARIES: Mapping[DocType, tuple[str, ...]] = {
    "pdf": ("pypdf",),
    "docx": (),
    "markdown": ("markdown_it", "charset_normalizer"),
    "text": ("charset_normalizer",),
    "csv": ("charset_normalizer",),
    "json": ("charset_normalizer",),
    "yaml": ("yaml", "charset_normalizer"),
}
_ENCODINGS = "encodings"  # any format may need any of them
_IMPORTED_WHOLE = frozenset({_ENCODINGS, "pypdf"})
"""Packages whose modules import others inside functions."""
_GUESSED = "Größe, Länge und Öffnung".encode("cp1252")  # text whose encoding has to be guessed


def _docx() -> bytes:
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{relations}">'
            f'<Relationship Id="r1" Target="word/document.xml" Type="{kind}"/></Relationships>',
        )
        archive.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{namespace}"><w:body><w:p><w:r><w:t>Text</w:t></w:r></w:p></w:body></w:document>',
        )
    return out.getvalue()


def _pdf() -> bytes:
    content = b"BT /F1 12 Tf 72 700 Td (Text) Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 4 0 R>>>>/Contents 5 0 R>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        b"<</Length %d>>\nstream\n%s\nendstream" % (len(content), content),
    ]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, each) for number, each in enumerate(objects, start=1))
    return b"%PDF-1.7\n" + body + b"trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n0\n%%EOF\n"


_SAMPLES: Mapping[DocType, tuple[str, bytes]] = {
    "pdf": ("a.pdf", _pdf()),
    "docx": ("a.docx", _docx()),
    "markdown": ("a.md", b"# Title\n\n- [text](a)\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```\ncode\n```\n" + _GUESSED),
    "text": ("a.txt", b"Title\n\n" + _GUESSED),
    "csv": ("a.csv", b"a;b\n1;2\n3;4\n" + _GUESSED),
    "json": ("a.json", b'[{"a": 1, "b": ["' + _GUESSED + b'"]}]'),
    "yaml": ("a.yaml", b"- a: 1961-03-01\n  b: [" + _GUESSED + b"]\n"),
}


def preload(source: str, *, is_pdf: bool) -> None:
    """Load what the document ``source`` may need, once. Raises ModuleNotFoundError if a library is not installed."""
    try:
        kind = doc_type_of(source, PDF_MARK + b"1" if is_pdf else b"")
    except DocumentUnsupported:
        kind = "text"
    _preload(kind)


@functools.cache
def _preload(kind: DocType) -> None:
    for name in (*_LIBRARIES[kind], _ENCODINGS):
        _import(name)
    read_document(*_SAMPLES[kind])


@functools.cache
def _import(name: str) -> None:
    package = importlib.import_module(name)
    if name not in _IMPORTED_WHOLE:
        return
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        with contextlib.suppress(ImportError):  # for another system, or an optional library
            importlib.import_module(module.name)
