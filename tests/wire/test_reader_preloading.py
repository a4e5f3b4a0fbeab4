"""A fork that reads can load nothing: what documents need of libraries and of Python is loaded before."""

from __future__ import annotations

import functools
import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

import pytest
from pypdf import PdfReader, PdfWriter

from cicada.corpus.documents import Document
from cicada.corpus.readers.detect import SUFFIXES
from cicada.corpus.readers.dispatch import read_document
from cicada.corpus.readers.sandbox import Sandbox
from cicada.errors import DocumentRefused
from tests.support.made_documents import archive, docx, p, packed, pdf, pdf_file, shown

LETTERS = {
    "cp1252": "Größe, Länge und Öffnung über den Maßen",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "cp1251": "Съешь ещё этих мягких французских булок",
    "cp1253": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "cp1255": "דג סקרן שט בים מאוכזב ולפתע מצא חברה",
    "cp1256": "نص حكيم له سر قاطع وذو شأن عظيم",
    "koi8_r": "Съешь ещё этих мягких французских булок",
    "cp932": "いろはにほへと ちりぬるを わかよたれそ",
    "euc_jp": "いろはにほへと ちりぬるを わかよたれそ",
    "gb18030": "天地玄黃 宇宙洪荒 日月盈昃 辰宿列張",
    "big5": "天地玄黃 宇宙洪荒 日月盈昃 辰宿列張",
    "cp949": "키스의 고유조건은 입술끼리 만나야 하고",
    "utf_16": "Größe, Länge und Öffnung",
    "utf_32": "Größe, Länge und Öffnung",
}
CMAPS = ["UniJIS-UTF16-H", "90ms-RKSJ-H", "GBK-EUC-H", "ETen-B5-H", "KSCms-UHC-H", "GBpc-EUC-V", "UniGB-UCS2-H"]


def _pdf_by_cmap(name: str) -> bytes:
    content = packed(b"BT /F1 12 Tf 72 700 Td <8ABF8EA0> Tj ET")
    return pdf_file(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R>>",
            content,
            b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/%s/DescendantFonts[6 0 R]>>" % name.encode(),
            b"<</Type/Font/Subtype/CIDFontType0/BaseFont/X/CIDSystemInfo"
            b"<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>>>",
        ]
    )


def _encrypted(algorithm: str) -> bytes:
    """Restricted in what may be done with it; no password is asked to open it."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf([shown([("Restricted", 10, 700)])]))))
    writer.encrypt("", "owner", algorithm=algorithm)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _docx_in(encoding: str) -> bytes:
    """A DOCX whose text is encoded as it says itself."""
    with zipfile.ZipFile(io.BytesIO(docx(p("Съешь")))) as made:
        members: dict[str, str | bytes] = {name: made.read(name) for name in made.namelist()}
        body = made.read("word/document.xml").decode()
    members["word/document.xml"] = f'<?xml version="1.0" encoding="{encoding}"?>{body}'.encode(encoding)
    return archive(members)


def documents() -> Iterator[tuple[str, bytes]]:
    """Names, and what lies there."""
    for encoding, text in LETTERS.items():
        yield f"{encoding}.txt", f"{text}\n".encode(encoding) * 20
    for suffix in SUFFIXES:
        if suffix not in (".pdf", ".docx", ".docm"):
            yield f"guessed{suffix}", f'"{LETTERS["cp1251"]}"'.encode("cp1251")
    yield "no ending", LETTERS["cp1252"].encode("cp1252")
    yield "a.docx", docx(p("Text", "H1") + p("Text"))
    for encoding in ("windows-1251", "koi8-r", "iso-8859-5", "utf-16"):
        yield f"{encoding}.docx", _docx_in(encoding)
    yield "pdf.txt", pdf([shown([("Text", 10, 700)])])
    for name in CMAPS:
        yield f"{name}.pdf", _pdf_by_cmap(name)
    for algorithm in ("RC4-40", "RC4-128", "AES-128", "AES-256"):
        yield f"{algorithm}.pdf", _encrypted(algorithm)
    dated = b"/Title<FEFF00540069>/CreationDate(D:19610301)"
    yield "dated.pdf", pdf([shown([("Text", 10, 700)])], info=dated)


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[Callable[[str], Sandbox]]:
    """One for each ending, so that no document finds loaded what one of another format needed."""
    with ExitStack() as stack:
        yield functools.cache(lambda ending: stack.enter_context(Sandbox()))


@pytest.mark.parametrize(("source", "data"), [pytest.param(*document, id=document[0]) for document in documents()])
def test_what_a_document_needs_is_loaded_before(
    sandboxes: Callable[[str], Sandbox], tmp_path: Path, source: str, data: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    sandbox = sandboxes(PurePosixPath(source).suffix)
    assert _came_of(lambda: sandbox.read(source, path)) == _came_of(lambda: read_document(source, data))


def _came_of(read: Callable[[], Document]) -> Document | tuple[str, str]:
    try:
        return read()
    except DocumentRefused as error:
        return error.code, str(error)
