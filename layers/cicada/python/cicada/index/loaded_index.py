"""A version of the index, open: its segments' heads in memory, and of their bodies what was loaded so far."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.passages import Passage
from cicada.errors import IndexCorrupt
from cicada.index.columns import ColumnPart, Mask, Numbering, RowFilter
from cicada.index.embedding import Vector
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.search import LexicalQuery
from cicada.index.list_columns import LIST_FIELDS, ListPart
from cicada.index.manifest import Manifest, SegmentEntry
from cicada.index.ports import ObjectStore
from cicada.index.segment_format import Span
from cicada.index.segment_reader import RoundReader, SegmentSections, open_segments
from cicada.index.texts import TextPart
from cicada.index.vectors.part import VectorPart
from cicada.index.vectors.search import VectorHits, cosines, search_vectors

COLLECTION = "collection"
"""The field of :data:`~cicada.index.columns.RowFilter` that whole segments are chosen by."""

SCOPES_HELD = 16
"""Filters whose rows are remembered: a mask is a byte a row."""

PLACES, BLOCKS = "passages.places", "passages.blocks"


class OpenSegment:
    """A segment of a version, as searches see it."""

    def __init__(self, entry: SegmentEntry, sections: SegmentSections, alive: Mask | None) -> None:
        """Take a segment's sections, and the rows that the version still has; None for all.

        Raises:
            IndexCorrupt: the parts do not fit each other.
        """
        self.entry = entry
        self.sections = sections
        self.alive = alive
        try:
            self.vectors = VectorPart(sections, entry.count, sections.header.dimensions)
            self.lexical = LexicalPart(sections, entry.count)
            self.columns = ColumnPart(sections, entry.count)
            self.lists = ListPart(sections, entry.count)
            self.texts = TextPart(sections, entry.count)
        except IndexCorrupt as error:
            raise IndexCorrupt(f"{entry.key}: {error}", key=entry.key) from error

    @property
    def warm_names(self) -> tuple[str, ...]:
        """The sections without which a search would have to read, in the order in which they help most."""
        filters = (*self.columns.body_names(), *self.lists.body_names())
        return (PLACES, *filters, *self.vectors.body_names, *self.lexical.body_names)

    @property
    def warm(self) -> bool:
        """Whether searches read nothing, but the texts that they show."""
        return all(self.sections.resident(name) is not None for name in self.warm_names)

    @property
    def cold_bytes(self) -> int:
        """Bytes to read until it is warm."""
        missing = (name for name in self.warm_names if self.sections.resident(name) is None)
        return sum(map(self.sections.size, missing))


@dataclass(frozen=True)
class Scope:
    """The rows of a version that a search ranks, by segment."""

    segments: tuple[OpenSegment, ...]
    alive: tuple[Mask | None, ...]
    allowed: tuple[Mask | None, ...]
    """Passing the filters, and alive unless deleted rows are asked for; None for all."""
    count: int
    """Rows in all."""


@dataclass(frozen=True)
class LoadedIndex:
    """One version, immutable: whoever holds it searches that version, whatever is published meanwhile."""

    manifest: Manifest
    segments: tuple[OpenSegment, ...]
    rounds: RoundReader
    unreadable: tuple[SegmentEntry, ...] = ()
    """Segments of the version that cannot be read, where it allows to do without them."""
    scopes: dict[tuple[tuple[str, frozenset[str]], ...], Scope] = field(default_factory=dict, compare=False)
    """Of the last filters; bounded by :data:`SCOPES_HELD`."""
    numberings: dict[tuple[str, tuple[str, ...]], Numbering] = field(default_factory=dict, compare=False)
    """Of fields that were counted, by field and segments; :mod:`cicada.index.facets` fills and bounds it."""

    @property
    def warm(self) -> bool:
        """Whether searches read nothing, but the texts that they show."""
        return all(segment.warm for segment in self.segments)

    def scope(self, where: RowFilter) -> Scope:
        """The rows that pass a filter.

        Raises:
            IndexCorrupt, IndexUnavailable: a column had to be read, and could not be.
        """
        wanted = {name: frozenset(values) for name, values in where.items() if values}
        key = tuple(sorted(wanted.items(), key=lambda item: item[0]))
        scope = self.scopes.get(key)
        if scope is None:
            scope = self._scope(wanted)
            if len(self.scopes) >= SCOPES_HELD:
                self.scopes.clear()
            self.scopes[key] = scope
        return scope

    def scope_with_deleted(self, where: RowFilter) -> Scope:
        """The rows that pass a filter, deleted ones included: these tell where a document had what it has no more.

        Raises:
            IndexCorrupt, IndexUnavailable: a column had to be read, and could not be.
        """
        return self._scope({name: frozenset(values) for name, values in where.items() if values}, deleted=True)

    def search_vectors(self, query: Vector, scope: Scope, limit: int) -> VectorHits:
        """The rows that are nearest to a query of unit length, shape ``(d,)``; ``segment`` counts in the scope.

        Raises:
            IndexCorrupt, IndexUnavailable: ranges had to be read, and could not be.
        """
        parts = [segment.vectors for segment in scope.segments]
        return search_vectors(parts, query, scope.allowed, limit, self.rounds.gather)

    def cosines(
        self, query: Vector, scope: Scope, segment: NDArray[np.intp], row: NDArray[np.intp]
    ) -> NDArray[np.float32]:
        """How near given rows are to a query; all arrays of one shape ``(k,)``.

        Raises:
            IndexCorrupt, IndexUnavailable: ranges had to be read, and could not be.
        """
        return cosines([one.vectors for one in scope.segments], query, segment, row, self.rounds.gather)

    def words(self, query: str, scope: Scope) -> LexicalQuery:
        """A query by words, prepared: what it needs is read.

        Statistics are those of the scope's segments: of the collections that are searched.

        Raises:
            IndexCorrupt, IndexUnavailable: ranges had to be read, and could not be.
        """
        return LexicalQuery([one.lexical for one in scope.segments], query, scope.alive, self.rounds.gather)

    def load_places(self, scope: Scope) -> None:
        """Bring into memory where each row's passage lies: small, and a round less before texts are shown.

        Raises:
            IndexCorrupt, IndexUnavailable: it could not be read.
        """
        self.rounds.load_at_once([(segment.sections, PLACES) for segment in scope.segments])

    def in_document_order(self, scope: Scope) -> list[tuple[int, int]]:
        """All rows of a scope as ``(segment in the scope, row)`` pairs, each segment's as they were written.

        Raises:
            IndexCorrupt, IndexUnavailable: they had to be read, and could not be.
        """
        every = [
            list(range(one.entry.count)) if allowed is None else np.flatnonzero(allowed).tolist()
            for one, allowed in zip(scope.segments, scope.allowed, strict=True)
        ]
        spans = [one.texts.place_spans(rows) if rows else [] for one, rows in zip(scope.segments, every, strict=True)]
        found: list[tuple[int, int]] = []
        for number, (rows, data) in enumerate(zip(every, _cut(self.rounds.gather(_flat(spans)), spans), strict=True)):
            places = scope.segments[number].texts.places(rows, data) if rows else []
            found += [(number, row) for _, row in sorted(zip(places, rows, strict=True))]
        return found

    def passages(self, scope: Scope, rows: Sequence[tuple[int, int]]) -> list[Passage]:
        """The passages of ``(segment in the scope, row)`` pairs, in order.

        Raises:
            IndexCorrupt, IndexUnavailable: they had to be read, and could not be.
        """
        by_segment: dict[int, list[int]] = {}
        for segment, row in rows:
            by_segment.setdefault(segment, []).append(row)
        asked = list(by_segment.items())
        texts = [scope.segments[segment].texts for segment, _ in asked]

        place_spans = [part.place_spans(of) for part, (_, of) in zip(texts, asked, strict=True)]
        place_data = _cut(self.rounds.gather(_flat(place_spans)), place_spans)
        places = [part.places(of, data) for part, (_, of), data in zip(texts, asked, place_data, strict=True)]
        block_spans = [part.block_spans(at) for part, at in zip(texts, places, strict=True)]
        block_data = _cut(self.rounds.gather(_flat(block_spans)), block_spans)
        found: dict[tuple[int, int], Passage] = {}
        for part, (segment, of), at, data in zip(texts, asked, places, block_data, strict=True):
            found.update(zip(((segment, row) for row in of), part.passages(at, data), strict=True))
        return [found[pair] for pair in rows]

    def without(self, key: str) -> LoadedIndex:
        """The rest of the version, without a segment that cannot be read."""
        return LoadedIndex(
            self.manifest,
            tuple(segment for segment in self.segments if segment.entry.key != key),
            self.rounds,
            (*self.unreadable, *(segment.entry for segment in self.segments if segment.entry.key == key)),
        )

    def _scope(self, where: dict[str, frozenset[str]], *, deleted: bool = False) -> Scope:
        collections = where.pop(COLLECTION, frozenset())
        chosen = [segment for segment in self.segments if not collections or segment.entry.collection in collections]
        listed = {name: where.pop(name) for name in LIST_FIELDS if name in where}
        spans = [[*one.columns.spans(where), *one.lists.dictionary_spans(listed)] for one in chosen]
        for segment, found in zip(chosen, _cut(self.rounds.gather(_flat(spans)), spans), strict=True):
            columns = len(segment.columns.spans(where))
            segment.columns.decode(where, found[:columns])
            segment.lists.open(listed, found[columns:])
        row_spans = [segment.lists.row_spans(listed) for segment in chosen]
        rows = _cut(self.rounds.gather(_flat(row_spans)), row_spans)
        segments: list[OpenSegment] = []
        allowed: list[Mask | None] = []
        count = 0
        for segment, found in zip(chosen, rows, strict=True):
            mask = _both(segment.columns.matching(where), segment.lists.matching(listed, found))
            mask = mask if deleted else _both(mask, segment.alive)
            segments.append(segment)
            allowed.append(mask)
            count += segment.entry.count if mask is None else int(np.count_nonzero(mask))
        return Scope(tuple(segments), tuple(segment.alive for segment in segments), tuple(allowed), count)


def _both(one: Mask | None, other: Mask | None) -> Mask | None:
    """The rows of both masks, where None is all."""
    if one is None or other is None:
        return other if one is None else one
    both: Mask = one & other
    return both


def _flat(spans: Sequence[Sequence[Span]]) -> list[Span]:
    return [span for each in spans for span in each]


def _cut(data: Sequence[memoryview], shape: Sequence[Sequence[object]]) -> list[list[memoryview]]:
    """What was gathered for a list of lists, in lists again."""
    pieces = iter(data)
    return [[next(pieces) for _ in each] for each in shape]


logger = logging.getLogger(__name__)


def open_version(
    store: ObjectStore, rounds: RoundReader, manifest: Manifest, known: Iterable[OpenSegment]
) -> LoadedIndex:
    """Open a version's segments; those that cannot be are left out, one after the other, if the version allows it.

    Args:
        store: where they are.
        rounds: what the version is searched by.
        manifest: the version.
        known: segments that are open: what is in memory of them stays.

    Raises:
        IndexCorrupt, IndexMismatch, IndexUnavailable: it cannot be opened.
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
    """A version without the segment that an error is about, where it allows that; else raises the error."""
    (entry,) = _expendable(index.manifest, [segment.entry for segment in index.segments], error)
    return index.without(entry.key)


def _open_all(
    store: ObjectStore, entries: Sequence[SegmentEntry], known: Mapping[str, OpenSegment]
) -> tuple[OpenSegment, ...]:
    fresh = [entry for entry in entries if entry.key not in known]
    changed = [entry for entry in entries if entry.key not in known or known[entry.key].entry != entry]
    sections, alive = open_segments(store, fresh, changed)
    sections_of = {entry.key: found for entry, found in zip(fresh, sections, strict=True)}
    alive_of = {entry.key: found for entry, found in zip(changed, alive, strict=True)}
    return tuple(
        OpenSegment(
            entry,
            sections_of[entry.key] if entry.key in sections_of else known[entry.key].sections,
            alive_of[entry.key],
        )
        if entry.key in alive_of
        else known[entry.key]
        for entry in entries
    )


def _expendable(manifest: Manifest, entries: list[SegmentEntry], error: IndexCorrupt) -> list[SegmentEntry]:
    """The segment that an error is about, where the version allows to do without it; else raises the error."""
    damaged = [entry for entry in entries if entry.key == error.key]
    if not damaged or not manifest.allow_partial or len(entries) == 1:
        raise error
    logger.error("segment left out", extra={"index_version": manifest.version, "why": str(error)})
    return damaged
