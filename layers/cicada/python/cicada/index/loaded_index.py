"""An open version of the index: its segments' heads are in memory, and what was loaded of their bodies."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.passages import Passage
from cicada.errors import IndexCorrupt
from cicada.index.columns import ColumnPart, Mask, RowFilter, ValueNumbering
from cicada.index.embedding import Vector
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.search import LexicalQuery
from cicada.index.list_columns import LIST_FIELDS, ListPart
from cicada.index.manifest import Manifest, SegmentEntry
from cicada.index.ports import ObjectStore
from cicada.index.segment_format import gather_groups
from cicada.index.segment_reader import RoundReader, SegmentSections, damage_in, open_segments
from cicada.index.texts import TextPart
from cicada.index.vectors.part import VectorPart
from cicada.index.vectors.search import VectorHits, cosines, search_vectors
from cicada.rights import Readable

logger = logging.getLogger(__name__)

COLLECTION = "collection"  # the field of :data:`~cicada.index.columns.RowFilter` that whole segments are chosen by

SCOPES_HELD = 16  # filters whose rows are remembered: a mask is a byte a row
VIEWS_HELD = 8  # restricted views of a version that are remembered, each with its scopes

PLACES, BLOCKS = "passages.places", "passages.blocks"


class OpenSegment:
    """A segment of a version, as searches see it."""

    def __init__(self, entry: SegmentEntry, sections: SegmentSections, alive: Mask | None) -> None:
        """Take a segment's sections, and a mask of its living rows, None for all."""
        self.entry = entry
        self.sections = sections
        self.alive = alive
        with damage_in(entry.key):
            self.vectors = VectorPart(sections, entry.count, sections.header.dimensions)
            self.lexical = LexicalPart(sections, entry.count)
            self.columns = ColumnPart(sections, entry.count)
            self.lists = ListPart(sections, entry.count)
            self.texts = TextPart(sections, entry.count)

    @property
    def warm_names(self) -> tuple[str, ...]:
        """The sections that searches read, the most useful first."""
        filters = (*self.columns.body_names(), *self.lists.body_names())
        return (PLACES, *filters, *self.vectors.body_names, *self.lexical.body_names)

    @property
    def warm(self) -> bool:
        """Whether searches read only the texts that they show."""
        return not self.cold_bytes

    @property
    def cold_bytes(self) -> int:
        """Bytes left to load until it is warm."""
        missing = (name for name in self.warm_names if self.sections.resident(name) is None)
        return sum(map(self.sections.size, missing))

    def passing(self, mask: Mask | None) -> int:
        """The number of rows that a mask has, None for all."""
        return self.entry.count if mask is None else int(np.count_nonzero(mask))


@dataclass(frozen=True)
class RowScope:
    """The rows of a version that a search ranks, by segment."""

    segments: tuple[OpenSegment, ...]
    alive: tuple[Mask | None, ...]
    allowed: tuple[Mask | None, ...]
    """Rows that pass the filters and are not deleted (unless deleted rows are requested); None for all."""
    count: int  # rows in all


