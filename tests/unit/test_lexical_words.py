"""From text to terms: every script, codes, folding, stems, and whose stems they are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.index.lexical.query_parser import Phrase, Prefix, QueryAnalyzer, QueryTerm
from cicada.text.characters import normalised
from cicada.text.detection import indexed_language
from cicada.text.frequent import FREQUENT
from cicada.text.languages import STEMMED, canonical
from cicada.text.terms import terms_of
from cicada.text.tokens import MAX_TOKEN_CHARS, tokens


def parts(text: str, language: str = "eng") -> list[str]:
    """The terms of a text by position, without their languages' tags."""
    read = tokens(normalised(text, dotless_i=language == "tur"))
    return [term.partition("\t")[0] for token in read for term in terms_of(token, language).parts]


def codes(text: str) -> list[str]:
    """What is kept whole beside its parts."""
    return [code for token in tokens(normalised(text)) for code, _ in terms_of(token, "eng").beside]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("eng", "The gauges were LEAKING.", "the gaug were leak"),
        ("eng", "Don't touch the dog’s bowl, O'Neill!", "dont touch the dog bowl oneil"),
        ("eng", "well-known and/or unknown", "well known and or unknown"),
        ("eng", "U.S.A. and N.A.T.O", "usa and nato"),
        ("eng", "1,000,000 people", "1000000 peopl"),
        ("eng", "ｆｕｌｌ ｗｉｄｔｈ ﬁne", "full width fine"),
        ("eng", "na\u00efve nai\u0308ve naive", "naiv naiv naiv"),
        ("eng", "zero\u200bwidth soft\u00adhyphen", "zerowidth softhyphen"),
        ("deu", "Die Häuser der Straße", "die haus der strass"),
        ("fra", "L'élève n'est pas au café", "elev est pas au caf"),
        ("ita", "dell'arte un'amica", "dell arte amic"),
        ("spa", "los niños del año", "los niñ del año"),
        ("swe", "hästarna på ön", "häst på ön"),
        ("tur", "İstanbul'da ISPANAK", "istanbul da ıspanak"),
        ("vie", "tiếng Việt", "tiếng việt"),
        ("rus", "Ёлки новый YouTube", "елк нов youtub"),
        ("ukr", "мій п'ять", "мій пять"),
        ("ell", "Ο δρόμος", "ο δρομ"),
        ("heb", "שָׁלוֹם", "שלום"),
        ("ara", "الكِتَابُ", "كتاب"),
        ("fas", "٣ ۴ کتاب", "3 4 كتاب"),
        ("jpn", "東京タワー", "東京 京タ タワ ワー"),
        ("jpn", "ﾀﾜｰ と犬", "タワ ワー と犬"),
        ("zho", "水，NFL 拦截", "水 nfl 拦截"),
        ("kor", "학교에서 책", "학교 교에 에서 책"),
        ("tha", "น้ำ", "น้ํา"),
    ],
)
def test_texts_become_terms(language, text, expected):
    assert parts(text, language) == expected.split()


@pytest.mark.parametrize("language", ["hin", "tam", "hye", "nep"])
def test_vowel_signs_stay_inside_their_words(language):
    text = {"hin": "किताबें", "tam": "புத்தகம்", "hye": "գրքերը", "nep": "किताबहरू"}[language]
    assert len(parts(text, language)) == 1


@pytest.mark.parametrize(
    ("text", "whole", "expected"),
    [
        ("P0700", [], "p0700"),
        ("AWS::S3::Bucket", ["aws::s3::bucket"], "aw s3 bucket"),
        ("ep2-0029.", ["ep2-0029"], "ep2 0029"),
        ("version 1.2.3", ["1.2.3"], "version 1 2 3"),
        ("3,14 or 3.14", ["3,14", "3.14"], "3 14 or 3 14"),
        ("max_row_count", ["max_row_count"], "max row count"),
        ("me@example.com", ["me@example.com"], "me exampl com"),
        ("C++, C# and C", ["c++", "c#"], "c c and c"),
        ("COVID-19", ["covid-19"], "covid 19"),
        ("a long-winded one", [], "a long wind one"),
    ],
)
def test_codes_are_kept_whole_and_found_by_their_parts(text, whole, expected):
    assert codes(text) == whole
    assert parts(text) == expected.split()


def test_a_character_that_can_be_a_word_is_one_beside_its_pairs():
    assert terms_of("犬が好き", "jpn").beside == (("犬", 0), ("好", 2))
    assert [term for term, _ in terms_of("책을", "kor").beside] == ["책", "을"]
    assert terms_of("ワード", "jpn").beside == ()


def test_endless_tokens_are_cut():
    assert len(terms_of("a1" * 500, "eng").parts[0]) == MAX_TOKEN_CHARS


def test_stems_of_different_languages_are_different_terms():
    assert terms_of("notes", "fra").parts != terms_of("not", "eng").parts
    assert terms_of("p0700", "fra") == terms_of("p0700", "eng")


