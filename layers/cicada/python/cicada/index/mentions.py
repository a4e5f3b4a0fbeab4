"""Which entities the rows of some segments name, by row and by entity, and which pairs rows name together.

The entity graph is computed from these. An entity is all spellings of a name that differ in case, spaces or character
forms only. Entities are numbered in the order of their names. :class:`Mentions` depends on the segments alone and is
kept with them; :class:`ScopedMentions` sees the rows that pass a filter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cicada.index.arrays import indices_of, offsets_of
from cicada.index.columns import Mask, ValueNumbering
from cicada.index.list_columns import Postings, Rows
from cicada.text.characters import folded

Counts = NDArray[np.int64]
Entities = NDArray[np.int32]  # entities by their numbers


@dataclass(frozen=True)
class SegmentMentions:
    """The entities of each row of a segment."""

    rows: NDArray[np.uint32]  # the rows that name an entity, ascending
    starts: NDArray[np.int64]  # ``(len(rows) + 1,)``: where each row starts in ``entities``, and the last ends
    entities: Entities  # ascending and distinct in each row

    @classmethod
    def of(cls, postings: Postings, entity_of: Entities, entities: int) -> Self:
        """Invert postings whose values are the entities ``entity_of``, of ``entities`` in all."""
        lengths = postings.counts(None)
        keys = postings.rows.astype(np.int64) * entities + np.repeat(entity_of, lengths)
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]  # a row may spell a name in two ways
        row = keys // entities
        begins = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
        starts = np.append(begins, len(keys))
        return cls(row[begins].astype(np.uint32), starts, (keys % entities).astype(np.int32))

    def of_rows(self, rows: Rows) -> Entities:
        """The entities of rows that name some, row after row."""
        starts = self.starts[np.searchsorted(self.rows, rows)]
        found: Entities = self.entities[indices_of(starts, self.lengths(rows))]
        return found

    def lengths(self, rows: Rows) -> NDArray[np.int64]:
        """How many entities each of some rows names."""
        places = np.searchsorted(self.rows, rows)
        return self.starts[places + 1] - self.starts[places]


@dataclass(frozen=True)
class Mentions:
    """The mentions of some segments: about 4 bytes each, 12 a row and 20 a distinct spelling."""

    spellings: ValueNumbering
    entity_of: Entities  # by spelling
    by_entity: NDArray[np.int32]  # the spellings, sorted by entity
    begins: NDArray[np.int64]  # ``(entities + 1,)``: where each entity's spellings start there, and the last's end
    segments: tuple[SegmentMentions, ...]

    @classmethod
    def of(cls, postings: Sequence[Postings]) -> Self:
        """The mentions of segments, from their postings."""
        values = [one.dictionary.values() for one in postings]
        spellings = ValueNumbering.of(values)
        pairs = zip(spellings.owner.tolist(), spellings.code.tolist(), strict=True)
        names = [folded(values[owner][code]) for owner, code in pairs]
        number = {name: entity for entity, name in enumerate(sorted(set(names)))}
        entity_of = np.fromiter((number[name] for name in names), dtype=np.int32, count=len(names))
        begins = offsets_of(np.bincount(entity_of, minlength=len(number)))
        return cls(
            spellings,
            entity_of,
            np.argsort(entity_of, kind="stable").astype(np.int32),
            begins,
            tuple(
                SegmentMentions.of(one, entity_of[place], len(number))
                for one, place in zip(postings, spellings.places, strict=True)
            ),
        )

    @property
    def entities(self) -> int:
        """How many entities."""
        return len(self.begins) - 1

    @property
    def count(self) -> int:
        """How many mentions."""
        return sum(len(segment.entities) for segment in self.segments)

    def spellings_of(self, entity: int) -> list[int]:
        """An entity's spellings, ascending."""
        return [int(one) for one in self.by_entity[self.begins[entity] : self.begins[entity + 1]]]


