"""Every public function of ``cicada.text`` over any text: total, and true to what it says of itself."""

from __future__ import annotations

import ast
import re
import unicodedata
from array import array
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cicada.text
from cicada.text import characters
from cicada.text.characters import (
    clusters,
    is_unspaced,
    is_wordlike,
    katakana_in,
    main_script,
    marks,
    most_used,
    pairs,
    script_of,
    spaced_letter,
    stands_in,
    word_pattern,
    written_as,
    written_word,
)
from cicada.text.detection import indexed_language, language_of
from cicada.text.features import features_of, spelling_of
from cicada.text.features import plain as featured
from cicada.text.languages import STEMMED, canonical, script_of_language
from cicada.text.linear import LinearClassifier, dumped
from cicada.text.names import bare_key, capitalised_in, name_words, spelling_key
from cicada.text.numbers import digits_in, quantities
from cicada.text.sameness import can_be_compared, may_be_same, same_question
from cicada.text.sentences import (
    comparable_quotation,
    contains_quotation,
    opens_sentence,
    pieces,
    quotations,
    sentences,
    unquoted,
    without_item_sign,
    without_quotations,
)
from cicada.text.terms import accent_folded, language_for, stemmed, terms_of
from cicada.text.tokens import estimated_tokens, share_of_tokens, tokens, written_tokens
from cicada.text.visible import is_blank, is_unseen, visible
from cicada.text.word_lists import any_word
from cicada.text.words import (
    all_words,
    content_words,
    foreign_words,
    identifier_words,
    inflects,
    is_among,
    rough_stems,
    ways_of_asking,
    words_of,
)
from cicada.text.words import (
    quotes as quotes_words,
)

FRAGMENTS = (
    *("Who locked the boathouse?", "Dr. Quell said: “No!”", "Wer war's?", "l'avion", "¿Qué pasó?", "10²", "2^30"),
    *("½ litre", "H₂O", "鍵はどこ？", "钥匙在哪里。", "열쇠", "أين المفتاح؟", "مِفْتَاح", "איפה המפתח", "שָׁלוֹם"),
    *("ใครถือกุญแจ", "चाबी कहाँ है।", "क्\u200dष", "می\u200cخواهم", "👩\u200d👧\u200d👦", "🇯🇵", "e\u0301\u0302", "\u0301"),
    *("\ud800", "\udfff", "\u200d", "\u200b", "\ufe0f", "İı", "ß", "ﬁ", "Ⅷ", "①", "١٢٣", "１２", "1,500 m", "[3]"),
    *("- ", "\n\n", "\t", " ", "…", "C++", "ERR_42", "a@b.c", "»"),
)
anything = st.text(st.characters(), max_size=60)
texts = st.one_of(anything, st.lists(st.one_of(st.sampled_from(FRAGMENTS), anything), max_size=8).map("".join))
digits = st.text("0123456789", min_size=1, max_size=5)
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
languages = st.sampled_from(["", "und", *sorted(STEMMED), "jpn", "zho", "vie", "tha"])

FOLDER = Path(cicada.text.__file__).parent
SOURCE = Path(__file__).read_text(encoding="utf-8")


def public_functions() -> list[tuple[str, str]]:
    found = []
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found.append((path.stem, node.name))
    return found


def told(text: str) -> list[str]:
    return [sign for sign in text if sign.isalnum()]


@pytest.mark.parametrize(("module", "name"), public_functions())
def test_every_public_function_is_held_to_a_property_here(module, name):
    tree = ast.parse(SOURCE)
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == f"cicada.text.{module}"
        for alias in node.names
        if alias.name == name
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    assert imported & used or f"{module}.{name}" in used or (module, name) == ("word_lists", "word_lists")


@given(texts)
@settings(max_examples=150)
@example("e\u200b\u0301")
@example("\u0345\u0300")
@example("ǰ")
@example("ß\u0301")
@example("Μαΐου")
def test_normal_forms_stay_what_they_are(text):
    for form in (
        characters.well_formed,
        characters.compatible,
        characters.composed,
        characters.normalised,
        characters.compared,
        characters.folded,
        characters.unaccented,
        comparable_quotation,
        featured,
        visible,
        spelling_key,
    ):
        once = form(text)
        assert form(once) == once, form.__name__
    assert characters.normalised(characters.normalised(text, dotless_i=True)) == characters.normalised(
        text, dotless_i=True
    )
    assert told(characters.raised_apart(text)) == told(text)
    assert not any(
        unicodedata.category(sign) == "Cs" for sign in characters.well_formed(text) + characters.normalised(text)
    )
    assert not any(is_unseen(sign) for sign in visible(text) if sign not in "\n\t\u200c\u200d")
    assert is_blank(text) == all(map(is_blank, text)) == is_blank(visible(text))
    assert bare_key(text) == bare_key(text.strip())
    assert canonical(canonical(text)) == canonical(text)
    assert script_of_language(canonical(text))


