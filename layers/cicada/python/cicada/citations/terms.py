"""When two terms are one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import lru_cache

_MIN_BEGINNING = 5
_MIN_SHARE = 0.7
_MIN_FAMILY = 4
_MIN_COMPOUNDED = 5
"""Letters of the shortest part of a compound, and of the shortest beginning that makes a family of words."""
_PAIRS_KEPT = 65_536


class Vocabulary:
    """The terms of a long text."""

    def __init__(self, terms: Iterable[str]) -> None:
        self._terms = frozenset(terms)
        self._bare = {term.partition("\t")[0] for term in self._terms if term[0].isalpha()}
        self._by_beginning: defaultdict[str, list[str]] = defaultdict(list)
        for term in self._terms:
            self._by_beginning[term[:_MIN_BEGINNING]].append(term)

    def __contains__(self, term: str) -> bool:
        """Whether it has a term, or a form of its word that the stemmer left apart."""
        return term in self._terms or matched(term, self._by_beginning.get(term[:_MIN_BEGINNING], ()))

    def has(self, term: str) -> bool:
        """Whether it has this very term."""
        return term in self._terms

    def akin(self, term: str) -> bool:
        """Whether it has a word of the same family, by its beginning, or one that is compounded with it."""
        bare = term.partition("\t")[0]
        if len(bare) < _MIN_FAMILY or not bare.isalpha():
            return False
        return any(is_family(bare, other) for other in self._bare)


def matched(term: str, terms: Collection[str]) -> bool:
    """Whether a term, or a form of its word that the stemmer left apart, is among others."""
    if term in terms:
        return True
    if len(term) < _MIN_BEGINNING or not term[0].isalpha():
        return False
    return any(alike(term, other) for other in terms if other[0] == term[0])


@lru_cache(_PAIRS_KEPT)
def is_family(one: str, other: str) -> bool:
    """Whether two words begin alike for most of the shorter one, or one is compounded with the other."""
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) < _MIN_FAMILY or not shorter.isalpha():
        return False
    needed = max(_MIN_FAMILY, round(len(shorter) * _MIN_SHARE))
    return one[:needed] == other[:needed] or (len(shorter) >= _MIN_COMPOUNDED and shorter in longer)


@lru_cache(_PAIRS_KEPT)
def alike(one: str, other: str) -> bool:
    """Whether two terms begin alike for most of the longer one: *weaken*, *weaker*; but not *import*, *impose*."""
    longer = max(len(one), len(other))
    needed = max(_MIN_BEGINNING, round(longer * _MIN_SHARE))
    return one[:needed] == other[:needed]