class ScopedMentions:
    """Mentions in the rows that pass a filter."""

    def __init__(
        self, mentions: Mentions, postings: Sequence[Postings], allowed: Sequence[Mask | None], total: int
    ) -> None:
        """Take the postings of the mentions, and for each segment a mask of the rows that pass, None for all.

        ``total`` counts the rows that pass in the whole scope, those without mentions included.
        """
        self.mentions = mentions
        self.total = total
        self._postings = postings
        self._allowed = allowed

    @cached_property
    def counts(self) -> Counts:
        """How many rows name each entity. Shape ``(entities,)``."""
        counts = np.zeros(self.mentions.entities, dtype=np.int64)
        for segment, mask in self.segments():
            passing = segment.entities if mask is None else segment.entities[np.repeat(mask, np.diff(segment.starts))]
            counts += np.bincount(passing, minlength=len(counts))
        return counts

    def segments(self) -> list[tuple[SegmentMentions, Mask | None]]:
        """Each segment, and a mask of its rows with mentions, None for all."""
        return [
            (segment, None if mask is None else mask[segment.rows])
            for segment, mask in zip(self.mentions.segments, self._allowed, strict=True)
        ]

    def find(self, name: str) -> int | None:
        """The entity of a name in any spelling; None if no row that passes names it."""
        wanted = folded(name)
        entity = bisect_left(range(self.mentions.entities), wanted, key=self.key)
        found = entity < self.mentions.entities and self.key(entity) == wanted and self.counts[entity] > 0
        return entity if found else None

    def key(self, entity: int) -> str:
        """The name of an entity, folded."""
        return folded(self._spelling(int(self.mentions.by_entity[self.mentions.begins[entity]])))

    def name(self, entity: int) -> str:
        """The most frequent spelling of an entity in the rows that pass; of equals, the first in order."""
        spellings = self.mentions.spellings_of(entity)
        if len(spellings) == 1:
            return self._spelling(spellings[0])
        counts = [sum(len(rows) for rows in self._rows_of_spelling(spelling)) for spelling in spellings]
        return self._spelling(spellings[counts.index(max(counts))])

    def rows(self, entity: int) -> list[Rows]:
        """The rows that name an entity, ascending, by segment."""
        found = [self._rows_of_spelling(spelling) for spelling in self.mentions.spellings_of(entity)]
        if len(found) == 1:
            return found[0]
        return [np.unique(np.concatenate(of_segment)) for of_segment in zip(*found, strict=True)]

    def rows_of_all(self, entities: Sequence[int]) -> list[Rows]:
        """The rows that name every one of some entities, ascending, by segment."""
        first, *others = (self.rows(entity) for entity in entities)
        for other in others:
            first = [_common(one, two) for one, two in zip(first, other, strict=True)]
        return first

    def partners(self, entity: int) -> tuple[Entities, Counts]:
        """The entities that rows name together with one, ascending, and how many rows name both."""
        rows = self.rows(entity)
        named = np.concatenate(
            [segment.of_rows(of_segment) for segment, of_segment in zip(self.mentions.segments, rows, strict=True)]
        )
        if 2 * len(named) > self.mentions.entities:
            every = np.bincount(named, minlength=self.mentions.entities)
            found, counts = np.flatnonzero(every), every[every > 0]
        else:
            found, counts = np.unique(named, return_counts=True)
        others = found != entity
        return found[others].astype(np.int32), counts[others].astype(np.int64)

    def hops_to(self, entity: int, max_hops: int) -> NDArray[np.int8]:
        """The number of hops over common rows from one entity to each other, ``(entities,)``; -1 beyond ``max_hops``.

        A breadth-first search; each hop is one pass over all mentions.
        """
        hops = np.full(self.mentions.entities, -1, dtype=np.int8)
        hops[entity] = 0
        edge = hops == 0
        for hop in range(1, max_hops + 1):
            reached = np.zeros(len(hops), dtype=np.bool_)
            for segment, mask in self.segments():
                touched = np.logical_or.reduceat(edge[segment.entities], segment.starts[:-1])
                if mask is not None:
                    touched &= mask
                reached[segment.entities[np.repeat(touched, np.diff(segment.starts))]] = True
            edge = reached & (hops < 0)
            if not edge.any():
                break
            hops[edge] = hop
        return hops

    def _spelling(self, spelling: int) -> str:
        numbering = self.mentions.spellings
        return self._postings[int(numbering.owner[spelling])].dictionary.value(int(numbering.code[spelling]))

    def _rows_of_spelling(self, spelling: int) -> list[Rows]:
        found: list[Rows] = []
        for postings, places, mask in zip(self._postings, self.mentions.spellings.places, self._allowed, strict=True):
            code = int(np.searchsorted(places, spelling))
            if code < len(places) and places[code] == spelling:
                starts = postings.dictionary.starts
                rows = postings.rows[int(starts[code]) : int(starts[code + 1])]
            else:
                rows = postings.rows[:0]
            found.append(rows if mask is None else rows[mask[rows]])
        return found


def _common(one: Rows, other: Rows) -> Rows:
    """The rows of both, each ascending."""
    few, many = (one, other) if len(one) < len(other) else (other, one)
    if not len(few):
        return few
    places = np.minimum(np.searchsorted(many, few), len(many) - 1)
    common: Rows = few[many[places] == few]
    return common


BLOCK_PAIRS = 2_000_000  # pairs counted at a time: about 50 bytes each
MAX_PAIRS = 50_000_000  # pairs of rows counted for one answer; beyond that the result is incomplete


@dataclass(frozen=True)
class Pairs:
    """Pairs of entities, those that most rows name first; of equal counts, those of rarer entities first."""

    first: Entities
    second: Entities
    counts: Counts
    complete: bool = True  # whether no other pair can be among the best


def frequent_pairs(scoped: ScopedMentions, limit: int, *, max_pairs: int = MAX_PAIRS) -> Pairs:
    """The pairs that most rows name together.

    Entities are taken by descending count, a block at a time, each with all rarer ones. A pair has no more rows than
    either entity, so the search ends once the best pairs exceed the next count. (The threshold algorithm: Fagin, Lotem
    and Naor, Optimal aggregation algorithms for middleware, 2003.)
    """
    order = np.argsort(-scoped.counts, kind="stable")
    order = order[: int(np.count_nonzero(scoped.counts))]
    counts = scoped.counts[order]
    rank = np.full(len(scoped.counts), len(order), dtype=np.int32)  # entities in no passing row come last
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
    row = np.searchsorted(segment.starts, mentions, side="right") - 1
    sizes = segment.starts[row + 1] - segment.starts[row]
    others = indices_of(segment.starts[row], sizes)
    one = np.repeat(of_mention[mentions], sizes).astype(np.int64)
    other = of_mention[others].astype(np.int64)
    later = other > one
    keys: NDArray[np.int64] = one[later] * ranks + other[later]
    return keys