@given(digits, digits, st.sampled_from((RAISED, LOWERED)))
def test_raised_digits_are_not_joined_to_what_they_stand_on(base, above, table):
    apart, joined = f"{base}{above.translate(table)}", f"{base}{above}"
    for read in (characters.compared, all_words, words_of, digits_in, comparable_quotation):
        assert read(f"it is {apart}") != read(f"it is {joined}"), read.__name__
    assert not same_question(f"what is {apart}", f"what is {joined}")
    assert not same_question(f"what is {base}^{above}", f"what is {joined}")
    assert not quotes_words(f"it is {apart}", joined)
    assert not quotes_words(f"it is {joined}", apart)
    assert not contains_quotation(f"it is {apart} m", joined)
    assert digits_in(apart) == [base, above]
    assert joined not in [one.shown for one in quantities(f"it is {apart} long")]


@given(texts)
@settings(max_examples=120)
def test_no_letter_and_no_digit_is_lost_by_taking_words_apart(text):
    comparable = characters.normalised(text)
    assert told("".join(tokens(comparable))) == told(comparable)
    assert told("".join(all_words(text))) == told(characters.compared(text))
    assert told("".join(word_pattern().findall(text))) == told(text)
    assert told("".join(written_word().findall(text))) == told(text)
    for word, start in written_tokens(text):
        assert text[start : start + len(word)] == word
    for named in name_words(text):
        assert text[named.start : named.end] == named.text
        assert named.capital == named.text[0].isupper()
    assert sum(map(len, identifier_words(text))) >= sum(sign.isalpha() or sign.isdecimal() for sign in text)
    assert set(content_words(text)) <= set(words_of(text))
    assert ways_of_asking(text) <= ways_of_asking(f"{text} {text}")
    assert all(rough_stems(text))
    assert set(capitalised_in(text)) <= set(re.findall(r"[^\W\d_][\w'’-]*", text))
    assert all(run in text for run in katakana_in(text))
    assert re.fullmatch(f"(?:{spaced_letter()}|.)*", text, re.DOTALL)
    assert re.compile(f"[{marks()}]").search("a") is None


def test_the_combining_marks_are_those_that_unicode_has_and_this_python_knows():
    listed = {chr(code) for code in range(0x1F000) if re.match(f"[{marks()}]", chr(code))}
    known = {chr(code) for code in range(0x1F000) if unicodedata.category(chr(code))[0] == "M"}
    assert known <= listed
    assert {unicodedata.category(sign) for sign in listed - known} <= {"Cn"}, "a newer Unicode may assign them"


@given(texts, texts)
@settings(max_examples=120)
def test_what_is_quoted_stands_there(text, other):
    mine = all_words(text)
    assert quotes_words(text, text) == bool(mine)
    assert quotes_words(f"{other} {text} {other}", text) == bool(mine)
    assert foreign_words(text, text) == ()
    assert set(foreign_words(text, other)) == set(mine) - set(all_words(other))
    assert unquoted(text) in text
    assert unquoted("«Where is it?»") == "Where is it?"
    for inside in quotations(text):
        assert inside in text
    assert Counter(told(without_quotations(text))) <= Counter(told(text))
    contains_quotation(other, text)
    assert stands_in(text, other) <= (other in text)
    written = written_as(text, other)
    assert written is None or (written in text and written.casefold() == other.casefold()) or not other.isascii()
    assert contains_quotation(f"She said “The key is here.” {other}", "The key is here")


@given(texts, texts)
@settings(max_examples=120)
def test_the_same_question_is_told_from_both_sides(one, other):
    assert same_question(one, other) == same_question(other, one)
    assert may_be_same(one, other) == may_be_same(other, one)
    assert may_be_same(one, one)
    assert same_question(one, one) == same_question(one, f" {one}\n")
    assert can_be_compared(one) in (True, False)
    assert not can_be_compared(f"{one}\u200b")


SENTENCES = (
    *("Mara locked the gate.", "Who was it?", "Sie ging fort!", "Où est la clé ?", "¿Quién fue?", "鍵はどこですか？"),
    *("钥匙在这里。", "أين المفتاح؟", "המפתח כאן.", "चाबी यहाँ है।", "Ключ здесь.", "열쇠는 여기 있다."),
    *("👩\u200d👧 came home.", "It took 10² days."),
)


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5))
def test_sentences_of_several_languages_are_taken_apart_where_they_end(said):
    assert [one.strip() for one in sentences(" ".join(said))] == said


