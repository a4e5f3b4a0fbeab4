"""When two terms are one."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

_MIN_BEGINNING = 5
_MIN_SHARE = 0.7
_PAIRS_KEPT = 65_536


def matched(term: str, terms: Collection[str]) -> bool:
    """Whether a term, or a form of its word that the stemmer left apart, is among others."""
    if term in terms:
        return True
    if len(term) < _MIN_BEGINNING or not term[0].isalpha():
        return False
    return any(alike(term, other) for other in terms)


@lru_cache(_PAIRS_KEPT)
def alike(one: str, other: str) -> bool:
    """Whether two terms begin alike for most of the longer one: *weaken* and *weaker*, but not *import* and *impose*."""
    longer = max(len(one), len(other))
    needed = max(_MIN_BEGINNING, round(longer * _MIN_SHARE))
    return one[:needed] == other[:needed]
