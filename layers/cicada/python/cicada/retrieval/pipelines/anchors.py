"""What a question is about beyond doubt: its names, numbers, codes and quotations, which no other wording may lose."""

from __future__ import annotations

import re
import unicodedata

from cicada.index.lexical.analysis import folded
from cicada.index.lexical.languages import detect
from cicada.text.frequent import EVIDENCE
from cicada.text.tokens import normalised, tokens

_WORD = re.compile(r"[^\W_]+(?:(?:::|[-_.:@,'’])[^\W_]+)*")
_SENTENCE_START = re.compile(r"(?:^|[.!?。！？:]\s|[\"“«„])\s*$")
_QUOTED = re.compile(r"\"([^\"]{2,}?)\"|“([^”]{2,}?)”|«([^»]{2,}?)»|「([^」]+?)」|『([^』]+?)』")
_KATAKANA = re.compile(r"[ァ-ヺー]{2,}")
_POSSESSIVE = re.compile(r"['’]s?$")
_CAPITALISES_NOUNS = frozenset({"deu"})
_LEAST_STEM = 3
_MOST_ENDING = 3
"""Letters by which a name's inflections differ at most: *Mara*, *Mara's*, *Марой*."""


def anchors(question: str) -> tuple[str, ...]:
    """The words that every other wording of a question must have, in normal form, each once, in order.

    Words with a digit, words in capitals, capitalised words but common ones, quoted words, and words in katakana. A
    capital at the beginning of a sentence says nothing by itself: that word counts if the next is a name too. In
    German, which writes all nouns so, and in a question all in capitals, capitals do not count.
    """
    plain = unicodedata.normalize("NFKC", question)
    capitals_tell = not plain.isupper() and detect(tokens(normalised(plain))) not in _CAPITALISES_NOUNS
    found: dict[str, None] = {}
    words = list(_WORD.finditer(plain))
    names = [capitals_tell and _is_name(match, plain) for match in words]
    for at, match in enumerate(words):
        word = match.group()
        opens = _SENTENCE_START.search(plain[: match.start()]) is not None
        name = names[at] and (not opens or word != _POSSESSIVE.sub("", word) or (at + 1 < len(words) and names[at + 1]))
        acronym = len(word) > 1 and word.isupper() and not plain.isupper()
        if name or acronym or any(letter.isdigit() for letter in word):
            found[_POSSESSIVE.sub("", normalised(word))] = None
    for match in _QUOTED.finditer(plain):
        quoted = next(filter(None, match.groups()))
        found |= dict.fromkeys(tokens(normalised(quoted)))
    found |= dict.fromkeys(normalised(run) for run in _KATAKANA.findall(plain))
    return tuple(found)


def keeps(wording: str, needed: tuple[str, ...]) -> bool:
    """Whether another wording has all the anchors, be it with another ending; those with digits as they are."""
    text = normalised(unicodedata.normalize("NFKC", wording))
    words = {folded(_POSSESSIVE.sub("", word)) for word in tokens(text)} | set(tokens(text))
    return all(_has(anchor, text, words) for anchor in needed)


def _is_name(match: re.Match[str], text: str) -> bool:
    word = match.group()
    if not word[0].isupper():
        return False
    common = normalised(_POSSESSIVE.sub("", word))
    initial = len(word) == 1 and text[match.end() : match.end() + 1] != "."
    return common not in EVIDENCE and not initial


def _has(anchor: str, text: str, words: set[str]) -> bool:
    if any(letter.isdigit() for letter in anchor):
        return re.search(rf"(?<![^\W_]){re.escape(anchor)}(?![^\W_])", text) is not None
    plain = folded(anchor)
    if plain in words or (not plain.isascii() and anchor in text):
        return True
    stem = plain[: max(_LEAST_STEM, len(plain) - _MOST_ENDING)]
    return any(word.startswith(stem) and abs(len(word) - len(plain)) <= _MOST_ENDING for word in words)
