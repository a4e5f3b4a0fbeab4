"""The entity graph: entities of the corpus, tied where a passage names both, with the passages that show it.

Counts are exact, from the index's list columns, over all live passages that pass the filters. Nothing outside of the
filters is disclosed, names included.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from cicada.corpus.passages import Passage
from cicada.errors import RetrievalInvalid
from cicada.index.columns import Mask
from cicada.index.facets import load_field, most_frequent
from cicada.index.list_columns import ENTITIES, Postings, Rows
from cicada.index.loaded_index import LoadedIndex, RowScope
from cicada.index.mentions import Mentions, ScopedMentions, frequent_pairs
from cicada.index.reader import IndexReader
from cicada.retrieval.entity_paths import (
    MAX_HOPS,
    Cooccurring,
    Entity,
    Neighbours,
    Paths,
    Tie,
    UnknownEntity,
    closest_names,
    entity_paths,
    tie,
)
from cicada.retrieval.names import NameChecker
from cicada.retrieval.ports import Degradation, Filters
from cicada.retrieval.shards import partial_index, read_index, row_filter
from cicada.rights import Readable
from cicada.text.characters import folded

CLOSEST = 5
"""Similar names suggested for an unknown one."""
MAX_COMPARED = 50_000
"""The most frequent names, compared with an unknown one."""

Pair = tuple[int, int, int]
"""Two entities, and how many passages name both."""


class GraphView:
    """Entities, by their numbers, and what is shown of them."""

    def __init__(
        self,
        index: LoadedIndex,
        scope: RowScope,
        mentions: ScopedMentions,
        places: Sequence[int],
        show: int,
        degraded: tuple[Degradation, ...],
    ) -> None:
        """``places`` are the segments' positions in the scope; ``show`` bounds the passages shown of each."""
        self.mentions = mentions
        self._index = index
        self._scope = scope
        self._places = places
        self._show = show
        self._degraded = degraded

    def told(self, unknown: tuple[UnknownEntity, ...]) -> dict[str, Any]:
        """The fields of :class:`~cicada.retrieval.entity_paths.GraphAnswer`."""
        return {
            "index_version": self._index.manifest.version,
            "total": self._scope.count,
            "unknown": unknown,
            "degraded": (*self._degraded, *partial_index(self._index, "looked at")),
        }

    def resolved(self, names: Sequence[str]) -> tuple[list[int | None], tuple[UnknownEntity, ...]]:
        """The entity of each name, None for unknown ones, and the unknown ones."""
        found = [self.mentions.find(name) for name in names]
        missing = dict.fromkeys(name for name, one in zip(names, found, strict=True) if one is None)
        return found, tuple(UnknownEntity(name, self._closest(name)) for name in missing)

    def entity(self, entity: int) -> Entity:
        """An entity as it is shown."""
        return Entity(self.mentions.name(entity), int(self.mentions.counts[entity]))

    def best_partners(self, entity: int, limit: int) -> tuple[list[Pair], int]:
        """An entity's pairs with its most frequent partners, and the number of all partners."""
        partners, counts = self.mentions.partners(entity)
        rarest_first = np.lexsort((partners, self.mentions.counts[partners], -counts))[:limit]
        chosen = zip(partners[rarest_first].tolist(), counts[rarest_first].tolist(), strict=True)
        return [(entity, partner, count) for partner, count in chosen], len(partners)

    def pairs_among(self, entities: Sequence[int]) -> list[Pair]:
        """The pairs of entities that passages name together; most passages first, then the higher lift."""
        counts = self.mentions.counts
        pairs = [(one, other, self.together([one, other])) for one, other in combinations(entities, 2)]
        met = [pair for pair in pairs if pair[2]]
        return sorted(met, key=lambda pair: (-pair[2], int(counts[pair[0]]) * int(counts[pair[1]]), pair))

    def together(self, entities: Sequence[int]) -> int:
        """How many passages name all of some entities."""
        return sum(map(len, self.mentions.rows_of_all(entities)))

    def ties(self, pairs: Sequence[Pair]) -> tuple[Tie, ...]:
        """Pairs as they are shown."""
        entities = {entity: self.entity(entity) for one, other, _ in pairs for entity in (one, other)}
        shown = self.shown_by([self.mentions.rows_of_all([one, other]) for one, other, _ in pairs])
        return tuple(
            tie(entities[one], entities[other], count, self._scope.count, passages)
            for (one, other, count), passages in zip(pairs, shown, strict=True)
        )

    def shown_by(self, rows: Sequence[Sequence[Rows]]) -> list[tuple[Passage, ...]]:
        """Some passages of each of several sets of rows by segment, all read at once."""
        chosen = [self._clearest(of_segments) for of_segments in rows]
        wanted = list(dict.fromkeys(pair for pairs in chosen for pair in pairs))
        passages = dict(zip(wanted, self._index.passages(self._scope, wanted), strict=True))
        return [tuple(passages[pair] for pair in pairs) for pairs in chosen]

    def _clearest(self, rows: Sequence[Rows]) -> list[tuple[int, int]]:
        """The rows that name the fewest entities, each as its segment in the scope and its row."""
        found: list[tuple[int, int, int]] = []
        for place, segment, of_segment in zip(self._places, self.mentions.mentions.segments, rows, strict=True):
            lengths = segment.lengths(of_segment)
            best = np.argsort(lengths, kind="stable")[: self._show]
            found += [(int(lengths[at]), place, int(of_segment[at])) for at in best.tolist()]
        return [(place, row) for _, place, row in sorted(found)[: self._show]]

    def _closest(self, name: str) -> tuple[str, ...]:
        frequent = most_frequent(self.mentions.counts, MAX_COMPARED).tolist()
        by_key = {self.mentions.key(entity): entity for entity in frequent}
        return tuple(self.mentions.name(by_key[key]) for key in closest_names(folded(name), by_key, CLOSEST))


