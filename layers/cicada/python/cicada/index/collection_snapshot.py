"""A collection's content in one version, as writers need it: its passages' digests, and their segments."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.columns import SOURCE, ValueColumn
from cicada.index.embedding import Vector
from cicada.index.manifest import Manifest, SegmentEntry
from cicada.index.ports import ObjectStore
from cicada.index.segment import Digests, SegmentContents, SegmentFile, digests
from cicada.index.segment_reader import read_tombstones, write_tombstones

logger = logging.getLogger(__name__)

PARALLEL_OPENINGS = 8  # segments opened at a time

IdDigests = NDArray[np.uint64]  # shape ``(n,)``, see :func:`~cicada.index.segment.id_digest`
ContentDigests = NDArray[np.uint64]
"""Digests of 16 bytes as two integers each, shape ``(n, 2)``: numpy can search and compare integers."""


class _Rows:
    """Digests and sources of a segment's rows, read on first use."""

    def __init__(self, file: SegmentFile) -> None:
        self.file = file
        self.ids: IdDigests = file.id_digests()

    @cached_property
    def contents(self) -> ContentDigests:
        return as_integers(self.file.content_digests())

    @cached_property
    def recipes(self) -> ContentDigests:
        return as_integers(self.file.recipes())

    @cached_property
    def sources(self) -> ValueColumn | None:
        return self.file.column(SOURCE)


class SegmentSnapshot:
    """A segment's rows as one version has them."""

    def __init__(self, entry: SegmentEntry, rows: _Rows, deleted: NDArray[np.bool_] | None) -> None:
        """Take what :meth:`read` has read."""
        self.entry = entry
        self._rows = rows
        self._deleted = deleted

    @classmethod
    def read(cls, store: ObjectStore, manifest: Manifest, entry: SegmentEntry) -> Self:
        """Read the ids of a segment's passages.

        Raises IndexCorrupt if it is damaged, missing, or not the one the manifest names; IndexMismatch for another
        format; IndexUnavailable.
        """
        file = SegmentFile.open(store, entry)
        if (file.embedding_model_id, file.dimensions) != (manifest.embedding_model_id, manifest.dimensions):
            raise IndexCorrupt(f"the embedding model of {entry.key} differs from its manifest")
        return cls(entry, _Rows(file), read_tombstones(store, entry))

    def as_in(self, store: ObjectStore, entry: SegmentEntry) -> Self:
        """The same segment in another version; reads its tombstones only."""
        return self if entry == self.entry else type(self)(entry, self._rows, read_tombstones(store, entry))

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """A mask of the live rows."""
        return np.ones(self.entry.count, dtype=np.bool_) if self._deleted is None else ~self._deleted

    @cached_property
    def ids(self) -> IdDigests:
        """The digests of the live rows' ids."""
        return self._rows.ids[self.alive]

    @cached_property
    def contents(self) -> ContentDigests:
        """The digests of the live rows' contents."""
        return self._rows.contents[self.alive]

    @cached_property
    def counts(self) -> Counter[str]:
        """Live rows by source, without rows that have none."""
        column = self._rows.sources
        if column is None:
            return Counter()
        codes, counts = np.unique(column.codes[self.alive], return_counts=True)
        return Counter(
            {column.values[code - 1]: count for code, count in zip(codes, counts.tolist(), strict=True) if code}
        )

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of its live rows."""
        fields = self._rows.file.fields
        if self._deleted is None:
            return fields
        columns = ((field, self._rows.file.column(field)) for field in fields)
        return tuple(field for field, column in columns if column is not None and column.codes[self.alive].any())

    def of_sources(self, sources: Collection[str]) -> NDArray[np.bool_]:
        """A mask over :attr:`ids`: the rows of these sources."""
        column = self._rows.sources
        if column is None or not sources:
            return np.zeros(len(self.ids), dtype=np.bool_)
        wanted = frozenset(sources)
        passing = np.array([False, *(value in wanted for value in column.values)])
        matching: NDArray[np.bool_] = passing[column.codes[self.alive]]
        return matching

    def values_of(self, sources: Collection[str], field: str) -> frozenset[str | None]:
        """The values of a field in the live rows of these sources; None for rows without it."""
        matching = self.of_sources(sources)
        if not matching.any():
            return frozenset()
        column = self._rows.file.column(field)
        if column is None:
            return frozenset({None})
        codes = np.unique(column.codes[self.alive][matching]).tolist()
        return frozenset(column.values[code - 1] if code else None for code in codes)

    def source_of(self, passage_id: int) -> str | None:
        """The source of the live row with this id digest; None if there is none."""
        rows = np.flatnonzero((self._rows.ids == passage_id) & self.alive)
        column = self._rows.sources
        code = int(column.codes[rows[0]]) if column is not None and len(rows) else 0
        return column.values[code - 1] if column is not None and code else None

    def vectors_of(self, recipes: Mapping[bytes, int], found: dict[bytes, Vector]) -> None:
        """Add to ``found`` the segment's vectors of these recipes, deleted rows included."""
        if not recipes:
            return
        wanted = np.fromiter(recipes.values(), dtype=np.uint64, count=len(recipes))
        rows = np.flatnonzero(np.isin(self._rows.recipes[:, 0], wanted))
        named = [(row, self._rows.recipes[row].tobytes()) for row in rows.tolist()]
        of_recipe = {recipe: row for row, recipe in named if recipe in recipes and recipe not in found}
        if of_recipe:
            vectors = self._rows.file.vectors(np.fromiter(of_recipe.values(), dtype=np.intp, count=len(of_recipe)))
            found.update(zip(of_recipe, vectors, strict=True))

    def without(self, store: ObjectStore, ids: IdDigests) -> SegmentEntry | None:
        """The segment's entry after deleting these passages too; None if no row is left."""
        gone = np.isin(self._rows.ids, ids)
        alive = self.alive & ~gone
        if not alive.any():
            return None
        if not (self.alive & gone).any():
            return self.entry
        return self.entry.model_copy(update={"live": int(alive.sum()), "tombstones": write_tombstones(store, ~alive)})

    def live_contents(self) -> SegmentContents:
        """The live rows' contents in document order. Raises IndexCorrupt or IndexUnavailable."""
        contents = self._rows.file.contents()
        return contents if self._deleted is None else contents.select(self.alive[contents.rows])

    def verify(self, store: ObjectStore) -> None:
        """Read the whole segment and check every byte. Raises IndexCorrupt or IndexUnavailable."""
        if len(store.read_range(self.entry.key, self.entry.bytes - 1, 2)) != 1:
            raise IndexCorrupt(f"{self.entry.key} does not have {self.entry.bytes} bytes")
        self._rows.file.verify()


