"""The best rows of one part, without scoring all that have any of the query's terms.

Lists are taken in one order everywhere, the rarest term first. While rows that are in none of the lists so far could
still be among the best, lists are added up whole; after that, only rows that can still make it are looked up in the
lists that are left (MaxScore: Turtle and Flood, Query Evaluation: Strategies and Optimizations, 1995). A row's score is
added up in the same order either way, so that it is the same to the last bit, however the corpus is cut.
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
_WORTH_A_FLOOR = 512  # before a list of so many postings is read, a better floor is computed


class WeightedPostings(NamedTuple):
    """A list, and what its term adds to a score: ``weight`` x tf / (tf + norm), at most ``bound``."""

    postings: PostingList
    weight: np.float32
    bound: float


class _Scratch(threading.local):
    """An accumulator for each thread, all zeros between uses; it saves allocating 1 MB for every query."""

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
    """Rows that can be among the best ``limit`` (at least 1), with their scores, in no order.

    ``lists`` are at least one, in the query's order; ``norms``, shape ``(n,)``, BM25's length norms; ``mask``, shape
    ``(n,)``, the rows that count (None for all); ``floor`` the lowest score of interest. Raises IndexCorrupt if
    postings are of rows or codes that do not exist.
    """
    try:
        return _best_rows(lists, norms, mask, limit, floor * _BELOW)
    except BaseException as error:
        _SCRATCH.totals = np.zeros(MAX_ROWS, np.float32)  # the next query needs all zeros, and these are partial sums
        if isinstance(error, IndexError):
            raise IndexCorrupt("postings are of no row, or of no weight") from error
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
    """The scores of given rows, which ascend. Raises IndexCorrupt if postings have weights that do not exist."""
    scores = np.zeros(len(rows), np.float32)
    try:
        for item in lists:
            scores += _at_rows(item, rows, norms)
    except IndexError as error:
        raise IndexCorrupt("postings are of no weight") from error
    return scores


def _rest(lists: Sequence[WeightedPostings]) -> list[float]:
    """For each list what it and the later ones can add; 0 after the last."""
    rest = [0.0]
    for item in reversed(lists):
        rest.append(rest[-1] + item.bound * _SLACK)
    return rest[::-1]


def _contributions(item: WeightedPostings, norms: Floats, mask: Mask) -> tuple[Rows, Floats]:
    rows = item.postings.rows()
    added = item.postings.frequencies()
    if mask is not None:
        chosen = mask.take(rows)
        rows, added = rows[chosen], added[chosen]
    below = norms.take(rows)
    below += added
    added /= below
    added *= item.weight
    return rows, added


def _at_rows(item: WeightedPostings, rows: Rows, norms: Floats) -> Floats:
    added = item.postings.look_up(rows)
    below = norms.take(rows)
    below += added
    added /= below
    added *= item.weight
    return added


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
