"""The pairs of entities that most rows name together, of all pairs that there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.index.columns import Mask
from cicada.index.mentions import Counts, Entities, ScopedMentions, SegmentMentions

BLOCK_PAIRS = 2_000_000
"""Pairs that are counted at a time: about 50 bytes each."""
MAX_PAIRS = 50_000_000
"""Pairs in rows that are looked at for one answer; after that the best so far are told to be only that."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of entities, those that most rows name first; of equal counts, those of rarer entities first."""

    first: Entities
    second: Entities
    counts: Counts
    complete: bool = True
    """Whether no other pair can be among them."""


def frequent_pairs(scoped: ScopedMentions, limit: int, *, max_pairs: int = MAX_PAIRS) -> Pairs:
    """The pairs that most rows name together.

    Entities are taken in the order of their counts, a block at a time, each with all that are rarer: a pair has no more
    rows than either of its entities, so that no later pair can be better once the best are more than the next count.
    (Fagin, Lotem and Naor, Optimal aggregation algorithms for middleware, 2003: the threshold.)
    """
    order = np.argsort(-scoped.counts, kind="stable")
    order = order[: int(np.count_nonzero(scoped.counts))]
    counts = scoped.counts[order]
    rank = np.full(len(scoped.counts), len(order), dtype=np.int32)  # what no row that passes names comes last
    rank[order] = np.arange(len(order))
    best = _Best(counts, limit)
    begin, looked_at = 0, 0
    row_entities = max(1.0, counts.sum() / max(1, scoped.total))
    while begin < len(order) and best.least <= counts[begin]:
        if looked_at >= max_pairs:
            return best.pairs(order, complete=False)
        block = int(np.searchsorted(np.cumsum(counts[begin:]) * row_entities, BLOCK_PAIRS))
        end = min(len(order), begin + max(1, block))
        found = [_pairs_of(segment, mask, rank, begin, end, len(order)) for segment, mask in scoped.segments()]
        keys = np.concatenate(found)
        looked_at += len(keys)
        best.add(*np.unique(keys, return_counts=True))
        begin = end
    return best.pairs(order, complete=True)


class _Best:
    """The best pairs so far, as ``first rank * entities + second rank``."""

    def __init__(self, counts: Counts, limit: int) -> None:
        self._of_rank = counts
        self._limit = limit
        self._keys = np.zeros(0, dtype=np.int64)
        self._counts = np.zeros(0, dtype=np.int64)

    @property
    def least(self) -> int:
        """The rows that a pair must have to be among the best."""
        return int(self._counts[-1]) if len(self._counts) == self._limit else 1

    def add(self, keys: NDArray[np.int64], counts: Counts) -> None:
        worth = counts >= self.least
        keys, counts = np.append(self._keys, keys[worth]), np.append(self._counts, counts[worth])
        ranks = len(self._of_rank)
        expected = self._of_rank[keys // ranks].astype(np.float64) * self._of_rank[keys % ranks]
        chosen = np.lexsort((keys, expected, -counts))[: self._limit]
        self._keys, self._counts = keys[chosen], counts[chosen]

    def pairs(self, order: NDArray[np.intp], *, complete: bool) -> Pairs:
        ranks = max(1, len(self._of_rank))
        first, second = order[self._keys // ranks], order[self._keys % ranks]
        return Pairs(first.astype(np.int32), second.astype(np.int32), self._counts, complete)


def _pairs_of(
    segment: SegmentMentions, mask: Mask | None, rank: NDArray[np.int32], begin: int, end: int, ranks: int
) -> NDArray[np.int64]:
    """A key for each row's pair of an entity whose rank is from ``begin`` to ``end`` with one of a higher rank."""
    of_mention = rank[segment.entities]
    hit = (of_mention >= begin) & (of_mention < end)
    if mask is not None:
        hit &= np.repeat(mask, np.diff(segment.starts))
    mentions = np.flatnonzero(hit)
    if not len(mentions):
        return np.zeros(0, dtype=np.int64)
    row = np.searchsorted(segment.starts, mentions, side="right") - 1
    sizes = segment.starts[row + 1] - segment.starts[row]
    ends = np.cumsum(sizes)
    others = np.repeat(segment.starts[row] - ends + sizes, sizes) + np.arange(ends[-1])
    one = np.repeat(of_mention[mentions], sizes).astype(np.int64)
    other = of_mention[others].astype(np.int64)
    later = other > one
    keys: NDArray[np.int64] = one[later] * ranks + other[later]
    return keys