@given(texts, st.integers(-3, 80))
@settings(max_examples=120)
def test_sentences_and_pieces_joined_are_the_text(text, at):
    assert "".join(sentences(text)) == text
    assert all(one for one in sentences(text))
    assert text.endswith(without_item_sign(text))
    assert opens_sentence(text, 0)
    assert opens_sentence(f"{text}. Now", len(text) + 2)
    assert opens_sentence(text, max(0, min(at, len(text)))) in (True, False)
    for limit in (1, 5, 40):
        cut = list(pieces(text, limit))
        assert "".join(cut) == text
        assert all(estimated_tokens(piece) <= max(limit, 1) or len(piece) == 1 for piece in cut)
    assert share_of_tokens(text) + share_of_tokens(text) == pytest.approx(share_of_tokens(text + text))


def test_no_piece_takes_a_character_apart():
    for sign in ("👩‍👧‍👦", "e\u0301", "क्‍ष", "❤️"):
        assert all(piece == sign or sign in piece for piece in pieces(sign * 9, len(sign)))


NUMBERS = ("14 days", "vierzehn Tage", "treinta y dos litros", "3 %", "$6", "二百十三", "１２ kg", "10² m")


@given(st.lists(st.sampled_from(NUMBERS), max_size=4))
def test_numbers_of_several_languages_are_read_one_after_another(said):
    alone = [(one.value, one.unit) for text in said for one in quantities(text)]
    assert [(one.value, one.unit) for one in quantities(". ".join(said))] == alone


@given(texts)
@settings(max_examples=120)
def test_any_text_has_numbers_that_can_be_compared(text):
    for one in (*quantities(text), *quantities(text, doubtful=True)):
        assert one.value
        assert one.start < one.end
        assert one.measure == one.measure
    assert all(run.isdecimal() for run in digits_in(text))


@given(texts)
@settings(max_examples=100)
def test_any_text_has_a_script_and_a_language(text):
    names = {script_of(letter) for letter in text}
    assert main_script(text) in names | {"latin", "kana"}
    assert most_used(Counter(map(script_of, text))) in names | {"latin", "kana"}
    assert language_of(text)
    assert indexed_language(tokens(characters.normalised(text)))
    assert "".join(clusters(text)) == text
    assert len(pairs(clusters(text))) == max(0, len(clusters(text)) - 1)
    assert all(is_wordlike(letter) <= is_unspaced(letter) for letter in text)


@given(texts, languages)
@settings(max_examples=120)
def test_any_token_is_found_by_terms(text, language):
    for token in tokens(characters.normalised(text)):
        terms = terms_of(token, language)
        assert terms == terms_of(token, language)
        assert terms.parts
        assert all(terms.parts)
        assert terms.width >= len(terms.parts)
        assert accent_folded(token, language)
        assert stemmed(token, language)
        speaker = language_for(token, language)
        assert speaker is None or speaker.code in STEMMED


@given(texts, texts)
@settings(max_examples=100)
def test_forms_of_one_word_begin_alike(one, other):
    assert inflects(one, other) <= (one[:1] == other[:1])
    assert is_among(one, [one, other])
    assert is_among(one, [other]) == (one == other or inflects(one, other))


@given(texts, st.lists(st.text(max_size=8), max_size=3))
@settings(max_examples=100)
def test_features_are_made_of_any_text_and_within_bounds(text, beside):
    for featuring in (features_of, spelling_of):
        found = featuring(text, 1_000, beside)
        assert found == featuring(text, 1_000, beside)
        assert found.features
        assert len({feature.bucket for feature in found.features}) == len(found.features)
        assert all(0 <= one.bucket < 1_000 and -1 <= one.word < max(1, len(found.words)) for one in found.features)


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=20, unique=True), texts)
@settings(max_examples=100)
def test_a_models_file_is_read_as_it_was_written(tmp_path_factory, rows, text):
    rows = sorted(rows)
    weights = array("b", [((row + at) % 255) - 127 for row in rows for at in range(2)])
    path = tmp_path_factory.mktemp("models") / "model.bin"
    path.write_bytes(dumped(["a", "b"], 5_001, 0.5, 1.0, rows, weights))
    read = LinearClassifier.read(path)
    assert read.decide(text) == LinearClassifier(["a", "b"], 5_001, 0.5, 1.0, rows, weights).decide(text)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8), min_size=1, max_size=5
    )
)
def test_any_of_some_words_is_matched(words):
    pattern = re.compile(any_word(words))
    for word in words:
        assert pattern.fullmatch(word.replace("-", " "))
