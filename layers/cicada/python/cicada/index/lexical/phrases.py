"""Phrases: the rows in which terms stand one after the other, by their positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.lexical.lists import MergedList, PostingList
from cicada.index.lexical.occurrences import decode_positions

_ROW_SHIFT = 20
"""A place is its row, shifted, plus its position and the phrase's largest offset: both fit in 20 bits."""
MAX_PHRASE_POSITIONS = 1 << 10
"""Positions that a phrase spans at most: of a longer one, these count."""

Alternatives = Sequence[tuple[PostingList, memoryview]]
"""The lists of the terms that may stand in one place, each with its coded positions."""


def phrase_list(steps: Sequence[tuple[int, Alternatives]]) -> PostingList | None:
    """The rows that have a phrase, and how often; None if none has.

    Args:
        steps: for each term of the phrase its offset from the first, and its alternatives.

    Raises:
        IndexCorrupt: positions do not belong to their postings.
    """
    if not steps or not all(alternatives for _, alternatives in steps):
        return None
    rows: NDArray[np.intp] | None = None
    for _, alternatives in steps:
        here = np.unique(np.concatenate([postings.rows() for postings, _ in alternatives]))
        rows = here if rows is None else np.intersect1d(rows, here, assume_unique=True)
    if rows is None or not len(rows):
        return None
    starts: NDArray[np.int64] | None = None
    for offset, alternatives in steps:
        places = [_starts(postings, data, rows, offset) for postings, data in alternatives]
        here = np.unique(np.concatenate(places))
        starts = here if starts is None else np.intersect1d(starts, here, assume_unique=True)
        if not len(starts):
            return None
    found, times = np.unique((starts if starts is not None else rows) >> _ROW_SHIFT, return_counts=True)
    return MergedList(found.astype(np.intp), times.astype(np.float32), 1.0)


def _starts(postings: PostingList, data: memoryview, rows: NDArray[np.intp], offset: int) -> NDArray[np.int64]:
    """Where the phrase would begin, in some rows, for this term to stand in its place."""
    try:
        counts, positions = decode_positions(data)
    except ValueError as error:
        raise IndexCorrupt(f"positions cannot be read: {error}") from error
    own = postings.rows()
    if len(counts) != len(own):
        raise IndexCorrupt("there are positions of other postings")
    of = np.repeat(own, counts)
    at = np.minimum(rows.searchsorted(of), len(rows) - 1)
    kept = rows[at] == of
    places: NDArray[np.int64] = (of[kept] << _ROW_SHIFT) + positions[kept] + (MAX_PHRASE_POSITIONS - offset)
    return places
