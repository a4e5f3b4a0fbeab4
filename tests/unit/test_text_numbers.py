"""Numbers and their units, in any language; raised digits are not joined to what they stand on."""

from __future__ import annotations

import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.text.numbers import quantities
from cicada.text.sentences import comparable_quotation, contains_quotation, quotations, sentences
from cicada.text.words import content_words, ways_of_asking, words_of


def read(text):
    return [(one.value, one.unit) for one in quantities(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("14 days", [("14", "day")]),
        ("vierzehn Tage", [("14", "day")]),
        ("fünfundzwanzig Liter", [("25", "litre")]),
        ("ventitré litri", [("23", "")]),
        ("twenty-five thousand euros", [("25000", "euro")]),
        ("1,500 m and 1.5 m", [("1500", "metre"), ("1.5", "metre")]),
        ("二百十三メートル", [("213", "")]),
        ("10² and 102", [("10", ""), ("2", ""), ("102", "")]),
        ("2^30 and 230", [("2", ""), ("30", ""), ("230", "")]),
        ("$6", [("6", "dollar")]),
        ("3 %", [("3", "%")]),
        ("a loss of 31.9 million two years ago", [("31900000", ""), ("2", "year")]),
        ("二百十三。 $6", [("213", ""), ("6", "dollar")]),
        ("at 02:15", [("2:15", "")]),
        ("call 030 123 456", [("030 123 456", "")]),
        ("1,500 200 and 0'100 days", [("1,500 200", ""), ("0'100", "day")]),
    ],
)
def test_a_number_is_read_with_its_unit(text, found):
    assert read(text) == found


def test_measures_of_one_length_are_one():
    hour, minutes = quantities("1 hour")[0], quantities("60 minutes")[0]
    assert hour.measure == minutes.measure
    assert quantities("61 minutes")[0].measure != hour.measure


@given(st.text(max_size=120))
@settings(max_examples=100)
def test_any_text_is_read(text):
    for one in quantities(text, doubtful=True):
        assert one.value
        assert one.measure is not None
    assert "".join(sentences(text)) == text
    assert set(content_words(text)) <= set(words_of(text))
    assert ways_of_asking(text) == ways_of_asking(text)
    for quote in quotations(f"He said “{text}”."):
        assert comparable_quotation(quote)
    contains_quotation(text, text)


SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@given(st.integers(2, 9_999), st.integers(0, 999))
def test_an_exponent_is_never_a_part_of_the_number_that_it_stands_on(base, exponent):
    raised = f"{base}{str(exponent).translate(SUPERSCRIPTS)}"
    assert [one.value for one in quantities(f"it is {raised} high")] == [str(base), str(exponent)]
    joined = f"it is {base}{exponent} high"
    assert not contains_quotation(joined, raised)
    assert not contains_quotation(f"it is {raised} high", f"{base}{exponent}")
    assert contains_quotation(f"it is {base}^{exponent} high", raised)


@given(
    st.integers(0, 10**12 - 1), st.sampled_from([chr(code) for code in (*range(0xBC, 0xBF), *range(0x2150, 0x215F))])
)
def test_a_fraction_of_one_character_is_added_to_the_number_before_it(whole, fraction):
    shown = f"{whole or ''}{fraction}"
    ((value, unit),) = read(f"{shown} litres")
    assert abs(Decimal(value) - whole - Decimal(unicodedata.numeric(fraction))) < Decimal("0.001")
    assert unit == "litre"


IN_MANY = [
    "The tank holds 14 litres.",
    "Der Kessel fasst zwölf Liter.",
    "Cuesta treinta y dos euros.",
    "Il y a dix-sept heures.",
    "水は42リットル入る。",
    "桥长四十二米。",
    "Мост длиной 42 метра.",
    "الجسر طوله ٤٢ مترا؟",
    "पुल ४२ मीटर लंबा है।",
]


@given(st.lists(st.sampled_from(IN_MANY), min_size=1, max_size=5))
def test_a_text_in_several_languages_is_read_as_each_of_its_sentences_is(lines):
    text = "\n\n".join(lines)
    assert [one.strip() for one in sentences(text)] == lines
    assert read(text) == [number for line in lines for number in read(line)]
    assert words_of(text) == [word for line in lines for word in words_of(line)]
    assert all(contains_quotation(text, line) for line in lines)


@given(st.sampled_from(IN_MANY), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_the_form_that_a_text_is_stored_in_changes_nothing(line, form):
    stored = unicodedata.normalize(form, line)
    assert (read(stored), words_of(stored), comparable_quotation(stored)) == (
        read(line),
        words_of(line),
        comparable_quotation(line),
    )
    assert contains_quotation(stored, line)
    assert contains_quotation(line, stored)


@given(st.text(max_size=80))
def test_what_is_plain_stays_so(text):
    assert comparable_quotation(comparable_quotation(text)) == comparable_quotation(text)