DEFAULT_SHOWN = 3
"""Passages that show a tie, at most, unless the question says otherwise."""
MAX_NAMED = 10
"""Entities that one question may name."""
MAX_MENTIONS = 32 * 2**20
"""Mentions of entities in all graphs in memory, of 4 bytes each plus the rows and names."""
GRAPHS_HELD = 4
"""Sets of segments whose graphs are held: all collections, and some that filters chose."""
MAX_LISTED = 1_000
"""Pairs, neighbours or ways that one question may ask for."""
MAX_SHOWN = 10
"""Passages that one question may ask for with each of them."""


class EntityGraph:
    """Questions about entities over an :class:`~cicada.index.reader.IndexReader`. Safe for several threads.

    The first question builds a version's graph, which stays while later versions have its segments. Every method raises
    IndexFailure when the index cannot serve it, CollectionUnknown or EpisodeUnknown when the filters name none that
    exists, and RetrievalInvalid for a question beyond the limits or over more than :data:`MAX_MENTIONS`. Names of
    entities may have any case. ``limit`` bounds the result, ``show`` the passages shown of each item.
    """

    def __init__(self, reader: IndexReader, *, max_mentions: int = MAX_MENTIONS) -> None:
        self._reader = reader
        self._names = NameChecker(reader)
        self._max_mentions = max_mentions
        self._held: OrderedDict[tuple[str, ...], Mentions] = OrderedDict()
        self._held_of = ""  # the version that was last made room for
        self._making = threading.Lock()

    def cooccurring(
        self, entities: Sequence[str], filters: Filters, *, readable: Readable, limit: int, show: int = DEFAULT_SHOWN
    ) -> Cooccurring:
        """Pairs that passages name together: among several entities, of one with others, or, without any, of all."""
        _check(limit, show)
        if len(entities) > MAX_NAMED:
            raise RetrievalInvalid(f"entities: must be at most {MAX_NAMED}")
        degraded = self._names.check(filters, readable)

        def answered(index: LoadedIndex) -> Cooccurring:
            view = self._view(index, filters, show, degraded)
            found, unknown = view.resolved(entities)
            known = list(dict.fromkeys(entity for entity in found if entity is not None))
            complete = True
            if not entities:
                best = frequent_pairs(view.mentions, limit)
                pairs = list(zip(best.first.tolist(), best.second.tolist(), best.counts.tolist(), strict=True))
                complete = best.complete
            elif len(entities) == 1:
                pairs = [pair for one in known for pair in view.best_partners(one, limit)[0]]
            else:
                pairs = view.pairs_among(known)[:limit]
            rows = view.mentions.rows_of_all(known) if known and not unknown else None
            return Cooccurring(
                **view.told(unknown),
                entities=tuple(view.entity(one) for one in known),
                together=0 if rows is None else sum(map(len, rows)),
                shown_by=() if rows is None else view.shown_by([rows])[0],
                ties=view.ties(pairs),
                complete=complete,
            )

        return read_index(self._reader, readable, answered)[0]

    def neighbours(
        self, entity: str, filters: Filters, *, readable: Readable, limit: int, show: int = DEFAULT_SHOWN
    ) -> Neighbours:
        """The entities that passages name together with one."""
        _check(limit, show)
        degraded = self._names.check(filters, readable)

        def answered(index: LoadedIndex) -> Neighbours:
            view = self._view(index, filters, show, degraded)
            (found,), unknown = view.resolved([entity])
            if found is None:
                return Neighbours(**view.told(unknown), entity=None, unique=0, ties=())
            pairs, unique = view.best_partners(found, limit)
            return Neighbours(**view.told(()), entity=view.entity(found), unique=unique, ties=view.ties(pairs))

        return read_index(self._reader, readable, answered)[0]

    def paths(
        self,
        start: str,
        end: str,
        filters: Filters,
        *,
        readable: Readable,
        max_hops: int,
        limit: int,
        show: int = DEFAULT_SHOWN,
    ) -> Paths:
        """The ways from one entity to another, from each to the next by a passage that names both.

        ``max_hops`` is 1 to :data:`~cicada.retrieval.entity_paths.MAX_HOPS`. An entity has no way to itself.
        """
        _check(limit, show)
        if not 1 <= max_hops <= MAX_HOPS:
            raise RetrievalInvalid(f"max_hops: must be from 1 to {MAX_HOPS}")
        degraded = self._names.check(filters, readable)

        def answered(index: LoadedIndex) -> Paths:
            view = self._view(index, filters, show, degraded)
            (first, last), unknown = view.resolved([start, end])
            paths: tuple[tuple[int, ...], ...] = ()
            complete = True
            if first is not None and last is not None and first != last:
                paths, complete = entity_paths(view.mentions, first, last, max_hops=max_hops, limit=limit)
            pairs = {pair for path in paths for pair in pairwise(path)}
            counted = [(one, other, view.together([one, other])) for one, other in sorted(pairs)]
            ties = {(one, other): tie for (one, other, _), tie in zip(counted, view.ties(counted), strict=True)}
            return Paths(
                **view.told(unknown),
                start=None if first is None else view.entity(first),
                end=None if last is None else view.entity(last),
                paths=tuple(tuple(ties[pair] for pair in pairwise(path)) for path in paths),
                complete=complete,
            )

        return read_index(self._reader, readable, answered)[0]

    def _view(self, index: LoadedIndex, filters: Filters, show: int, degraded: tuple[Degradation, ...]) -> GraphView:
        scope = index.scope(row_filter(filters))
        load_field(index, scope, ENTITIES)
        found = {
            place: held
            for place, segment in enumerate(scope.segments)
            if (held := segment.lists.postings(ENTITIES, index.rounds.gather)) is not None
        }
        if sum(len(one.rows) for one in found.values()) > self._max_mentions:
            # Graphs are held by segment, for all filters; only if that is too much, for the filter's segments alone.
            found = {place: one for place, one in found.items() if _has_rows(scope.allowed[place])}
        places, postings = list(found), list(found.values())
        mentions = self._mentions(index, tuple(scope.segments[place].entry.key for place in places), postings)
        allowed = [scope.allowed[place] for place in places]
        return GraphView(index, scope, ScopedMentions(mentions, postings, allowed, scope.count), places, show, degraded)

    def _mentions(self, index: LoadedIndex, key: tuple[str, ...], postings: Sequence[Postings]) -> Mentions:
        """The mentions of segments, by their keys: held, or made, which may evict others."""
        count = sum(len(one.rows) for one in postings)
        if count > self._max_mentions:
            # The message must not tell the count, which includes passages outside of the filters.
            told = f"the collections have more than the {self._max_mentions:,} mentions of entities that a graph takes"
            raise RetrievalInvalid(f"filters: {told}: choose fewer, or smaller, collections")
        with self._making:
            found = self._held.pop(key, None)
            if found is None:
                self._make_room(index, count)
                found = Mentions.of(postings)
            self._held[key] = found
        return found

    def _make_room(self, index: LoadedIndex, count: int) -> None:
        if index.manifest.version != self._held_of:  # else graphs of other askers' collections would go
            self._held_of = index.manifest.version
            current = {segment.entry.key for segment in index.segments}
            for old in [held for held in self._held if not current.issuperset(held)]:
                del self._held[old]
        held_mentions = sum(held.count for held in self._held.values())
        while self._held and (len(self._held) >= GRAPHS_HELD or held_mentions + count > self._max_mentions):
            held_mentions -= self._held.popitem(last=False)[1].count


def _has_rows(allowed: Mask | None) -> bool:
    return allowed is None or bool(allowed.any())


def _check(limit: int, show: int) -> None:
    if not 1 <= limit <= MAX_LISTED:
        raise RetrievalInvalid(f"limit: must be from 1 to {MAX_LISTED}")
    if not 0 <= show <= MAX_SHOWN:
        raise RetrievalInvalid(f"show: must be from 0 to {MAX_SHOWN}")
