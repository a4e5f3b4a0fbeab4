"""Finding declared names in texts."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

MAX_NAME_CHARS = 80
"""A longer heading is a sentence, and names nobody."""
_UNSPACED = "\u3005-\u9fff"
_WORD = re.compile(rf"[^\W_{_UNSPACED}]+|[{_UNSPACED}]")
"""A word; or a sign, in scripts that have no spaces between words."""
_JOINED = re.compile(r"[\s\-\u2010-\u2013'’]+")
"""What may stand between the words of a name, whatever stood there where it was declared."""


@dataclass(frozen=True)
class _Written:
    """A name or an alias, in words."""

    words: tuple[str, ...]
    gaps: tuple[str, ...]
    capital: bool
    """Whether a text must have its capital, too."""
    filed_under: str


class DeclaredNames:
    """Names with their aliases, ready to be found in texts.

    They are found as whole words, a possessive's *'s* aside. A single word that was declared with a capital is found
    only with one, all else in any case: *Will* is a person, *will* is none. A longer name hides those inside of it.
    """

    def __init__(self, aliases: Mapping[str, Sequence[str]], names: Iterable[str] = ()) -> None:
        """Take declared names with their aliases, and others without."""
        self._filed: defaultdict[str, list[str]] = defaultdict(list)
        self._by_word: defaultdict[str, list[_Written]] = defaultdict(list)
        for name, others in aliases.items():
            for written in (name, *others):
                self._file(written, name)
        for name in names:
            if len(name) <= MAX_NAME_CHARS and not self._filed.get(_key(name)):
                self._file(name, " ".join(name.split()))
        for found in self._by_word.values():
            found.sort(key=lambda one: -len(one.words))

    def filed_under(self, name: str) -> tuple[str, ...]:
        """The declared names that a name or an alias is of; itself where it is of none."""
        return tuple(self._filed.get(_key(name), ())) or (name,)

    def of(self, text: str) -> tuple[str, ...]:
        """The names that a text has, each once, in order, as they are filed."""
        found: dict[str, None] = {}
        text = unicodedata.normalize("NFC", text)
        words = list(_WORD.finditer(text))
        folded = [word[0].casefold() for word in words]
        at = 0
        while at < len(words):
            here = [one for one in self._by_word.get(folded[at], ()) if _fits(one, text, words, folded, at)]
            for one in here:
                if len(one.words) == len(here[0].words):
                    found[one.filed_under] = None
            at += len(here[0].words) if here else 1
        return tuple(found)

    def _file(self, written: str, name: str) -> None:
        if name in self._filed[_key(written)]:
            return
        plain = unicodedata.normalize("NFC", written)
        words = list(_WORD.finditer(plain))
        if not words:
            return
        self._filed[_key(written)].append(name)
        first = words[0][0].casefold()
        self._by_word[first].append(
            _Written(
                words=tuple(word[0].casefold() for word in words),
                gaps=tuple(plain[one.end() : other.start()] for one, other in pairwise(words)),
                capital=len(words) == 1 and plain[words[0].start()].isupper(),
                filed_under=name,
            )
        )


def _fits(name: _Written, text: str, words: Sequence[re.Match[str]], folded: Sequence[str], at: int) -> bool:
    end = at + len(name.words)
    if tuple(folded[at:end]) != name.words or (name.capital and not words[at][0][0].isupper()):
        return False
    gaps = (text[one.end() : other.start()] for one, other in pairwise(words[at:end]))
    return all(
        gap == declared or (_JOINED.fullmatch(gap) and _JOINED.fullmatch(declared))
        for gap, declared in zip(gaps, name.gaps, strict=True)
    )


def _key(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).split()).casefold()
