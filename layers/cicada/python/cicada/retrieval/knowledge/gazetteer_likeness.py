"""Words that are most like one that is not known: misspellings.

Of thousands of words only those are compared letter by letter whose letters are nearly the same: each word has a mask
of 64 bits, one for each letter that it has, and an edit changes at most two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from rapidfuzz.distance import OSA

LEAST_CHARS = 5
"""Shorter words have too many neighbours that are words themselves."""
TWO_EDITS_CHARS = 8
"""From here on two edits may be between two words, else one."""
MAX_ALIKE = 3
REMEMBERED_WORDS = 4_096
"""Questions use the same words again and again."""


class LikeWords:
    """Some words, ready to be compared: about 100 bytes each. Safe for several threads."""

    def __init__(self, words: Sequence[str]) -> None:
        """Take the words, each once; those below :data:`LEAST_CHARS` are like nothing."""
        self._words = [word for word in words if len(word) >= LEAST_CHARS]
        self._masks = np.array([_mask(word) for word in self._words], dtype=np.uint64)
        self._lengths = np.array([len(word) for word in self._words], dtype=np.int16)
        self._remembered = lru_cache(maxsize=REMEMBERED_WORDS)(self._compared)

    def like(self, word: str) -> tuple[tuple[str, float], ...]:
        """The words that are most like one, the likest first, each with its likeness in (0, 1).

        Likeness is 1 - d / l: d insertions, deletions, replacements and exchanges of neighbours lead from one to the
        other (optimal string alignment), and the longer has l letters. With two of them the first letter must be the
        same. A word that is among them is like no other.
        """
        return self._remembered(word) if len(word) >= LEAST_CHARS and self._words else ()

    def _compared(self, word: str) -> tuple[tuple[str, float], ...]:
        edits = 2 if len(word) >= TWO_EDITS_CHARS else 1
        near = np.bitwise_count(self._masks ^ np.uint64(_mask(word))) <= 2 * edits
        near &= np.abs(self._lengths - len(word)) <= edits
        found: list[tuple[float, str]] = []
        for place in np.flatnonzero(near).tolist():
            other = self._words[place]
            distance = OSA.distance(word, other, score_cutoff=edits)
            if distance == 0:
                return ()
            if distance <= edits and (distance == 1 or other[0] == word[0]):
                found.append((distance / max(len(word), len(other)), other))
        return tuple((other, 1 - share) for share, other in sorted(found)[:MAX_ALIKE])


def _mask(word: str) -> int:
    mask = 0
    for letter in word:
        mask |= 1 << (ord(letter) % 64)
    return mask
