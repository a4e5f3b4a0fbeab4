"""The words of a question that say what it is about, and those small ones that say how it asks."""

from __future__ import annotations

import re

from cicada.text.frequent import EVIDENCE
from cicada.text.letters import is_unspaced
from cicada.text.tokens import normalised, tokens
from cicada.text.word_lists import word_lists

_LISTS = word_lists("cicada.text", "small_words.json")
_REFERRING = frozenset(map(normalised, _LISTS["referring"]))
_ASKING = frozenset(map(normalised, _LISTS["asking"]))
_NEGATIONS = frozenset(map(normalised, _LISTS["negations"]))
_UNSPACED = (*_LISTS["unspaced_negations"], *_LISTS["unspaced_asking"])
_UNSPACED_SMALL = _LISTS["unspaced_small"]
_HIRAGANA = re.compile(r"[\u3041-\u309f]+")
"""In Japanese, grammar for the most part."""
_POSSESSIVE = re.compile(r"'s$")
_LEAST_STEM = 3
_MOST_ENDING = 3
_JOINER = re.compile(r"[-']")
"""Of what is one token and two words: *sale-room*, *l'arma*, *fut-elle*."""


def words_of(text: str) -> list[str]:
    """The words of a text in normal form; of a script without spaces its characters, but for hiragana."""
    found: list[str] = []
    for token in tokens(normalised(text)):
        if is_unspaced(token):
            found += _HIRAGANA.sub("", token)
        else:
            parts = _JOINER.split(_POSSESSIVE.sub("", token))
            found += [part for part in parts if len(part) > 1 or part.isdigit()] or parts
    return found


def content_words(text: str) -> list[str]:
    """The words that tell something: neither frequent in any language nor pointing to what was said."""
    spaced = (word for word in words_of(text) if len(word) > 1 or word.isdigit() or is_unspaced(word))
    small = (EVIDENCE, _REFERRING, _ASKING, _NEGATIONS, _UNSPACED_SMALL)
    return [word for word in spaced if not any(word in words for words in small)]


def ways_of_asking(text: str) -> frozenset[str]:
    """Its negations and question words, in normal form."""
    plain = normalised(text)
    spaced = frozenset(_POSSESSIVE.sub("", token) for token in tokens(plain)) & (_NEGATIONS | _ASKING)
    return spaced | {sign for sign in _UNSPACED if sign in plain}


def inflects(word: str, other: str) -> bool:
    """Whether two words in normal form can be forms of one: *locked* and *locks*; numbers and runs never are."""
    if is_unspaced(word) or any(map(str.isdigit, word)):
        return False
    stem = word[: max(_LEAST_STEM, len(word) - _MOST_ENDING)]
    return other.startswith(stem) and abs(len(other) - len(word)) <= _MOST_ENDING
