"""Reading PDF by page, and telling apart what cannot be read."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from pypdf import PdfWriter

from cicada.corpus.documents import Document
from cicada.corpus.readers.dispatch import read_document
from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import (
    DocumentBroken,
    DocumentEncrypted,
    DocumentRefused,
    DocumentTooLarge,
    DocumentWithoutText,
)
from tests.support.made_documents import packed, pdf, pdf_file, shown, stream


def read(data: bytes, limits: ReadLimits | None = None) -> Document:
    return read_document("a.pdf", data, limits=limits)


def lines(*texts: str, top: float = 700, size: float = 10, step: float = 12) -> list[tuple[str, float, float]]:
    return [(text, size, top - step * number) for number, text in enumerate(texts)]


TWO = pdf(
    [
        shown(
            [
                ("Keeper's Manual", 20, 740),
                *lines("The lamp is lit at dusk and put", "out at dawn, every day of the year."),
                ("Oil", 14, 640),
                *lines("Use the blue can.", top=610),
                *lines(
                    "The red one holds some-",
                    "thing else: a well-",
                    "known mistake is",
                    "made by well-known men.",
                    top=580,
                ),
            ]
        ),
        shown(lines("- a rag", "- a bucket", "  and its lid", "12 men pull.")),
    ],
    info=b"/Title(Microsoft Word - draft.doc)/Author(Ferry House)/CreationDate(D:19621114120000Z)",
)


def test_each_page_gives_its_headings_paragraphs_and_items() -> None:
    found = read(TWO)
    assert [(block.kind, block.page, block.section, block.text) for block in found.blocks] == [
        ("heading", 1, ("Keeper's Manual",), "Keeper's Manual"),
        ("paragraph", 1, ("Keeper's Manual",), "The lamp is lit at dusk and put out at dawn, every day of the year."),
        ("heading", 1, ("Keeper's Manual", "Oil"), "Oil"),
        ("paragraph", 1, ("Keeper's Manual", "Oil"), "Use the blue can."),
        (
            "paragraph",
            1,
            ("Keeper's Manual", "Oil"),
            "The red one holds something else: a well-known mistake is made by well-known men.",
        ),
        ("list_item", 2, ("Keeper's Manual", "Oil"), "- a rag"),
        ("list_item", 2, ("Keeper's Manual", "Oil"), "- a bucket and its lid 12 men pull."),
    ]


def test_a_title_that_a_program_wrote_is_none() -> None:
    found = read(TWO)
    assert (found.title, found.pages) == ("Keeper's Manual", 2)
    assert dict(found.metadata) == {"author": "Ferry House", "created": "1962-11-14"}


def test_running_heads_and_page_numbers_are_left_out() -> None:
    pages = [
        shown([("Ferry House, 1962", 10, 760), *lines(f"Text of page {name}."), (f"{number}", 10, 30)])
        for number, name in enumerate(("one", "two", "three", "four"), start=1)
    ]
    found = read(pdf(pages))
    assert [block.text for block in found.blocks] == [
        f"Text of page {name}." for name in ("one", "two", "three", "four")
    ]
    assert found.notes == ("running heads and page numbers were left out",)


Page = list[tuple[str, float, float]]
BODY = lines("The pump was tested.", "It held for ten minutes.", top=600)
CERTIFICATES = [
    [(f"Certificate 10{n}", 18, 760), (f"Serial 77{n}", 12, 740), *BODY, (f"Reading {n}4 bar", 12, 80)]
    for n in range(1, 6)
]
STATUTES = [
    [("Statutes", 10, 760), (f"Article {n}", 10, 740), *lines(f"Text {n * 7}.", "More.", f"See {n}", top=720, step=20)]
    for n in range(1, 6)
]
COLUMNS = [[("Pumps 3", 12, 760), *BODY, ("42", 12, 580)], [("17", 12, 760), *BODY], [*BODY, ("9", 12, 580)]]
INVOICE = [[("Invoice", 12, 760), ("Total in marks", 12, 700), ("1500", 12, 686)]]
TITLES = [[(f"Part {n}", 20, 760), *lines(f"Text {n * 7}.", "More.", "The end.", top=600)] for n in range(1, 6)]


@pytest.mark.parametrize("pages", [CERTIFICATES, STATUTES, COLUMNS, INVOICE, TITLES])
def test_content_that_looks_alike_on_all_pages_is_kept(pages: list[Page]) -> None:
    found = read(pdf([shown(page) for page in pages]))
    read_back = " ".join(block.text for block in found.blocks)
    assert [text for page in pages for text, _, _ in page if text not in read_back] == []
    assert read_back.count(pages[0][0][0]) == sum(page[0] == pages[0][0] for page in pages)
    assert found.notes == ()


@pytest.mark.parametrize(
    "head",
    [
        lambda number: [("Ferry House", 10, 760), (f"Page {number} of 5", 10, 748)],
        lambda number: [(f"Ferry House, 1962, {number}", 10, 760)],
        lambda number: [("Ferry House", 10, 760), (f"- {number + 300} -", 10, 588)],
    ],
    ids=["two-lines", "number-in-words", "number-by-the-text"],
)
def test_a_number_is_left_out_that_counts_up_with_the_pages(head: Callable[[int], Page]) -> None:
    found = read(
        pdf([shown([*head(number), *lines(f"Text {'abcde'[number - 1]}.", top=600)]) for number in range(1, 6)])
    )
    assert [block.text for block in found.blocks] == [f"Text {name}." for name in "abcde"]


def test_pages_without_text_are_named() -> None:
    found = read(pdf([shown(lines("Text.")), b"0 0 m 9 9 l S"]))
    assert found.notes == ("no text on page 2: blank, or scanned",)


def test_the_outline_names_the_headings() -> None:
    content = shown([*lines("1 Oil", "Daily, before the lamp is lit.", "2 Water", "Never.")])
    data = pdf_file(
        [
            b"<</Type/Catalog/Pages 2 0 R/Outlines 5 0 R>>",
            b"<</Type/Pages/Count 1/Kids[4 0 R]>>",
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents 8 0 R>>",
            b"<</Type/Outlines/First 6 0 R/Last 7 0 R/Count 2>>",
            b"<</Title(Oil)/Parent 5 0 R/Next 7 0 R/Dest[4 0 R/Fit]>>",
            b"<</Title(Water)/Parent 5 0 R/Prev 6 0 R/Dest[4 0 R/Fit]>>",
            packed(content),
        ]
    )
    assert [(block.kind, block.section, block.text) for block in read(data).blocks] == [
        ("heading", ("1 Oil",), "1 Oil"),
        ("paragraph", ("1 Oil",), "Daily, before the lamp is lit."),
        ("heading", ("2 Water",), "2 Water"),
        ("paragraph", ("2 Water",), "Never."),
    ]


def tree(depth: int) -> bytes:
    """Page nodes in one another."""
    nodes = [b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % (number + 3) for number in range(depth)]
    return pdf_file([b"<</Type/Catalog/Pages 2 0 R>>", *nodes, b"<</Type/Page>>"])


def with_page(content: bytes, resources: bytes = b"") -> bytes:
    return pdf_file(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<<%s>>/Contents 4 0 R>>" % resources,
            content,
        ]
    )


ENCRYPTED = (
    b"/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -44/O<" + b"28" * 32 + b">/U<" + b"11" * 32 + b">>>/ID[<00><00>]"
)
SCAN = pdf([b"q 612 0 0 792 0 0 cm /Im0 Do Q"])
CYCLE = pdf_file([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[2 0 R]>>"])


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (SCAN, DocumentWithoutText),
        (pdf([shown(lines("Secret."))], trailer=ENCRYPTED), DocumentEncrypted),
        (b"%PDF-1.7\nnothing follows", DocumentBroken),
        (b"not a PDF at all", DocumentBroken),
        (TWO[:300], DocumentBroken),
        (pdf([]), DocumentBroken),
        (tree(200), DocumentTooLarge),
        (CYCLE, DocumentBroken),
        (pdf_file([b"<</Type/Catalog/Pages 1 0 R/Kids[1 0 R]>>"]), DocumentBroken),
        (with_page(b"[" * 20_000 + b"]" * 20_000), DocumentRefused),
        (with_page(stream(b"[" * 20_000 + b"]" * 20_000 + b" TJ")), DocumentRefused),
    ],
    ids=["scan", "password", "head", "text", "cut", "no-page", "deep", "cycle", "itself", "array", "operand"],
)
def test_hostile_and_broken_files_have_their_own_errors(data: bytes, refusal: type[DocumentRefused]) -> None:
    with pytest.raises(refusal) as told:
        read(data)
    assert refusal is DocumentRefused or type(told.value) is refusal


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_a_password_is_asked_for_unless_the_file_opens_without_one(algorithm: str) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(pdf([shown(lines("Only restricted."))])))
    for password in ("", "sesame"):
        out = io.BytesIO()
        writer.encrypt(password, "owner", algorithm=algorithm)
        writer.write(out)
        if password:
            with pytest.raises(DocumentEncrypted):
                read(out.getvalue())
        else:
            assert [block.text for block in read(out.getvalue()).blocks] == ["Only restricted."]


def test_a_stream_that_unpacks_to_too_much_is_refused() -> None:
    bomb = with_page(packed(bytes(4_000_000)), b"/Font<<>>")
    assert len(bomb) < 6_000
    with pytest.raises(DocumentTooLarge, match="decompress"):
        read(bomb, ReadLimits(max_unpacked_bytes=4_000_000))


def test_more_pages_than_may_be_are_refused() -> None:
    with pytest.raises(DocumentTooLarge, match="max_pages"):
        read(TWO, ReadLimits(max_pages=1))