@dataclass(frozen=True)
class LoadedIndex:
    """One version, immutable: a search keeps using it, whatever is published meanwhile.

    Every method raises IndexCorrupt or IndexUnavailable if a read fails.
    """

    manifest: Manifest
    segments: tuple[OpenSegment, ...]
    rounds: RoundReader
    unreadable: tuple[SegmentEntry, ...] = ()  # segments left out, if the version allows partial answers
    scopes: dict[tuple[tuple[str, frozenset[str]], ...], RowScope] = field(default_factory=dict, compare=False)
    """Of the last filters, at most :data:`SCOPES_HELD`."""
    numberings: dict[tuple[str, tuple[str, ...]], ValueNumbering] = field(default_factory=dict, compare=False)
    """Of counted fields, by field and segments; :mod:`cicada.index.facets` fills and bounds it."""
    derived: dict[Any, Any] = field(default_factory=dict, compare=False)
    """What modules of :mod:`cicada.retrieval` have made of it and keep with it; each bounds its own part."""
    views: dict[frozenset[str], LoadedIndex] = field(default_factory=dict, compare=False)
    """The last restricted views, by their collections, at most :data:`VIEWS_HELD`."""

    @property
    def warm(self) -> bool:
        """Whether searches read only the texts that they show."""
        return all(segment.warm for segment in self.segments)

    def seen_by(self, readable: Readable) -> LoadedIndex:
        """The version as if it had only the collections that an asker may read; its name and memory are the same.

        A segment has one collection, and statistics are those of a search's segments. So whatever is made from a view
        equals, score by score, what an index without the other collections gives.
        """
        seen = self.manifest.readable_by(readable)
        if len(seen) == len(self.manifest.collections):
            return self
        view = self.views.get(seen)
        if view is None:
            view = LoadedIndex(
                self.manifest.limited_to(seen),
                tuple(segment for segment in self.segments if segment.entry.collection in seen),
                self.rounds,
                tuple(entry for entry in self.unreadable if entry.collection in seen),
            )
            if len(self.views) >= VIEWS_HELD:
                self.views.clear()
            self.views[seen] = view
        return view

    def scope(self, where: RowFilter) -> RowScope:
        """The rows that pass a filter."""
        wanted = {name: frozenset(values) for name, values in where.items() if values}
        key = tuple(sorted(wanted.items(), key=lambda item: item[0]))
        scope = self.scopes.get(key)
        if scope is None:
            scope = self._scope(wanted)
            if len(self.scopes) >= SCOPES_HELD:
                self.scopes.clear()
            self.scopes[key] = scope
        return scope

    def scope_with_deleted(self, where: RowFilter) -> RowScope:
        """The rows that pass a filter, deleted ones included: they show where a document had other passages."""
        return self._scope({name: frozenset(values) for name, values in where.items() if values}, deleted=True)

    def search_vectors(self, query: Vector, scope: RowScope, limit: int) -> VectorHits:
        """The rows nearest to a query of unit length, shape ``(d,)``; hits number the segments of the scope."""
        parts = [segment.vectors for segment in scope.segments]
        return search_vectors(parts, query, scope.allowed, limit, self.rounds.gather)

    def cosines(
        self, query: Vector, scope: RowScope, segment: NDArray[np.intp], row: NDArray[np.intp]
    ) -> NDArray[np.float32]:
        """How near given rows are to a query; all arrays of one shape ``(k,)``."""
        return cosines([one.vectors for one in scope.segments], query, segment, row, self.rounds.gather)

    def words(self, query: str, scope: RowScope) -> LexicalQuery:
        """A prepared query by words. Its statistics are those of the scope's segments."""
        return LexicalQuery([one.lexical for one in scope.segments], query, scope.alive, self.rounds.gather)

    def load_places(self, scope: RowScope) -> None:
        """Load the places of all passages: they are small, and save a round before texts are shown."""
        self.rounds.load_at_once([(segment.sections, PLACES) for segment in scope.segments])

    def in_document_order(self, scope: RowScope) -> list[tuple[int, int]]:
        """All rows of a scope as ``(segment in the scope, row)`` pairs, each segment's in document order."""
        every = [
            list(range(one.entry.count)) if allowed is None else np.flatnonzero(allowed).tolist()
            for one, allowed in zip(scope.segments, scope.allowed, strict=True)
        ]
        spans = [one.texts.place_spans(rows) if rows else [] for one, rows in zip(scope.segments, every, strict=True)]
        found: list[tuple[int, int]] = []
        for number, (rows, data) in enumerate(zip(every, gather_groups(self.rounds.gather, spans), strict=True)):
            places = scope.segments[number].texts.places(rows, data) if rows else []
            found += [(number, row) for _, row in sorted(zip(places, rows, strict=True))]
        return found

    def passages(self, scope: RowScope, rows: Sequence[tuple[int, int]]) -> list[Passage]:
        """The passages of ``(segment in the scope, row)`` pairs, in order."""
        by_segment: dict[int, list[int]] = {}
        for segment, row in rows:
            by_segment.setdefault(segment, []).append(row)
        asked = list(by_segment.items())
        texts = [scope.segments[segment].texts for segment, _ in asked]

        place_data = gather_groups(
            self.rounds.gather, [part.place_spans(of) for part, (_, of) in zip(texts, asked, strict=True)]
        )
        places = [part.places(of, data) for part, (_, of), data in zip(texts, asked, place_data, strict=True)]
        block_data = gather_groups(
            self.rounds.gather, [part.block_spans(at) for part, at in zip(texts, places, strict=True)]
        )
        found: dict[tuple[int, int], Passage] = {}
        for part, (segment, of), at, data in zip(texts, asked, places, block_data, strict=True):
            found.update(zip(((segment, row) for row in of), part.passages(at, data), strict=True))
        return [found[pair] for pair in rows]

    def without(self, key: str) -> LoadedIndex:
        """The version without a segment."""
        return LoadedIndex(
            self.manifest,
            tuple(segment for segment in self.segments if segment.entry.key != key),
            self.rounds,
            (*self.unreadable, *(segment.entry for segment in self.segments if segment.entry.key == key)),
        )

    def _scope(self, where: dict[str, frozenset[str]], *, deleted: bool = False) -> RowScope:
        collections = where.pop(COLLECTION, frozenset())
        segments = tuple(one for one in self.segments if not collections or one.entry.collection in collections)
        listed = {name: where.pop(name) for name in LIST_FIELDS if name in where}
        self._open_fields(segments, where, listed)
        rows = gather_groups(self.rounds.gather, [segment.lists.row_spans(listed) for segment in segments])
        allowed: list[Mask | None] = []
        count = 0
        for segment, found in zip(segments, rows, strict=True):
            mask = _both(segment.columns.matching(where), segment.lists.matching(listed, found))
            mask = mask if deleted else _both(mask, segment.alive)
            allowed.append(mask)
            count += segment.passing(mask)
        return RowScope(segments, tuple(segment.alive for segment in segments), tuple(allowed), count)

    def _open_fields(self, segments: Sequence[OpenSegment], columns: RowFilter, lists: RowFilter) -> None:
        """Read the columns and list dictionaries that a filter needs, in one round."""
        spans = [[*one.columns.spans(columns), *one.lists.spans(lists)] for one in segments]
        for segment, found in zip(segments, gather_groups(self.rounds.gather, spans), strict=True):
            of_columns = len(segment.columns.spans(columns))
            segment.columns.decode(columns, found[:of_columns])
            segment.lists.open(lists, found[of_columns:])


