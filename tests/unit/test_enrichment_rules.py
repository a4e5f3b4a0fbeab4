"""Names and identifiers by rules: rather none than a wrong one, in any language."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.enrichment import by_rules, codes_by_rules, measure, read_labelled
from cicada.corpus.documents import Document, DocumentBlock
from cicada.ingest.enrichment.codes import MAX_CODES, codes_of
from cicada.ingest.enrichment.names import MAX_ENTITIES, Names, names_of


def found(*texts: str, blocks: tuple[DocumentBlock, ...] = (), speakers: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    names = names_of(Document("s", "t", "text", "d", blocks), texts, speakers)
    return [names.of(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("Pump PX-210, drive MPX4250A and card 6ES7-214-1AG40.", ("PX-210", "MPX4250A", "6ES7-214-1AG40")),
        (
            "ORA-00942, 0x80070005, ERR_NO_DISK and AUTH_TIMEOUT.",
            ("ORA-00942", "0x80070005", "ERR_NO_DISK", "AUTH_TIMEOUT"),
        ),
        ("ISO/IEC 27001:2022, DIN EN 1090, RFC 6455.", ("ISO/IEC 27001:2022", "DIN EN 1090", "RFC 6455")),
        (
            "Diagnosis J45.901; id 123e4567-e89b-12d3-a456-426614174000.",
            ("J45.901", "123e4567-e89b-12d3-a456-426614174000"),
        ),
        ("部品PX-310を交換。", ("PX-310",)),
        ("GET /api/X-9912, https://a.example/QQ-1234, ab-12@x.example, C:\\LOG\\PX-210", ()),
        ("COVID-19, UTF-8, SHA-256, MP3, A4, H2O, CO2, B12, FY2024, Q3-2024, 2024-Q1, W12-2024", ()),
        ("24-HOUR, 120V-60HZ, 12-JAN-2024, 20TH, 2024-01-31, 555-1234, v2.10.3", ()),
        ("No code at all.", ()),
    ],
)
def test_codes_are_told_by_the_families_of_their_patterns(text, codes):
    assert codes_of(text) == codes


def test_a_code_is_told_once_and_a_text_has_a_bound():
    assert codes_of("PX-210, PX-210") == ("PX-210",)
    assert len(codes_of(" ".join(f"PX-{n}" for n in range(100, 200)))) == 32


def test_a_name_is_capitalised_where_a_capital_says_something():
    assert found("The letter was for Tamsin Oake of Lowmoor.", "Nothing was for Oake. Lowmoor slept.") == [
        ("Tamsin Oake", "Lowmoor"),
        ("Oake", "Lowmoor"),
    ]


def test_the_beginning_of_a_sentence_proves_nothing_by_itself():
    assert found("Valves leak. Pumps stop. Rust comes.") == [()]
    assert found("Rust is everywhere. Nobody saw Rust leave.", "They met Rust.") == [("Rust",), ("Rust",)]


def test_what_the_document_also_writes_small_is_no_name():
    assert found("The Company pays. The company is small. Ask the Company.") == [()]


def test_titles_shouts_dates_and_references_are_no_names():
    assert (
        found("How To Start The Pump", "STOP THE PUMP NOW", "It rained on Monday in May.", "It is in Section 4.")
        == [()] * 4
    )


def test_headings_prove_nothing_and_cells_of_naming_columns_do():
    blocks = (
        DocumentBlock("heading", "Bypass Valve And Main Pump"),
        DocumentBlock("paragraph", "It turns."),
        DocumentBlock("row", "Owner: Ann Lee\nPart: Brass Valve", fields=(("Owner", "Ann Lee"), ("Part", "brass"))),
    )
    assert found("Owner: Ann Lee\nPart: Brass Valve", "The Main Pump turns.", blocks=blocks) == [("Ann Lee",), ()]


def test_honorifics_possessives_and_particles():
    text = "We met Mrs Sallow, Captain Ilse Brandt's crew and Vincent van Dorn at the University of Bergen."
    assert found(text) == [("Sallow", "Ilse Brandt", "Vincent van Dorn", "University of Bergen")]


def test_speakers_are_known_and_narrators_are_nobody():
    assert found("Ren laughed.", "narrator", speakers=("Ren", "Narrator")) == [("Ren",), ()]


def test_german_nouns_are_no_names():
    text = "Die Pumpe wurde von Anna Weber geprüft. Der Motor der Pumpe war kalt, und das Wasser im Tank auch."
    assert found(text) == [("Anna Weber",)]


def test_scripts_without_capitals_have_no_nonsense():
    assert found("田中さんが来た。皆さん、サーバーを再起動してください。ミゲル・サントスも来た。") == [
        ("田中", "ミゲル・サントス")
    ]
    assert found("请先关闭阀门。水泵由工程师检查。", "안녕하세요. 물이 없다.", "שלום לכולם.", "ประเทศไทย") == [()] * 4


def test_a_longer_name_hides_those_inside_of_it():
    assert Names(["Ansel", "Lake Ansel"]).of("Lake  Ansel and Ansel, not Anselm.") == ("Lake Ansel", "Ansel")


def test_the_rules_hold_on_sentences_that_they_were_not_made_on():
    sentences = read_labelled()
    names = measure(by_rules(sentences), [sentence.entities for sentence in sentences])
    codes = measure(codes_by_rules(sentences), [sentence.codes for sentence in sentences])
    assert names.precision >= 0.85
    assert names.recall >= 0.85
    assert codes.precision >= 0.95
    assert codes.recall >= 0.95


LONG = 200_000
"""Characters: what is looked through from each of them to the end is not done within the tests' time."""


@pytest.mark.parametrize(
    "text",
    [
        "a1" * (LONG // 2) + ";. Next",
        "Mr. Ann of Lee and " * (LONG // 19),
        "." * LONG + "x",
        ('."' * (LONG // 2)) + "x",
        "A" + "1" * LONG + "_",
        "a" * LONG + " and/or",
        "a." * (LONG // 2) + " and/or",
        " ".join(f"met Ann L{'o' * (n % 60)}{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}," for n in range(LONG // 50)),
    ],
    ids=["hex", "honorifics", "dots", "quotes", "digits", "letters", "points", "names"],
)
def test_no_text_is_looked_through_from_each_of_its_characters(text: str):
    assert len(names_of(Document("s", "t", "text", "d", ()), [text]).of(text)) <= MAX_ENTITIES
    assert len(codes_of(text)) <= MAX_CODES


@given(st.lists(st.text(max_size=120), max_size=5))
@settings(max_examples=80)
def test_whatever_stands_in_a_text_what_is_found_stands_there(texts: list[str]):
    for text, names in zip(texts, found(*texts), strict=True):
        flat = " ".join(text.split())
        assert all(name in flat for name in names)
        assert all(code in text for code in codes_of(text))
