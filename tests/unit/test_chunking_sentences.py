"""Sentences and pieces: nothing is lost, and what looks like an end is told from an end."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.text.sentences import MAX_ENCLOSED_CHARS, pieces, sentences
from cicada.text.tokens import estimated_tokens


def split(text: str) -> list[str]:
    return [sentence.strip() for sentence in sentences(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["The ferry left.", "Nobody saw it!", "Why?", "It was dark…", "So be it."],
        ["It costs $3.14 at shop.example.com, v2.0.1 included.", "That is cheap."],
        ["Dr. Marsh met Mrs. Oak at St. Ives, e.g. on Jan. 5, cf. p. 12 and Fig. 3.", "It rained."],
        ["It was built by Hale & Co. in the U.S. in 1904.", "It stands."],
        ["He lives in the U.S.", "She does not."],
        ["The report is by J. R. Vane and others.", "Read it."],
        ["They came at 6 p.m. on foot.", "They left at 9 p.m.", "The door was open."],
        ["We need rope, oil, etc. for the boat.", "Bring it."],
        ["The answer was no.", "Then he left.", "Number No. 5 is lost."],
        ['"Is it true?" she asked.', "He nodded."],
        ['He said, "It is late. We must go."', "Then he went."],
        ["He pointed (see above. It is there) and left.", "So did we."],
        ["Am 3. Mai kam z. B. Herr Dr. Müller.", "Er blieb bis ca. 18 Uhr.", "Im 19. Jahrhundert war das anders."],
        ["„Ich gehe.“", "Er ging."],
        ["M. Dupont a dit « Oui. »", "Elle est partie, cf. p. 4.", "Fin."],
        ["¿Dónde está el Sr. Pérez?", "¡Aquí!", "Bien."],
        ["Это д-р Иванов, т. е. врач.", "Он живёт на ул. Садовой."],
        ["他说：“你好。”", "然后走了。", "真的吗？", "是的！"],
        ["彼は「はい。そうです。」と言った。", "そして帰った。"],
        ["यह घर है।", "वह नदी है।"],
        ["ما هذا؟", "هذا كتاب."],
        ["Τι ώρα είναι;", "Είναι τρεις."],
        ["1. Close the cock.", "2. Open the door."],
        ["the slip was small .", "see ref . 3 for the flow .", "it was large ."],
        ["i went home.", "it rained all night.", "nobody came."],
    ],
    ids=lambda expected: expected[0][:24],
)
def test_sentences_end_where_a_reader_would_say_so(expected: list[str]) -> None:
    unspaced = any("\u3000" <= sign <= "\uffef" for sign in expected[0])
    lines = expected[0][:2] == "1."
    assert split(("" if unspaced else "\n" if lines else " ").join(expected)) == expected


def test_an_empty_line_and_a_lists_item_begin_a_sentence_and_a_wrapped_line_does_not() -> None:
    assert split("Fees of\nthe house\n\nWhat it costs\n- a bed\n- a boat\n2) and food") == [
        "Fees of\nthe house", "What it costs", "- a bed", "- a boat", "2) and food",
    ]  # fmt: skip


def test_a_quotation_that_goes_on_too_long_is_split() -> None:
    text = f"“{'It went on. ' * (MAX_ENCLOSED_CHARS // 6)}”"
    assert len(split(text)) > 10


TEXTS = st.text(st.sampled_from("aB1 .!?…,;:\n\"'“”„«»()[]-•。？」「éσ;ß\u0301\u200d🦀人と"), max_size=200)


@given(TEXTS)
@settings(max_examples=200)
def test_joined_the_sentences_are_the_text_and_none_but_the_only_one_is_blank(text: str) -> None:
    found = sentences(text)
    assert "".join(found) == text
    assert len(found) < 2 or all(sentence.strip() for sentence in found[:-1])


@given(TEXTS, st.integers(5, 40))
@settings(max_examples=150)
def test_pieces_keep_the_limit_and_joined_are_the_text(text: str, limit: int) -> None:
    found = list(pieces(text, limit))
    assert "".join(found) == text
    assert all(estimated_tokens(piece) <= limit for piece in found)


def test_a_long_sentence_is_cut_between_clauses_or_else_between_words() -> None:
    clauses = list(pieces("the lamp was lit and trimmed, " * 30, 50))
    assert len(clauses) > 3
    assert all(piece.endswith(", ") for piece in clauses[:-1])
    words = list(pieces("lantern " * 100, 50))
    assert len(words) > 3
    assert all(piece.endswith("lantern ") for piece in words[:-1])


def test_a_word_without_end_is_cut_between_characters_as_people_see_them() -> None:
    found = list(pieces("e\u0301" * 60, 20))
    assert len(found) > 3
    assert not any(unicodedata.combining(piece[0]) for piece in found)
