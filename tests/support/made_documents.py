"""Files of every format, made from a few words: what the readers' tests read."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Target="word/document.xml" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>'
)
_STYLES = "".join(
    f'<w:style w:type="paragraph" w:styleId="{style}"><w:name w:val="{name}"/></w:style>'
    for style, name in (("Title", "Title"), ("H1", "heading 1"), ("H2", "heading 2"), ("Q", "Quote"))
)


def archive(members: Mapping[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return out.getvalue()


def docx(body: str, **parts: str) -> bytes:
    """A DOCX of the XML in its body; further parts by their name below ``word/``, without the ending."""
    xml = {"document": f"<w:body>{body}</w:body>", "styles": _STYLES, **parts}
    names = {"document": "document", "styles": "styles", "numbering": "numbering", "footnotes": "footnotes"}
    members = {
        f"word/{name}.xml": f'<w:{names[name]} xmlns:w="{W}">{held}</w:{names[name]}>' for name, held in xml.items()
    }
    return archive({"_rels/.rels": _RELATIONS, **members})


def p(text: str, style: str = "", properties: str = "") -> str:
    """A paragraph of a DOCX; ``text`` is a run's text, or XML."""
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    runs = text if text.startswith("<") else f"<w:r><w:t>{text}</w:t></w:r>"
    return f"<w:p><w:pPr>{styled}{properties}</w:pPr>{runs}</w:p>"


def pdf_file(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """A PDF of its objects; the first is the catalogue."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, start)
    return bytes(out)


def stream(content: bytes, entries: bytes = b"") -> bytes:
    """A stream object."""
    return b"<</Length %d%s>>\nstream\n%s\nendstream" % (len(content), entries, content)


def packed(content: bytes) -> bytes:
    """A compressed stream object."""
    return stream(zlib.compress(content, 9), b"/Filter/FlateDecode")


def shown(lines: Sequence[tuple[str, float, float]], x: float = 72) -> bytes:
    """Operators that show lines: text, size in points, distance from the bottom."""
    return b"\n".join(
        b"BT /F1 %g Tf 1 0 0 1 %g %g Tm (%s) Tj ET"
        % (size, x, y, text.encode("cp1252").replace(b"(", rb"\(").replace(b")", rb"\)"))
        for text, size, y in lines
    )


def pdf(pages: Sequence[bytes], info: bytes = b"", trailer: bytes = b"") -> bytes:
    """A PDF of pages by their operators."""
    first = 4
    kids = b" ".join(b"%d 0 R" % (first + 2 * number) for number in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), kids),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    for number, content in enumerate(pages):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % (first + 2 * number + 1)
        )
        objects.append(packed(content))
    if info:
        objects.append(b"<<%s>>" % info)
        trailer += b"/Info %d 0 R" % len(objects)
    return pdf_file(objects, trailer)