def _both(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return other if one is None else one
    both: Mask = one & other
    return both


def open_version(
    store: ObjectStore, rounds: RoundReader, manifest: Manifest, known: Iterable[OpenSegment]
) -> LoadedIndex:
    """Open a version's segments, without unreadable ones if the version allows that; ``known`` ones stay in memory.

    Raises IndexCorrupt, IndexMismatch or IndexUnavailable.
    """
    by_key = {segment.entry.key: segment for segment in known}
    unreadable: list[SegmentEntry] = []
    while True:
        entries = [entry for entry in manifest.segments if entry not in unreadable]
        try:
            return LoadedIndex(manifest, _open_all(store, entries, by_key), rounds, tuple(unreadable))
        except IndexCorrupt as error:
            unreadable += _expendable(manifest, entries, error)


def rest_of(index: LoadedIndex, error: IndexCorrupt) -> LoadedIndex:
    """The version without the segment that an error is about, if the version allows that; else raises the error."""
    (entry,) = _expendable(index.manifest, [segment.entry for segment in index.segments], error)
    return index.without(entry.key)


def _open_all(
    store: ObjectStore, entries: Sequence[SegmentEntry], known: Mapping[str, OpenSegment]
) -> tuple[OpenSegment, ...]:
    fresh = [entry for entry in entries if entry.key not in known]
    changed = [entry for entry in entries if entry.key not in known or known[entry.key].entry != entry]
    opened, alive = open_segments(store, fresh, changed)
    sections = {key: segment.sections for key, segment in known.items()} | opened
    return tuple(
        OpenSegment(entry, sections[entry.key], alive[entry.key]) if entry.key in alive else known[entry.key]
        for entry in entries
    )


def _expendable(manifest: Manifest, entries: list[SegmentEntry], error: IndexCorrupt) -> list[SegmentEntry]:
    """The segment that an error is about, if the version allows answers without it; else raises the error."""
    damaged = [entry for entry in entries if entry.key == error.key]
    if not damaged or not manifest.allow_partial or len(entries) == 1:
        raise error
    logger.error("segment left out", extra={"index_version": manifest.version, "why": str(error)})
    return damaged
