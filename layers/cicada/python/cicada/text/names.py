"""Names: where a text has them, and what the spellings of one have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cicada.text.characters import folded
from cicada.text.detection import language_of
from cicada.text.languages import CAPITALISES_NOUNS
from cicada.text.word_lists import word_lists

JOINING = r"[\s\-\u2010-\u2013'’]+"
"""A regular expression of what may stand between the words of a name, whatever stands there elsewhere."""

ARTICLES = word_lists("cicada.text", "name_words.json")["articles"]  # what a name may stand with or without, folded

_JOINED = re.compile(JOINING)
_NAME_WORD = re.compile(r"[^\W_]+(?:(?:[-'’&]|\.(?=\w))[^\W_]+)*")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_INSIDE = re.compile(r"(?<=[^\W_])[,;:'’]?\s+([^\W\d_][\w'’-]*)")  # a word that does not begin its sentence
_ALWAYS_TELL = 4  # words of a sentence up to which its capitals always tell names
_MOSTLY = 0.4  # the share of a sentence's words that are capitalised, above which capitals say nothing


class NameWord(NamedTuple):
    """A word of a text, with the signs that names have inside: *O'Hara*, *Jean-Luc*, *J.R.*."""

    text: str
    start: int
    end: int

    @property
    def capital(self) -> bool:
        """Whether it is written large."""
        return self.text[0].isupper()


def name_words(text: str) -> Iterator[NameWord]:
    """The words of a text to find names in. Found names are on disk, so these words must not change as those of
    :mod:`cicada.text.tokens` may."""
    return (NameWord(match[0], *match.span()) for match in _NAME_WORD.finditer(text))


def capitalised_in(sentence: str) -> list[str]:
    """The capitalised words inside a sentence, without its first; none in a title, or in a language that capitalises
    all nouns."""
    words = _WORD.findall(sentence)
    capitals = sum(word[0].isupper() for word in words[1:])
    titled = capitals > _MOSTLY * max(1, len(words) - 1) and len(words) > _ALWAYS_TELL
    if titled or language_of(sentence, by_frequent_words=True) in CAPITALISES_NOUNS:
        return []
    return [word for word in _INSIDE.findall(sentence) if word[0].isupper()]


def spelling_key(name: str) -> str:
    """A name, folded, with a space for what joins its words, and without a stop at its end."""
    plain = folded(name)
    return _JOINED.sub(" ", plain).lstrip().rstrip(" .") or plain


def bare_key(name: str) -> str:
    """The key of a name without its article: two names may share it, such as *An Nguyen* and *Nguyen*."""
    first, _, rest = " ".join(name.split()).partition(" ")
    return spelling_key(rest if rest and first.casefold() in ARTICLES else name)
