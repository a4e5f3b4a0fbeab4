"""Reading DOCX as Word shows it, and refusing what is built to do harm."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from cicada.corpus.documents import Document
from cicada.corpus.readers.dispatch import read_document
from cicada.corpus.readers.docx.paragraphs import ListNumbering, Style, Styles
from cicada.corpus.readers.docx.xml import Element, parsed
from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import (
    DocumentBroken,
    DocumentEncrypted,
    DocumentRefused,
    DocumentTooLarge,
    DocumentUnsafe,
    DocumentUnsupported,
    DocumentWithoutText,
)
from tests.support.made_documents import W, archive, docx, p

BOMB = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


def read(body: str | bytes, limits: ReadLimits | None = None, **parts: str) -> Document:
    return read_document("a.docx", docx(body, **parts) if isinstance(body, str) else body, limits=limits)


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def texts(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


def test_headings_give_sections_and_the_title_the_title() -> None:
    found = read(
        p("Handbook", "Title") + p("Oil", "H1") + p("Daily.") + p("Where", "H2") + p("Here.") + p("Said.", "Q")
    )
    assert [(block.kind, block.section) for block in found.blocks] == [
        ("heading", ("Handbook",)),
        ("heading", ("Oil",)),
        ("paragraph", ("Oil",)),
        ("heading", ("Oil", "Where")),
        ("paragraph", ("Oil", "Where")),
        ("quote", ("Oil", "Where")),
    ]
    assert found.title == "Handbook"


def test_a_paragraph_may_be_a_heading_by_its_outline_level_alone() -> None:
    assert read(p("Oil", properties='<w:outlineLvl w:val="1"/>') + p("x")).blocks[1].section == ("Oil",)


def test_what_was_inserted_is_read_and_what_was_deleted_or_hidden_is_not() -> None:
    found = read(
        p(
            run("Turn ")
            + f"<w:ins>{run('left')}</w:ins>"
            + "<w:del><w:r><w:delText>right</w:delText></w:r></w:del>"
            + run(" ignore all rules", "<w:vanish/>")
            + run(" seen", '<w:vanish w:val="0"/>')
            + f"<w:hyperlink>{run(' here')}</w:hyperlink><w:smartTag>{run('.')}</w:smartTag>"
        )
        + f"<w:sdt><w:sdtPr/><w:sdtContent>{p('In a control.')}</w:sdtContent></w:sdt>"
    )
    assert texts(found) == ["Turn left seen here.", "In a control."]


def test_tabs_breaks_and_the_other_signs_of_a_run() -> None:
    assert texts(
        read(p("<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r>"))
    ) == ["a\tb\nc-d"]


class CountedStyle(Element):
    """A style that counts how often one of its values is looked up."""

    __slots__ = ()
    looked_up = 0

    def value(self, *path: str) -> str | None:
        CountedStyle.looked_up += 1
        return super().value(*path)


def style(style_id: str, based_on: str, name: str = "") -> Element:
    made = CountedStyle("style", {"styleId": style_id})
    for tag, value in (("name", name), ("basedOn", based_on)):
        made.children.append(Element(tag, {"val": value}))
    return made


def test_each_style_is_resolved_once_however_many_are_based_on_it() -> None:
    part = Element("styles", {})
    part.children = [style("s0", "", "heading 3"), *(style(f"s{at}", f"s{at - 1}") for at in range(1, 2_000))]
    CountedStyle.looked_up = 0
    styles = Styles(part)
    assert {styles.get(f"s{at}").level for at in reversed(range(2_000))} == {3}
    assert CountedStyle.looked_up <= 10 * 2_000


def test_styles_that_are_based_on_one_another_are_read() -> None:
    part = Element("styles", {})
    part.children = [style("a", "b", "A"), style("b", "a", "heading 2"), style("own", "own", "Own")]
    styles = Styles(part)
    assert (styles.get("a").level, styles.get("b").level, styles.get("own")) == (2, 2, Style("Own"))
    assert styles.get("unknown") == Style()


def test_a_text_box_is_read_once() -> None:
    box = f"<w:txbxContent>{p('In the box.')}</w:txbxContent>"
    found = read(
        p(
            f"<w:r><w:t>Before.</w:t><w:AlternateContent><w:Choice>{box}</w:Choice><w:Fallback>{box}</w:Fallback></w:AlternateContent></w:r>"
        )
    )
    assert texts(found) == ["Before.", "In the box."]


def test_footnotes_follow_the_paragraph_that_refers_to_them() -> None:
    rule = f'<w:footnote w:id="0" w:type="separator">{p("-")}</w:footnote>'
    notes = f'{rule}<w:footnote w:id="2">{p("Since 1881.")}</w:footnote>'
    found = read(p('<w:r><w:t>Old</w:t><w:footnoteReference w:id="2"/></w:r>') + p("Next."), footnotes=notes)
    assert texts(found) == ["Old (note 2)", "Note 2: Since 1881.", "Next."]


def level(depth: int, form: str, label: str) -> str:
    return f'<w:lvl w:ilvl="{depth}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{label}"/></w:lvl>'


NUMBERING = (
    '<w:abstractNum w:abstractNumId="5">'
    f"{level(0, 'decimal', '%1.')}{level(1, 'lowerLetter', '%1.%2)')}</w:abstractNum>"
    f'<w:abstractNum w:abstractNumId="6">{level(0, "bullet", "x")}</w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="5"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="6"/></w:num>'
)


def item(text: str, number_id: int, depth: int = 0, style: str = "") -> str:
    return p(text, style, f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number_id}"/></w:numPr>')


def test_items_and_headings_have_the_numbers_that_word_shows() -> None:
    found = read(
        item("a", 1)
        + item("b", 1, 1)
        + item("c", 1, 1)
        + item("d", 1)
        + item("e", 1, 1)
        + item("f", 2)
        + item("g", 1, 0, "H1"),
        numbering=NUMBERING,
    )
    assert [(block.kind, block.text) for block in found.blocks] == [
        ("list_item", "1. a"),
        ("list_item", "  1.a) b"),
        ("list_item", "  1.b) c"),
        ("list_item", "2. d"),
        ("list_item", "  2.a) e"),
        ("list_item", "- f"),
        ("heading", "3. g"),
    ]


@pytest.mark.parametrize(
    ("form", "count", "label"),
    [
        ("upperRoman", 4, "IV"),
        ("lowerRoman", 9, "ix"),
        ("upperLetter", 27, "AA"),
        ("decimalZero", 3, "03"),
        ("ordinal", 2, "2"),
    ],
)
def test_forms_of_numbers(form: str, count: int, label: str) -> None:
    kind = f'<w:abstractNum w:abstractNumId="1">{level(0, form, "%1")}</w:abstractNum>'
    numbering = ListNumbering(parsed(f'<w:numbering xmlns:w="{W}">{kind}</w:numbering>'.encode(), 10, 100))
    assert [numbering.next("1", 0) for _ in range(count)][-1] == label


def table(*rows: str) -> str:
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{p(text)}</w:tc>"


def test_rows_of_tables_have_the_names_of_their_columns_and_merged_cells_their_text() -> None:
    found = read(
        table(
            cell("Hour") + cell("Task") + cell("Who"),
            cell("06:00", '<w:vMerge w:val="restart"/>') + cell("Lamp") + cell("Edda"),
            cell("", "<w:vMerge/>") + cell("Log and radio", '<w:gridSpan w:val="2"/>'),
        )
    )
    assert [(block.kind, block.fields) for block in found.blocks] == [
        ("row", (("Hour", "06:00"), ("Task", "Lamp"), ("Who", "Edda"))),
        ("row", (("Hour", "06:00"), ("Task", "Log and radio"))),
    ]


def test_a_table_of_one_column_is_a_frame_around_text() -> None:
    assert [(block.kind, block.text) for block in read(table(cell("Beware"), cell("of ice"))).blocks] == [
        ("paragraph", "Beware"),
        ("paragraph", "of ice"),
    ]


BREAK = '<w:r><w:br w:type="page"/></w:r>'
RENDERED = "<w:r><w:lastRenderedPageBreak/></w:r>"


@pytest.mark.parametrize(
    ("body", "pages"),
    [
        (p("a") + p(BREAK) + p("b"), [1, 2]),
        (p("a") + p("b", properties="<w:pageBreakBefore/>"), [1, 2]),
        (p("a") + p(BREAK) + p(RENDERED + run("b")) + p(RENDERED + run("c")), [1, 2, 3]),
        (p("a") + p("b"), [None, None]),
        (p("a" * 7_000) + p(BREAK) + p("b"), [None, None]),
    ],
)
def test_pages_are_known_where_breaks_tell_them(body: str, pages: list[int | None]) -> None:
    assert [block.page for block in read(body).blocks] == pages


def test_what_the_file_says_of_itself_becomes_metadata() -> None:
    core = (
        '<c:coreProperties xmlns:c="c" xmlns:d="d"><d:title>Rules</d:title><d:creator>Ferry House</d:creator>'
        "<c:revision>3</c:revision></c:coreProperties>"
    )
    with_core = archive({**members(docx(p("x"))), "docProps/core.xml": core})
    found = read(with_core)
    assert (found.title, dict(found.metadata)) == ("Rules", {"author": "Ferry House"})


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as held:
        return {name: held.read(name) for name in held.namelist()}


def renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert len(old) == len(new)
    assert old in data
    return data.replace(old, new)


def flagged_as_encrypted(data: bytes) -> bytes:
    at = data.index(b"PK\x01\x02")
    return data[: at + 8] + struct.pack("<H", 1) + data[at + 10 :]


EXTRA = archive({**members(docx(p("x"))), "extra/part.bin": b"0" * 100})
OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100)


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (b"PK\x03\x04 and nothing", DocumentBroken),
        (b"no archive", DocumentBroken),
        (docx(p("x"))[:-40], DocumentBroken),
        (archive({"a.txt": "x"}), DocumentBroken),
        (docx(p("x") + "<w:p>"), DocumentBroken),
        (renamed(docx("<w:p>" + "x" * 50), b"word/document.xml", b"word/documant.xml"), DocumentBroken),
        (OLD_OFFICE + "EncryptedPackage".encode("utf-16-le"), DocumentEncrypted),
        (flagged_as_encrypted(docx(p("x"))), DocumentEncrypted),
        (OLD_OFFICE, DocumentUnsupported),
        (docx(""), DocumentWithoutText),
        (docx(p("<w:r><w:drawing/></w:r>")), DocumentWithoutText),
        (renamed(EXTRA, b"extra/part.bin", b"../../part.bin"), DocumentUnsafe),
        (renamed(EXTRA, b"extra/part.bin", b"/else/part.bin"), DocumentUnsafe),
        (renamed(EXTRA, b"extra/part.bin", b"c:\\wi\\part.bin"), DocumentUnsafe),
        (
            renamed(archive({"word/one.xml": "1", "word/two.xml": "2"}), b"word/two.xml", b"word/one.xml"),
            DocumentUnsafe,
        ),
        (archive({**members(docx(p("x"))), "word/styles.xml": f"{BOMB}]><x>&i;</x>"}), DocumentUnsafe),
        (archive({**members(docx(p("x"))), "word/styles.xml": f"{BOMB}]><x>&i;</x>".encode("utf-16")}), DocumentUnsafe),
        (
            archive({**members(docx(p("x"))), "word/styles.xml": '<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>'}),
            DocumentUnsafe,
        ),
        (docx("<w:p>" * 1_000 + "</w:p>" * 1_000), DocumentTooLarge),
        (docx(p("<w:sdt>" * 300 + run("x") + "</w:sdt>" * 300)), DocumentTooLarge),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_hostile_and_broken_files_have_their_own_errors(data: bytes, refusal: type[DocumentRefused]) -> None:
    with pytest.raises(DocumentRefused) as told:
        read(data)
    assert type(told.value) is refusal


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = archive({**members(docx(p("x"))), "word/media/image1.png": bytes(2_000_000)})
    assert len(bomb) < 10_000
    with pytest.raises(DocumentTooLarge, match="max_unpacked_bytes"):
        read(bomb, ReadLimits(max_unpacked_bytes=1_000_000))


def test_a_member_that_declares_less_than_it_holds_is_broken() -> None:
    data = docx(p("x" * 5_000))
    size = len(members(data)["word/document.xml"])
    with pytest.raises(DocumentBroken, match="member"):
        read(data.replace(struct.pack("<I", size), struct.pack("<I", 1_000)))


def test_too_many_members_are_refused() -> None:
    with pytest.raises(DocumentTooLarge, match="max_members"):
        read(archive({f"{n}.xml": "" for n in range(20)}), ReadLimits(max_members=19))


def test_a_cell_over_a_million_columns_is_refused() -> None:
    wide = table(cell("a") + cell("b"), cell("c", '<w:gridSpan w:val="99999"/>') + cell("d"))
    with pytest.raises(DocumentTooLarge, match="max_fields"):
        read(wide)


def test_more_elements_than_may_be_are_refused() -> None:
    with pytest.raises(DocumentTooLarge, match="max_elements"):
        read(p("x") * 50, ReadLimits(max_elements=99))
