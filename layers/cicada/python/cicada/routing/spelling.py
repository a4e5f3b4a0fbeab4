"""Repairs slips of typing in the words that decide routes: *lsit my proflies*, *cancelation polcy*, *hellooo*.

Four slips are undone: two neighbours swapped, an inner letter missed, a letter doubled or not, a letter drawn out. No
letter is ever replaced by another: that is how *police* would become *policy* and *prince* a *price*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cicada.routing.lexicon import KEYWORDS, LEXICON

_SHORTEST, _LONGEST = 4, 20
# Words that are one slip away from a keyword, and are meant.
_MEANT = frozenset("crate trail prof tanks papal tire tires dose arte crete bois archie iii aaa".split())
_KNOWN = KEYWORDS | LEXICON["chat"] | LEXICON["asking"] | LEXICON["finite"] | _MEANT
_DRAWN_OUT = re.compile(r"([^\W\d_])\1\1+")

_BY_SHAPE: dict[tuple[str, int], list[str]] = {}
for _word in sorted(KEYWORDS):
    _BY_SHAPE.setdefault((_word[0], len(_word)), []).append(_word)


def repaired(word: str) -> str:
    """The keyword that ``word`` was meant to be, or ``word`` itself."""
    if word in _KNOWN or len(word) > _LONGEST:
        return word
    return next(_candidates(word), word)


def _candidates(word: str) -> Iterator[str]:
    once, twice = _DRAWN_OUT.sub(r"\1", word), _DRAWN_OUT.sub(r"\1\1", word)
    if once != word:
        yield from (short for short in (once, twice) if short in _KNOWN)
    if len(word) < _SHORTEST:
        return
    for i in range(len(word) - 1):
        if (swapped := f"{word[:i]}{word[i + 1]}{word[i]}{word[i + 2 :]}") in KEYWORDS:
            yield swapped
    for meant in _BY_SHAPE.get((word[0], len(word) + 1), ()):
        if _misses_one_letter(word, meant):
            yield meant
    for i in range(1, len(word)):
        if word[i] == word[i - 1] and (single := word[:i] + word[i + 1 :]) in KEYWORDS:
            yield single


def _misses_one_letter(word: str, meant: str) -> bool:
    if meant in LEXICON["fact_asked"]:
        return any(word == meant[:i] + meant[i + 1 :] for i in range(1, len(meant)))
    at = next((i for i, letter in enumerate(word) if letter != meant[i]), len(word))
    if at == len(word) or word[at:] != meant[at + 1 :]:  # without its last letter it is more often another form
        return False
    return len(word) > _SHORTEST or meant[at] == meant[at - 1]
