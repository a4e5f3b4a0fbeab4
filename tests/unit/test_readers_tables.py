"""Reading CSV and JSON: each row and record with its names."""

from __future__ import annotations

import json

import pytest

from cicada.corpus.documents import Document
from cicada.corpus.readers.dispatch import read_document
from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import DocumentBroken, DocumentTooLarge, DocumentWithoutText


def read(source: str, text: str | bytes, limits: ReadLimits | None = None) -> Document:
    return read_document(source, text.encode() if isinstance(text, str) else text, limits=limits)


def fields(document: Document) -> list[dict[str, str]]:
    return [dict(block.fields) for block in document.blocks]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_and_the_header_kept_with_each_row(delimiter: str) -> None:
    rows = [["part", "price", "note"], ["lamp", "3.50", "brass"], ["wick", "0.10", ""]]
    found = read("parts.csv", "\r\n".join(delimiter.join(row) for row in rows))
    assert [block.kind for block in found.blocks] == ["row", "row"]
    assert fields(found) == [{"part": "lamp", "price": "3.50", "note": "brass"}, {"part": "wick", "price": "0.10"}]
    assert found.blocks[1].text == "part: wick\nprice: 0.10"
    assert {block.table for block in found.blocks} == {1}


def test_quoted_cells_may_hold_delimiters_quotes_and_lines() -> None:
    found = read("a.csv", 'name,said\nEdda,"""No,"" she said,\nand left."\n')
    assert fields(found) == [{"name": "Edda", "said": '"No," she said, and left.'}]


def test_decimal_commas_do_not_count_as_delimiters() -> None:
    found = read("a.csv", "teil;preis;gewicht\nlampe;3,50;1,2\ndocht;0,10;0,1\n")
    assert fields(found)[0] == {"teil": "lampe", "preis": "3,50", "gewicht": "1,2"}


@pytest.mark.parametrize("header", ["1962,14,3", "same,same,x", ",,x"])
def test_a_first_row_that_names_nothing_is_a_row(header: str) -> None:
    found = read("a.csv", f"{header}\na,b,c\n")
    assert fields(found)[-1] == {"column 1": "a", "column 2": "b", "column 3": "c"}
    assert found.notes == ("its first row does not name the columns",)


@pytest.mark.parametrize("header", ["date,06:00,12:00", "country,2019,2020", "id,1st,2nd"])
def test_names_may_be_hours_or_years(header: str) -> None:
    found = read("a.csv", f"{header}\n1961-03-06,7 ft 2 in,8\n1961-03-07,7 ft 4 in,9\n")
    assert [name for name, _ in found.blocks[0].fields] == header.split(",")


def test_cells_beyond_the_header_are_kept() -> None:
    assert fields(read("a.csv", "a,b\n1,2,3\n4,5\n")) == [{"a": "1", "b": "2", "column 3": "3"}, {"a": "4", "b": "5"}]


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        ('"unclosed', '"unclosed'),
        ('"he said "hi" ok"', '"he said "hi" ok"'),
        ('"', '"'),
        ('""unclosed"', '""unclosed"'),
    ],
)
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_quotation_mark_that_encloses_no_cell_is_text(delimiter: str, cell: str, kept: str) -> None:
    rows = [["id", "kind", "text"], ["1", "x", '"a ""b"""'], ["2", "x", cell], ["3", "y", "c"], ["4", "y", '"d\ne"']]
    found = read("a.csv", "\r\n".join(delimiter.join(row) for row in rows))
    assert [row["text"] for row in fields(found)] == ['a "b"', kept, "c", "d e"]
    assert [row["id"] for row in fields(found)] == ["1", "2", "3", "4"]
    assert found.notes == ("a quotation mark on line 3 encloses no cell: such marks were kept as text",)


def test_a_quotation_that_is_never_closed_hides_no_delimiter() -> None:
    found = read("a.tsv", 'id\tname\ttext\n1\t"Edda\tone, two\n2\tArno\tthree, four\n3\tIda\tfive, six\n')
    assert fields(found)[0] == {"id": "1", "name": '"Edda', "text": "one, two"}
    assert len(found.blocks) == 3


@pytest.mark.parametrize("rows", ["A;1", "A;1\nB;2, 3\n" * 10_000])
def test_a_quotation_that_the_header_opens_hides_no_delimiter(rows: str) -> None:
    found = read("a.csv", f'"name;note\n{rows}')
    assert fields(found)[0] == {'"name': "A", "note": "1"}


def test_a_comma_within_quotations_is_no_delimiter() -> None:
    found = read("a.csv", '"Name, first";"Note"\n"Doe, Jane";"x"\n"Roe, Rick";"y"\n')
    assert fields(found)[0] == {"Name, first": "Doe, Jane", "Note": "x"}


def test_a_space_behind_a_quotation_is_no_fault() -> None:
    found = read("a.csv", 'a,b\n"1, 2" ,3\n')
    assert (fields(found), found.notes) == ([{"a": "1, 2", "b": "3"}], ())


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "SEP=;\r"])
def test_a_first_line_for_excel_tells_the_delimiter_and_is_no_row(line: str) -> None:
    found = read("a.csv", f"{line}\na;b,c\n1;2,3\n")
    assert (fields(found), found.notes) == ([{"a": "1", "b,c": "2,3"}], ())
    assert fields(read("a.csv", f'{line}\na;b\n1;2\n3;"4'))[1] == {"a": "3", "b": '"4'}


