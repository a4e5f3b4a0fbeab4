"""Numbers and their units, in any language; raised digits are not joined to what they stand on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.text.numbers import quantities
from cicada.text.quotes import holds, plain, quotations
from cicada.text.sentences import sentences
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
        ("at 02:15", [("2:15", "")]),
    ],
)
def test_a_number_is_read_with_its_unit(text, found):
    assert read(text) == found


def test_measures_of_one_length_are_one():
    hour, minutes = quantities("1 hour")[0], quantities("60 minutes")[0]
    assert hour.measure == minutes.measure
    assert quantities("61 minutes")[0].measure != hour.measure


@given(st.text(max_size=120))
@settings(max_examples=300)
def test_any_text_is_read(text):
    for one in quantities(text, doubtful=True):
        assert one.value
        assert one.measure is not None
    assert "".join(sentences(text)) == text
    assert set(content_words(text)) <= set(words_of(text))
    assert ways_of_asking(text) == ways_of_asking(text)
    for quote in quotations(f"He said “{text}”."):
        assert plain(quote)
    holds(text, text)
