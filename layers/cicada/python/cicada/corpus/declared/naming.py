"""Finding declared names in texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cicada.text.characters import composed, word_pattern
from cicada.text.names import JOINING, bare_key, spelling_key

MAX_NAME_CHARS = 80  # a longer heading is a sentence, not a name
_JOINED = re.compile(JOINING)


@dataclass(frozen=True)
class _Written:
    """A name or an alias, beside its words."""

    gaps: tuple[str, ...]
    capital: bool  # whether a text must capitalise it as well
    filed_under: str


class DeclaredNames:
    """Names with their aliases, to be found in texts.

    They are found as whole words, apart from a possessive *'s*; in scripts without spaces anywhere. A single
    capitalised word is found only with its capital (*Will* is a person, *will* is not), all others in any case. A
    longer name hides those inside it.
    """

    def __init__(self, aliases: Mapping[str, Sequence[str]], names: Iterable[str] = ()) -> None:
        self._filed: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._without_article: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._by_words: defaultdict[tuple[str, ...], list[_Written]] = defaultdict(list)
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)
        for name, others in aliases.items():
            for written in (name, *others):
                self._file(written, name)
                self._without_article[_plain_key(written)][name] = None
        for name in names:
            if len(name) <= MAX_NAME_CHARS:
                for owner in self.filed_under(" ".join(name.split())):
                    self._file(name, owner)
        self._longest_first = {first: sorted(found, reverse=True) for first, found in self._lengths.items()}

    def filed_under(self, name: str) -> tuple[str, ...]:
        """The declared names that a name or alias stands for; itself if there are none.

        Joining characters and a final stop are ignored; so is an article, unless it distinguishes two names.
        """
        filed = self._filed.get(spelling_key(name)) or self._without_article.get(_plain_key(name))
        return tuple(filed or (name,))

    def of(self, text: str) -> tuple[str, ...]:
        """The declared names in a text, unique, in order."""
        found: dict[str, None] = {}
        text = composed(text)
        words = list(word_pattern().finditer(text))
        folded = [word[0].casefold() for word in words]
        at = 0
        while at < len(words):
            for length in self._longest_first.get(folded[at], ()):
                written = self._by_words.get(tuple(folded[at : at + length]), ())
                if here := [one.filed_under for one in written if _fits(one, text, words[at : at + length])]:
                    found.update(dict.fromkeys(here))
                    at += length
                    break
            else:
                at += 1
        return tuple(found)

    def _file(self, written: str, name: str) -> None:
        if name in self._filed[spelling_key(written)]:
            return
        plain = composed(written)
        words = list(word_pattern().finditer(plain))
        if not words:
            return
        self._filed[spelling_key(written)][name] = None
        folded = tuple(word[0].casefold() for word in words)
        self._lengths[folded[0]].add(len(folded))
        self._by_words[folded].append(
            _Written(
                gaps=tuple(plain[one.end() : other.start()] for one, other in pairwise(words)),
                capital=len(words) == 1 and plain[words[0].start()].isupper(),
                filed_under=name,
            )
        )


def _plain_key(name: str) -> str:
    """The key of a name without its article. Capitalised *An*, *Le* and *Das* stay, since they also begin names."""
    first = name.strip().partition(" ")[0]
    return bare_key(name) if first.islower() or first.casefold() == "the" else spelling_key(name)


def _fits(name: _Written, text: str, words: Sequence[re.Match[str]]) -> bool:
    """Whether these words are the name: capitalised like it, and joined like it."""
    if name.capital and not words[0][0][0].isupper():
        return False
    gaps = (text[one.end() : other.start()] for one, other in pairwise(words))
    return all(
        gap == declared or (_JOINED.fullmatch(gap) and _JOINED.fullmatch(declared))
        for gap, declared in zip(gaps, name.gaps, strict=True)
    )
