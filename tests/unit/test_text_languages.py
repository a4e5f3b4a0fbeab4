"""The language of a question: of an author who did not train the classifier, and of texts that mix scripts."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.text.characters import normalised, unaccented
from cicada.text.detection import TOLD_APART, indexed_language, language_of
from cicada.text.languages import canonical
from cicada.text.tokens import tokens

DATA = Path(__file__).resolve().parents[2] / "training" / "data"
SHORT_WORDS = 4


@cache
def questions() -> tuple[tuple[str, str], ...]:
    """The questions of the tuning author with their languages, each once."""
    lines = [line for path in sorted(DATA.glob("*/corelli.jsonl")) for line in path.open(encoding="utf-8")]
    told = [json.loads(line) for line in lines]
    asked = [
        (one[name], canonical(one["language"])) for one in told for name in ("query", "earlier", "asked") if name in one
    ]
    return tuple(dict.fromkeys(asked))


def bare(text: str) -> str:
    return unaccented(" ".join("".join(sign if sign.isalnum() else " " for sign in text.lower()).split()))


def right(found: list[tuple[str, str]]) -> float:
    return sum(language_of(text) == language for text, language in found) / len(found)


@pytest.mark.parametrize("language", [*TOLD_APART, "jpn", "zho"])
def test_the_questions_of_an_author_who_did_not_train_it_are_told_by_language(language):
    mine = [one for one in questions() if one[1] == language]
    assert len(mine) > 180
    assert right(mine) >= 0.98
    assert right([one for one in mine if len(one[0].split()) > SHORT_WORDS] or mine) >= 0.985


@pytest.mark.parametrize("language", TOLD_APART)
def test_so_are_those_of_few_words_and_those_typed_in_haste(language):
    mine = [one for one in questions() if one[1] == language]
    assert right([one for one in mine if len(one[0].split()) <= SHORT_WORDS]) >= 0.9
    assert right([(text.upper(), told) for text, told in mine]) >= 0.98
    assert right([(bare(text), told) for text, told in mine if bare(text)]) >= 0.965


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "eng"),
        ("12345 !?", "eng"),
        ("¿Dónde está?", "spa"),
        ("donde esta la llave", "spa"),
        ("Wer war's?", "deu"),
        ("pourquoi ça", "fra"),
        ("Gdzie jest manometr i kto go widział, nie wiem czy był tam.", "pol"),
        ("Waar is het meetinstrument en wie heeft het gezien in de zaal?", "nld"),
        ("Где ключ?", "rus"),
        ("Energiprojekt AB公司位于何处?", "zho"),
        ("What does 勇気 mean here?", "eng"),
        ("Tovinさんは誰ですか", "jpn"),
        ("열쇠는 어디에 있습니까", "kor"),
        ("أين المفتاح Tovin", "ara"),
        ("איפה המפתח", "heb"),
        ("ใครถือกุญแจ", "tha"),
        ("चाबी कहाँ है", "hin"),
    ],
)
def test_the_script_and_the_spelling_tell(text, language):
    assert language_of(text) == language


def test_names_alone_are_in_no_language():
    for name in ("Tovin Ashgrove", "Ilse Brandt", "Corelli", "Mme Duval"):
        assert language_of(name, by_frequent_words=True) == "eng"
        assert language_of(name, otherwise="jpn", by_frequent_words=True) == "jpn"
    assert language_of("Wo ist Ilse Brandt?", by_frequent_words=True) == "deu"


def test_only_what_comes_into_question_is_told():
    assert language_of("Waar is het meetinstrument?", among=("nld", "eng")) == "nld"
    assert language_of("Onde está o manômetro?", among=("eng", "spa")) in {"eng", "spa"}
    assert language_of("Где ключ?", among=("eng", "deu"), otherwise="deu") == "deu"
    assert language_of("Wo ist der Schlüssel?", among=("jpn",), otherwise="jpn") == "jpn"


@given(st.text(max_size=200), st.sets(st.sampled_from([*TOLD_APART, "nld", "jpn", "rus"])), st.booleans())
@settings(max_examples=100)
def test_any_text_is_in_one_of_the_languages_that_come_into_question(text, among, by_words):
    found = language_of(text, tuple(among), "eng", by_frequent_words=by_words)
    assert found in among | {"eng"} if among else found
    assert found == language_of(text, tuple(among), "eng", by_frequent_words=by_words)
    assert indexed_language(tokens(normalised(text)))
