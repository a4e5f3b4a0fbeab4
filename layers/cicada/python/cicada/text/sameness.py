"""Whether two questions are the same question, in any language: equal after normalisation and courtesies.

Cosines cannot tell: *who betrayed Mara* and *whom did Mara betray* lie at 0.98. Nor is a wording put into another one
here: what is not the same to the word may be asked of a model, see :mod:`cicada.semantic_cache.decision`.

Guards and embedding models pass over tags, variation selectors, emoji, Braille and rows of signs; a model that writes
an answer may read them, and obey. Such an answer would be found by everybody who asks the question without them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

from cicada.text.characters import compared, normalised
from cicada.text.numbers import digits_in
from cicada.text.tokens import tokens
from cicada.text.visible import SHOWN_AS_NOTHING
from cicada.text.word_lists import word_lists
from cicada.text.words import ways_of_asking

_LISTS = word_lists("cicada.text", "courtesies.json")
_READINGS_KEPT = 16_384
_SIGN = re.compile(r"[^\w\s]")
_SIGNS, _SYMBOLS = frozenset("%‰°^/*"), frozenset({"Sm", "Sc"})
"""What changes what a number or a formula says, as mathematical symbols and currencies do; tokens leave it out."""
_AT_NUMBERS = re.compile(r"(?<![\w)])[-–—](?=\s*\d)|!(?==)|(?<=\d)['\"”]+")
"""A minus, the start of an unequal sign, feet, inches, minutes."""
_ACCENTS = re.compile("(?<=[a-z])[\u0300-\u0307\u0309\u030b-\u036f]+")
"""On Latin letters, without diaeresis and ring: nobody leaves those of *schön* out, nor the marks of kana or Hindi."""


def same_question(one: str, other: str) -> bool:
    """Whether two questions are the same, word for word and sign for sign, but for case, courtesies and end marks.

    Accents may be left out by one of them altogether, as in what is typed in a hurry: *cual es* is *¿cuál es?*, and
    *ano* and *año* are two words where the other words have their accents.
    """
    first, second = _read(one), _read(other)
    if first == second:
        return bool(first[0])
    bare, other_bare = (tuple(map(_without_accents, words)) for words, _ in (first, second))
    left_out = bare == first[0] or other_bare == second[0]
    return left_out and bool(bare) and bare == other_bare and first[1] == second[1]


def may_be_same(one: str, other: str) -> bool:
    """Whether two near questions have the same numbers, negations and question words, so that it is worth asking."""
    return sorted(digits_in(one)) == sorted(digits_in(other)) and ways_of_asking(one) == ways_of_asking(other)


@lru_cache(_READINGS_KEPT)
def _read(question: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Its words, courtesies left out, and its signs."""
    plain = compared(question)
    words = _without_courtesies(tuple(tokens(plain)))
    signs = [sign for sign in _SIGN.findall(plain) if sign in _SIGNS or unicodedata.category(sign) in _SYMBOLS]
    return words, (*signs, *_AT_NUMBERS.findall(plain))


def _without_courtesies(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without the polite phrases that they begin and end with, if anything is left."""
    while (shorter := _shorter(words)) and shorter != words:
        words = shorter
    return words


def _shorter(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words:
        return words
    if begin := next((phrase for phrase in _phrases("begins") if words[: len(phrase)] == phrase), None):
        return words[len(begin) :]
    if end := next((phrase for phrase in _phrases("ends") if words[-len(phrase) :] == phrase), None):
        return words[: -len(end)]
    first, last = words[0], words[-1]  # a run of a script without spaces is one token
    for start in _LISTS["unspaced_begins"]:
        if first != start and first.startswith(start):
            return first.removeprefix(start), *words[1:]
    for end_ in _LISTS["unspaced_ends"]:
        if last != end_ and last.endswith(end_):
            return *words[:-1], last.removesuffix(end_)
    return words


@cache
def _phrases(name: str) -> tuple[tuple[str, ...], ...]:
    """Phrases as tokens, the longest first. Made when two questions are first compared: many processes never do."""
    listed = _LISTS[name] | _LISTS[f"unspaced_{name}"]
    found = {tuple(tokens(normalised(phrase.replace("-", " ")))) for phrase in listed}
    return tuple(sorted(found, key=lambda phrase: (-len(phrase), phrase)))


def _without_accents(word: str) -> str:
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", word)))


MAX_MARKS = 3  # combining marks on one letter; no orthography needs more
MAX_BETWEEN_WORDS = 10  # signs and spaces in a row, as in *said: "No!" ("Why?")*
_JOINERS = "\u200c\u200d"
_FIRST_JOINED = "\u0600"  # Arabic to the Indic scripts write words with joiners
_SYMBOLS_READ = frozenset("$+<=>^`|~°©®™")
_READ = frozenset(("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sc", "Sm", "Zs"))
_MARKS = frozenset(("Mn", "Mc"))
_LETTERS_READ_AS_SIGNS = re.compile("[\u02b9\u02bc\u0374\u0640\ua78b\ua78c\ufc5e-\ufc62\ufcf2-\ufcf4\ufe70-\ufe7f]")
"""Apostrophes, the Arabic stroke that only stretches a word, and vowel signs that stand alone."""


def can_be_compared(question: str) -> bool:
    """Whether a question has letters with their marks, digits, spaces and ordinary signs, and nothing else."""
    if SHOWN_AS_NOTHING.search(question):
        return False
    in_word, marks, between, before = False, 0, 0, ""
    for character in _LETTERS_READ_AS_SIGNS.sub("'", question):
        category = unicodedata.category(character)
        if category[0] in "LN":
            in_word, marks, between = True, 0, 0
        elif category in _MARKS and in_word and marks < MAX_MARKS:
            marks += 1
        elif character in _JOINERS and in_word and before >= _FIRST_JOINED and before not in _JOINERS:
            pass  # part of the word
        elif (category in _READ or character in _SYMBOLS_READ or character.isspace()) and between < MAX_BETWEEN_WORDS:
            in_word, between = False, between + 1
        else:
            return False
        before = character
    return True
