"""Finds the best rows of one part without scoring all rows that have a term (MaxScore).

Lists are taken in the same order everywhere, the rarest term first. They are added up whole while unseen rows could
still be among the best; after that, only candidates are looked up in the remaining lists. (Turtle and Flood, Query
Evaluation: Strategies and Optimizations, 1995.) A score is always added up in the same order, so that it does not
depend on how the corpus is cut.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.lexical import MAX_ROWS
from cicada.index.lexical.postings import PostingList

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_] | None

_SLACK = 1 + 1e-5  # sums of bounds are rounded up by more than single precision rounds
_BELOW = 1 - 1e-6  # floors are lowered by more than single precision rounds
_WORTH_A_FLOOR = 512  # before a list of this many postings is read, a better floor is computed


class WeightedPostings(NamedTuple):
    """A list whose term adds ``weight`` x tf / (tf + norm) to a score, at most ``bound``."""

    postings: PostingList
    weight: np.float32
    bound: float


class _Scratch(threading.local):
    """An accumulator per thread, all zeros between uses; it saves allocating 1 MB per query."""

    def __init__(self) -> None:
        self.totals = np.zeros(MAX_ROWS, np.float32)


_SCRATCH = _Scratch()


def kth_largest(values: Floats, k: int) -> float:
    """The k-th largest value; 0 if there are fewer."""
    if len(values) < k:
        return 0.0
    return float(np.partition(values, len(values) - k)[len(values) - k])


def best_rows(
    lists: Sequence[WeightedPostings], norms: Floats, mask: Mask, limit: int, floor: float
) -> tuple[Rows, Floats]:
    """Rows that can be among the best ``limit`` (at least 1), unordered, with their scores.

    ``lists`` (at least one) are in the query's order; ``norms``, ``(n,)``, are BM25's length norms; ``mask``, ``(n,)``,
    has the allowed rows, None for all; ``floor`` is the lowest score of interest. Raises IndexCorrupt.
    """
    try:
        return _best_rows(lists, norms, mask, limit, floor * _BELOW)
    except BaseException as error:
        _SCRATCH.totals = np.zeros(MAX_ROWS, np.float32)  # the next query needs all zeros, and these are partial sums
        if isinstance(error, IndexError):
            raise IndexCorrupt("a posting has a row or a weight that does not exist") from error
        raise


def _best_rows(
    lists: Sequence[WeightedPostings], norms: Floats, mask: Mask, limit: int, floor: float
) -> tuple[Rows, Floats]:
    rest = _rest(lists)
    totals = _SCRATCH.totals
    seen: list[Rows] = []
    at = 0
    for at, item in enumerate(lists):
        if rest[at] < floor:
            break
        rows, added = _contributions(item, norms, mask)
        if seen:
            added += totals.take(rows)
        totals[rows] = added
        seen.append(rows)
        if at + 1 < len(lists) and len(lists[at + 1].postings) >= _WORTH_A_FLOOR:
            floor = max(floor, kth_largest(added, limit) * _BELOW)
    else:
        at = len(lists)
    rows, scores = _collected(seen, totals, floor - rest[at])
    if at == len(lists) or not len(rows):
        return rows, scores
    order = np.argsort(rows)
    rows, scores = rows[order], scores[order]
    for place in range(at, len(lists)):
        floor = max(floor, kth_largest(scores, limit) * _BELOW)
        kept = scores >= floor - rest[place]
        rows, scores = rows[kept], scores[kept]
        scores += _at_rows(lists[place], rows, norms)
    return rows, scores


def scores_of(lists: Sequence[WeightedPostings], norms: Floats, rows: Rows) -> Floats:
    """The scores of given rows, ascending. Raises IndexCorrupt."""
    scores = np.zeros(len(rows), np.float32)
    try:
        for item in lists:
            scores += _at_rows(item, rows, norms)
    except IndexError as error:
        raise IndexCorrupt("a posting has a weight that does not exist") from error
    return scores


def _rest(lists: Sequence[WeightedPostings]) -> list[float]:
    """For each list the most that it and the later ones can add; 0 after the last."""
    rest = [0.0]
    for item in reversed(lists):
        rest.append(rest[-1] + item.bound * _SLACK)
    return rest[::-1]


def _contributions(item: WeightedPostings, norms: Floats, mask: Mask) -> tuple[Rows, Floats]:
    rows, frequencies = item.postings.rows(), item.postings.frequencies()
    if mask is not None:
        chosen = mask.take(rows)
        rows, frequencies = rows[chosen], frequencies[chosen]
    return rows, _scored(item, rows, frequencies, norms)


def _at_rows(item: WeightedPostings, rows: Rows, norms: Floats) -> Floats:
    return _scored(item, rows, item.postings.look_up(rows), norms)


def _scored(item: WeightedPostings, rows: Rows, frequencies: Floats, norms: Floats) -> Floats:
    """Turn frequencies into scores, in place."""
    below = norms.take(rows)
    below += frequencies
    frequencies /= below
    frequencies *= item.weight
    return frequencies


def _collected(seen: Sequence[Rows], totals: Floats, floor: float) -> tuple[Rows, Floats]:
    """Each row with its total, if that is above 0 and not below the floor; resets the accumulator to zeros."""
    least = max(floor, float(np.finfo(np.float32).tiny))
    rows: list[Rows] = []
    scores: list[Floats] = []
    for each in seen:
        values = totals.take(each)
        totals[each] = 0  # so that a row of several lists is collected once
        kept = np.flatnonzero(values >= least)
        rows.append(each[kept])
        scores.append(values[kept])
    if not rows:
        return np.zeros(0, np.intp), np.zeros(0, np.float32)
    return np.concatenate(rows), np.concatenate(scores)
