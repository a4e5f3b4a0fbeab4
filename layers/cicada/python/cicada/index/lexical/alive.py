"""What tombstones leave of a part: rows, their lengths, and how many of them have a term."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cicada.index.lexical.lists import PostingList

_LOOK_UP_RATIO = 16
"""A look-up of a dead row costs about as much as reading this many postings."""
MAX_REMEMBERED_COUNTS = 65_536
"""Terms of which it is remembered how many living rows have them, about 100 bytes each."""


class Alive:
    """The living rows of one part."""

    def __init__(self, mask: NDArray[np.bool_] | None, lengths: NDArray[np.unsignedinteger[Any]]) -> None:
        """Count them.

        Args:
            mask: ``(n,)``, which must not be changed any more; None for all.
            lengths: ``(n,)``: lengths of the rows.
        """
        self.mask = mask
        living = lengths if mask is None else lengths[mask]
        self.count = len(living)
        self.total_length = int(living.sum(dtype=np.int64))
        self._dead = np.zeros(0, np.intp) if mask is None else np.flatnonzero(~mask)
        self._counts: dict[object, int] = {}

    def count_of(self, postings: PostingList, key: object | None) -> int:
        """How many living rows a list has; remembered by its key, if it has one, that tells lists apart."""
        if not len(self._dead):
            return len(postings)
        count = self._counts.get(key) if key is not None else None
        if count is None:
            if len(self._dead) * _LOOK_UP_RATIO < len(postings):
                count = len(postings) - int(np.count_nonzero(postings.look_up(self._dead)))
            else:
                assert self.mask is not None
                count = int(np.count_nonzero(self.mask.take(postings.rows())))
            if len(self._counts) >= MAX_REMEMBERED_COUNTS:
                self._counts.clear()
            if key is not None:
                self._counts[key] = count
        return count