def test_words_in_another_script_get_that_scripts_usual_stemmer():
    assert terms_of("gauges", "jpn") == terms_of("gauges", "rus") == terms_of("gauges", "eng")
    assert terms_of("gauges", "vie").parts == ("gauges",)


@pytest.mark.parametrize("language", sorted(STEMMED))
def test_every_language_has_its_stemmer_and_its_frequent_words(language):
    for word in FREQUENT[language]:
        assert terms_of(word, language).parts


@pytest.mark.parametrize(
    ("code", "expected"),
    [("eng", "eng"), ("en", "eng"), ("pt-BR", "por"), ("zh_TW", "zho"), ("JA", "jpn"), ("nob", "nor"), ("xyz", "xyz")],
)
def test_language_codes_of_several_kinds_are_known(code, expected):
    assert canonical(code) == expected


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is the pressure gauge, and who has seen it?", "eng"),
        ("Pressure gauge replacement", "eng"),
        ("", "eng"),
        ("12345 !?", "eng"),
        ("Wo ist das Manometer, und wer hat es gesehen?", "deu"),
        ("Où est le manomètre, et qui est-ce qui l'a vu dans la salle ?", "fra"),
        ("¿Dónde está el manómetro y quién lo ha visto en la sala?", "spa"),
        ("Onde está o manômetro e quem não o viu na sala?", "por"),
        ("Dov'è il manometro e chi lo ha visto nella sala? Non è qui.", "ita"),
        ("Waar is het meetinstrument en wie heeft het gezien in de zaal?", "nld"),
        ("Var är mätaren och vem har inte sett den i salen?", "swe"),
        ("Gdzie jest manometr i kto go widział, nie wiem czy był tam.", "pol"),
        ("Где находится манометр и кто его не видел, это как?", "rus"),
        ("圧力計はどこですか", "jpn"),
        ("压力表在哪里", "zho"),
        ("압력계는 어디에 있습니까", "kor"),
        ("เครื่องวัดความดันอยู่ที่ไหน", "tha"),
        ("أين مقياس الضغط من هذا", "ara"),
        ("फोटो कहाँ है और यह किसने देखा", "hin"),
        ("Πού είναι το μανόμετρο", "ell"),
    ],
)
def test_languages_are_detected_by_script_and_frequent_words(text, language):
    assert indexed_language(tokens(normalised(text))) == language


def clauses(query: str, *languages: str) -> list[QueryTerm | Prefix | Phrase]:
    return [clause for clause, _ in QueryAnalyzer(dict.fromkeys(languages or ("eng",), 1)).clauses(query)]


def test_frequent_words_of_the_querys_language_are_left_out_unless_nothing_else_is_asked():
    assert clauses("what is the gauge") == [QueryTerm((b"gaug\ten",))]
    assert len(clauses("to be or not to be")) == 4
    term = clauses("wo ist die Katze", "deu", "eng")[0]
    assert isinstance(term, QueryTerm)
    assert term.alternatives[0] == b"katz\tde"


def test_a_word_is_looked_up_in_the_form_of_each_language_present():
    assert clauses("houses", "eng", "deu") == [QueryTerm((b"hous\tde", b"hous\ten"))]
    assert clauses("l'avion", "eng", "fra") == [QueryTerm((b"lavion\ten", b"avion\tfr"))]


def test_words_phrases_and_prefixes_are_told_apart():
    assert clauses('"pressure gauge"') == [Phrase(((0, (b"pressur\ten",)), (1, (b"gaug\ten",))))]
    assert clauses("gaug*") == [Prefix((b"gaug",), (b"gaug\ten",))]
    assert [type(clause) for clause in clauses('leak "pressure gauge" pip*')] == [
        Phrase,
        Prefix,
        QueryTerm,
        QueryTerm,
        QueryTerm,
    ]
    assert [type(clause) for clause in clauses('**bold** 2 * 3 "one" "open')] == [QueryTerm] * 5
    assert [type(clause) for clause in clauses("“pressure gauge” «leaking pipe»")] == [Phrase, Phrase]


def test_a_repeated_word_is_asked_for_twice():
    assert QueryAnalyzer({"eng": 1}).clauses("gauge gauges") == [(QueryTerm((b"gaug\ten",)), 2)]


@settings(max_examples=100)
@given(st.text(), st.sampled_from(["eng", "fra", "tur", "jpn", "vie", "xyz", ""]))
def test_any_text_gives_terms_that_the_dictionary_can_hold(text, language):
    for token in tokens(normalised(text, dotless_i=language == "tur")):
        terms = terms_of(token, language)
        offsets = {at for _, at in terms.beside} | set(range(len(terms.parts)))
        assert offsets == set(range(terms.width))
        for term in (*terms.parts, *(term for term, _ in terms.beside)):
            assert term.encode().strip(b"\t")
            assert "\0" not in term


def test_stemming_from_many_threads_at_once_gives_what_one_gives():
    words = [f"{word}{ending}" for word in ("leak", "gaug", "press") for ending in ("ing", "es", "ed", "s")] * 50
    expected = [terms_of(word, "eng") for word in words]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda word: terms_of(word, "eng"), words)) == expected
