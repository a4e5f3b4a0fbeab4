"""What is plainly whole is not sent to a model, what leans is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import followups
from cicada.conversation.leaning import MOST_CHARS, is_whole, leaning, shape_of


@pytest.mark.parametrize(
    "query",
    [
        "Where did Jonas hide the key of the boathouse?",
        "¿Quién encontró la carta en el cobertizo?",
        "Warum hat der Wärter das Boot nicht gemeldet?",
        "船小屋の鍵をなくしたのは誰ですか",
        "thanks!",
        "why " * 200,
    ],
)
def test_a_whole_question_passes(query):
    assert is_whole(query)


@pytest.mark.parametrize(
    "query",
    ["And what did she say next?", "why?", "¿y por qué?", "und dann?", "et lui ?", "e depois?", "それから?", "然后呢?"],
)
def test_a_leaning_question_does_not(query):
    assert not is_whole(query)


@given(st.text(max_size=2 * MOST_CHARS))
def test_any_text_has_a_probability_and_a_shape(query):
    assert 0.0 <= leaning(query) <= 1.0
    assert shape_of(query) == shape_of(query)
    assert is_whole(query) in (True, False)


def test_the_benchmark_counts_an_author(capsys):
    assert followups.main(["--authors", "brahms", "--most", "60"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1].startswith("all")
    assert told[2].startswith("brahms")
