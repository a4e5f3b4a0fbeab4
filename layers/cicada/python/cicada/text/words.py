"""The words of a text: all of them, and those that say what it is about or how it asks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from cicada.text.characters import HIRAGANA, compared, is_unspaced, normalised, word_pattern
from cicada.text.frequent import EVIDENCE
from cicada.text.tokens import tokens
from cicada.text.word_lists import word_lists

_LISTS = word_lists("cicada.text", "small_words.json")
_REFERRING = frozenset(map(normalised, _LISTS["referring"]))
_ASKING = frozenset(map(normalised, _LISTS["asking"]))
_NEGATIONS = frozenset(map(normalised, _LISTS["negations"]))
_UNSPACED = (*_LISTS["unspaced_negations"], *_LISTS["unspaced_asking"])
_UNSPACED_SMALL = _LISTS["unspaced_small"]
POSSESSIVE = re.compile(r"['’]s$")  # an English ending, which is no part of a name
_LEAST_STEM = 3
_MOST_ENDING = 3
_IDENTIFIER_RUNS = re.compile(r"\d+|[^\W\d_]+")
_ROUGH_STEM = 6  # letters that words are cut to, so that inflections meet
_LEAST_ROUGH = 4  # letters of a word: shorter ones join sentences rather than tell what they are about
_PAIRED = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_FIRST_OF_STEM_PAIRS = "\u0e00"
_STEM_PAIRS = re.compile(f"[{_PAIRED}]")
_STEM_RUN = re.compile(rf"[{_PAIRED}]+|[^\W\d_{_PAIRED}]{{{_LEAST_ROUGH},}}|\d{{2,}}")
_JOINER = re.compile(r"[-']")  # of what is one token and two words: *sale-room*, *l'arma*, *fut-elle*


def all_words(text: str) -> tuple[str, ...]:
    """Every word of a text in normal form, in order; in scripts without spaces each character is one."""
    return tuple(word_pattern().findall(compared(text)))


def words_of(text: str) -> list[str]:
    """The words of a text in normal form; of a script without spaces its characters, but for hiragana."""
    found: list[str] = []
    for token in tokens(compared(text)):
        if is_unspaced(token):
            found += HIRAGANA.sub("", token)
        else:
            parts = _JOINER.split(POSSESSIVE.sub("", token))
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
    spaced = frozenset(POSSESSIVE.sub("", token) for token in tokens(plain)) & (_NEGATIONS | _ASKING)
    return spaced | {sign for sign in _UNSPACED if sign in plain}


def identifier_words(name: str) -> list[str]:
    """The words of a name in code, in any alphabet: ``custOrder_ID2`` is *cust*, *order*, *id*, *2*."""
    return [word.lower() for run in _IDENTIFIER_RUNS.findall(name) for word in _humps(run)]


def _humps(run: str) -> Iterator[str]:
    """A run of letters cut where a capital follows a small letter, or begins a word after other capitals."""
    start = 0
    for at in range(1, len(run)):
        begins = run[at].isupper() and (not run[at - 1].isupper() or run[at + 1 : at + 2].islower())
        if begins:
            yield run[start:at]
            start = at
    yield run[start:]


def rough_stems(text: str) -> list[str]:
    """The terms to compare neighbouring sentences by: beginnings of long words, numbers, pairs of unspaced characters.

    They decide where documents are cut, and so passages' ids: hence character ranges of their own, which never change.
    """
    stems: list[str] = []
    for run in _STEM_RUN.findall(text.casefold()):
        if run[0] >= _FIRST_OF_STEM_PAIRS and _STEM_PAIRS.match(run):
            stems += [run[at : at + 2] for at in range(len(run) - 1)] or [run]
        else:
            stems.append(run[:_ROUGH_STEM])
    return stems


def inflects(word: str, other: str) -> bool:
    """Whether two words in normal form can be forms of one: *locked* and *locks*; numbers and runs never are."""
    if not word or is_unspaced(word) or any(map(str.isdigit, word)):
        return False
    stem = word[: max(_LEAST_STEM, len(word) - _MOST_ENDING)]
    return other.startswith(stem) and abs(len(other) - len(word)) <= _MOST_ENDING


def is_among(word: str, words: Collection[str]) -> bool:
    """Whether a word in normal form is one of others, be it with another ending."""
    return word in words or any(inflects(word, one) for one in words)


def quotes(text: str, quote: str) -> bool:
    """Whether the words of ``quote``, at least one, stand in ``text`` one after another."""
    wanted = all_words(quote)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(all_words(text))} "


def foreign_words(text: str, *others: str) -> tuple[str, ...]:
    """The words of a text that none of the others has, each once, in order."""
    known = {word for other in others for word in all_words(other)}
    return tuple(dict.fromkeys(word for word in all_words(text) if word not in known))