@pytest.mark.parametrize(("sign", "text"), [("\t", "a\tb\n1\t2\n"), ("^", "a^b\n1^2\n"), ("]", 'a]b\n1]2\n"]"')])
def test_any_sign_may_be_told_as_the_delimiter(sign: str, text: str) -> None:
    assert fields(read("a.csv", f"sep={sign}\n{text}"))[0] == {"a": "1", "b": "2"}


def test_a_name_that_only_begins_like_excels_line_is_a_name() -> None:
    assert fields(read("a.csv", "sep=,b\n1,2\n")) == [{"sep=": "1", "b": "2"}]


def test_a_header_alone_has_no_text() -> None:
    with pytest.raises(DocumentWithoutText):
        read("a.csv", "part,price\n")


def test_records_of_an_array_have_dotted_names_for_what_lies_in_them() -> None:
    found = read(
        "log.json",
        json.dumps(
            [
                {"id": 7, "ok": True, "none": None, "at": {"day": "14", "hour": {"from": 1}}, "tags": ["fog", "bell"]},
                {"id": 8, "lines": [{"sku": "A"}, {"sku": "B"}], "huge": 12345678901234567890123, "exact": 1.10},
            ]
        ).replace("1.1}", "1.10}"),
    )
    assert [block.kind for block in found.blocks] == ["record", "record"]
    assert [block.fields for block in found.blocks] == [
        (("id", "7"), ("ok", "true"), ("at.day", "14"), ("at.hour.from", "1"), ("tags", "fog, bell")),
        (
            ("id", "8"),
            ("lines.1.sku", "A"),
            ("lines.2.sku", "B"),
            ("huge", "12345678901234567890123"),
            ("exact", "1.10"),
        ),
    ]


def test_an_objects_arrays_of_objects_are_records_below_their_name() -> None:
    found = read("log.json", '{"title": "Night log", "year": 1962, "entries": [{"a": 1}, {"a": 2}]}')
    assert [(block.section, block.text) for block in found.blocks] == [
        ((), "title: Night log\nyear: 1962"),
        (("entries",), "a: 1"),
        (("entries",), "a: 2"),
    ]
    assert found.title == "Night log"


def test_json_lines_have_a_record_a_line() -> None:
    assert fields(read("a.jsonl", '{"a": 1}\n\n{"a": "x\\ny"}\r\n')) == [{"a": "1"}, {"a": "x y"}]
    assert fields(read("a.jsonl", '{"a": 1}')) == [{"a": "1"}]


@pytest.mark.parametrize("form", ["array", "lines"])
def test_a_file_of_messages_is_a_script_whose_messages_are_read_elsewhere(form: str) -> None:
    message = {"episodeId": "e", "episodeName": "E", "chapterId": "c", "messageId": "m", "speaker": "s", "textENG": "t"}
    text = json.dumps([message]) if form == "array" else json.dumps(message) + "\n" + json.dumps(message)
    found = read("script.jsonl", text)
    assert (found.doc_type, found.blocks) == ("script", ())


@pytest.mark.parametrize("first", ["{}", '{"comment": "a draft"}', "null", '"draft"'])
def test_a_file_is_a_script_if_any_record_is_a_message(first: str) -> None:
    """Its reader refuses it then, and names the line: it must not be read as a document of another kind."""
    text = f'[{first}, {{"episodeId": "e", "chapterId": "c", "messageId": "m", "speaker": "s", "textENG": "t"}}]'
    assert read("a.json", text).doc_type == "script"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1', "line 1"),
        ('{"a": 1}\n{"a": \n', "line 2"),
        ('[{"a": 1},\n {"a": }]', "line 2"),
        ('{"a": 1, "a": 2}', "duplicate"),
        ('{"a": NaN}', "NaN"),
        ("not json", "line 1"),
    ],
)
def test_what_is_not_json_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(DocumentBroken, match=told):
        read("a.json", text)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 70 + "]" * 70, '{"a":' * 70 + "1" + "}" * 70])
def test_deep_json_is_refused(text: str) -> None:
    with pytest.raises(DocumentTooLarge, match="max_depth"):
        read("a.json", text)


@pytest.mark.parametrize("source", ["a.csv", "a.json"])
def test_a_row_of_too_many_fields_is_refused(source: str) -> None:
    text = (
        json.dumps([{f"n{i}": "x" for i in range(11)}]) if source == "a.json" else ",".join(f"n{i}" for i in range(11))
    )
    with pytest.raises(DocumentTooLarge, match="max_fields"):
        read(source, text, ReadLimits(max_fields=10))


@pytest.mark.parametrize("text", ["[]", "{}", "null", '[{"a": null}]', '""'])
def test_json_that_says_nothing_has_no_text(text: str) -> None:
    with pytest.raises(DocumentWithoutText):
        read("a.json", text)