@dataclass(frozen=True)
class CollectionSnapshot:
    """A collection's live passages in a version."""

    segments: tuple[SegmentSnapshot, ...] = ()
    unusable: tuple[SegmentEntry, ...] = ()  # unreadable segments, which were left out

    @cached_property
    def ids(self) -> IdDigests:
        """The id digests of all live passages, ascending."""
        return self._sorted[0]

    @property
    def count(self) -> int:
        """Live passages."""
        return sum(segment.entry.live for segment in self.segments)

    def states(self, ids: IdDigests) -> ContentDigests:
        """The content digest of each id's passage, shape ``(len(ids), 2)``; zeros without such a passage."""
        known, contents = self._sorted
        states = np.zeros((len(ids), 2), dtype=np.uint64)
        if len(known):
            place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
            present = known[place] == ids
            states[present] = contents[place[present]]
        return states

    def same_as(self, other: CollectionSnapshot, *, of: Collection[str] | None = None) -> bool:
        """Whether both hold the same passages (``of`` some sources, or all), in whatever segments."""
        ours, theirs = (self._sorted, other._sorted) if of is None else (self._sorted_of(of), other._sorted_of(of))
        return all(np.array_equal(one, another) for one, another in zip(ours, theirs, strict=True))

    @cached_property
    def counts(self) -> Counter[str]:
        """Live passages by source, without passages that have none."""
        return sum((segment.counts for segment in self.segments), Counter())

    @property
    def sources(self) -> frozenset[str]:
        """The sources of the live passages."""
        return frozenset(self.counts)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields of its passages."""
        return frozenset[str]().union(*(segment.fields for segment in self.segments))

    def ids_of(self, sources: Collection[str]) -> IdDigests:
        """The id digests of the live passages of these sources, ascending."""
        return self._sorted_of(sources)[0]

    def values_of(self, sources: Collection[str], field: str) -> frozenset[str | None]:
        """The values of a field in the live passages of these sources; None for passages without it."""
        return frozenset[str | None]().union(*(segment.values_of(sources, field) for segment in self.segments))

    def source_of(self, passage_id: int) -> str | None:
        """The source of the passage with this id digest; None if there is none."""
        return next(filter(None, (segment.source_of(passage_id) for segment in self.segments)), None)

    def known_vectors(self, recipes: Collection[bytes]) -> dict[bytes, Vector]:
        """The vectors of these recipes that the collection has. Unreadable ones are left out."""
        wanted = dict(zip(recipes, as_integers(digests(recipes))[:, 0].tolist(), strict=True))
        found: dict[bytes, Vector] = {}
        for segment in self.segments:
            try:
                segment.vectors_of(wanted, found)
            except IndexCorrupt as error:
                logger.warning("vectors cannot be reused", extra={"segment": segment.entry.key}, exc_info=error)
        return found

    @cached_property
    def _sorted(self) -> tuple[IdDigests, ContentDigests]:
        return _in_order([(segment.ids, segment.contents) for segment in self.segments])

    def _sorted_of(self, sources: Collection[str]) -> tuple[IdDigests, ContentDigests]:
        masks = [(segment, segment.of_sources(sources)) for segment in self.segments]
        return _in_order([(segment.ids[mask], segment.contents[mask]) for segment, mask in masks])


def _in_order(parts: Sequence[tuple[IdDigests, ContentDigests]]) -> tuple[IdDigests, ContentDigests]:
    ids = np.concatenate([np.empty(0, dtype=np.uint64), *(part[0] for part in parts)])
    contents = np.concatenate([np.empty((0, 2), dtype=np.uint64), *(part[1] for part in parts)])
    order = np.argsort(ids, kind="stable")
    return ids[order], contents[order]


def read_snapshot(
    store: ObjectStore,
    manifest: Manifest | None,
    collection: str,
    *,
    opened: Iterable[SegmentSnapshot] = (),
    leave_out_damaged: bool = False,
    verify: bool = False,
) -> CollectionSnapshot:
    """Read a collection's content in a version; empty without a version.

    ``opened`` are segments read before, also for another version; ``verify`` reads every byte. Raises IndexCorrupt or
    IndexMismatch, unless unreadable segments are left out.
    """
    entries = manifest.of_collection(collection) if manifest else ()
    if manifest is None or not entries:
        return CollectionSnapshot()
    before = {segment.entry.key: segment for segment in opened}

    def read(entry: SegmentEntry) -> SegmentSnapshot | SegmentEntry:
        try:
            if entry.key in before:
                return before[entry.key].as_in(store, entry)
            segment = SegmentSnapshot.read(store, manifest, entry)
            if verify:
                segment.verify(store)
            segment.contents  # noqa: B018 (read here, so that the threads read segments in parallel)
        except (IndexCorrupt, IndexMismatch) as error:
            if not leave_out_damaged:
                raise
            logger.warning("cannot load a segment", extra={"segment": entry.key}, exc_info=error)
            return entry
        return segment

    workers = 1 if verify else min(PARALLEL_OPENINGS, len(entries))  # a verified segment is in memory whole
    with ThreadPoolExecutor(workers, thread_name_prefix="index-open") as pool:
        found = list(pool.map(read, entries))
    return CollectionSnapshot(
        tuple(one for one in found if isinstance(one, SegmentSnapshot)),
        tuple(one for one in found if isinstance(one, SegmentEntry)),
    )


def as_integers(values: Digests) -> ContentDigests:
    """Digests of 16 bytes as two integers each, shape ``(n, 2)``."""
    return np.frombuffer(np.ascontiguousarray(values).tobytes(), dtype=np.uint64).reshape(-1, 2)
