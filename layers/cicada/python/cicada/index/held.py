"""What a collection holds in a version, as far as a writer must know it: which passages, and where."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.contents import Digests, SegmentContents, digests
from cicada.index.embedding import Vector
from cicada.index.manifest import SegmentEntry
from cicada.index.segment import SegmentFile
from cicada.index.store import ObjectStore
from cicada.index.tombstones import read_tombstones, write_tombstones

logger = logging.getLogger(__name__)

PARALLEL_OPENINGS = 8
"""Segments opened at a time."""

IdDigests = NDArray[np.uint64]
"""Shape ``(n,)``, see :func:`cicada.index.contents.id_digest`."""
_Words = NDArray[np.uint64]
"""Digests of 16 bytes as two integers each, shape ``(n, 2)``: numpy finds and compares these."""


class _Rows:
    """What a segment tells of its rows, read as needed and once."""

    def __init__(self, file: SegmentFile) -> None:
        self.file = file
        self.ids: IdDigests = file.id_digests()

    @cached_property
    def contents(self) -> _Words:
        return words(self.file.content_digests())

    @cached_property
    def recipes(self) -> _Words:
        return words(self.file.recipes())


class HeldSegment:
    """A segment's rows as one version has them."""

    def __init__(self, entry: SegmentEntry, rows: _Rows, deleted: NDArray[np.bool_] | None) -> None:
        """Take what was read; :meth:`read` reads it."""
        self.entry = entry
        self._rows = rows
        self._deleted = deleted

    @classmethod
    def read(cls, store: ObjectStore, entry: SegmentEntry, *, embedding_model_id: str, dimensions: int) -> Self:
        """Read which passages the segment holds.

        Raises:
            IndexCorrupt: it is damaged, missing, or not the one that the manifest means.
            IndexMismatch: it has a format that this version of Cicada does not read.
            IndexUnavailable: the store does not respond.
        """
        file = SegmentFile.open(store, entry)
        if (file.embedding_model_id, file.dimensions) != (embedding_model_id, dimensions):
            raise IndexCorrupt(f"{entry.key} is embedded with another model than its manifest says")
        return cls(entry, _Rows(file), read_tombstones(store, entry))

    def as_in(self, store: ObjectStore, entry: SegmentEntry) -> Self:
        """The same segment, as another version has it: only its tombstones are read."""
        return self if entry == self.entry else type(self)(entry, self._rows, read_tombstones(store, entry))

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """By row."""
        return np.ones(self.entry.count, dtype=np.bool_) if self._deleted is None else ~self._deleted

    @cached_property
    def ids(self) -> IdDigests:
        """Of the live rows."""
        return self._rows.ids[self.alive]

    @cached_property
    def contents(self) -> _Words:
        """The digests of the live rows' contents."""
        return self._rows.contents[self.alive]

    def vectors_of(self, recipes: Mapping[bytes, int], found: dict[bytes, Vector]) -> None:
        """Add the vectors of those recipes that the segment has, its deleted rows included, to what is found."""
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
        """The entry of the segment with these passages deleted as well; None if no row would be left.

        Raises:
            IndexUnavailable: the store does not respond.
        """
        gone = np.isin(self._rows.ids, ids)
        alive = self.alive & ~gone
        if not alive.any():
            return None
        if not (self.alive & gone).any():
            return self.entry
        return self.entry.model_copy(update={"live": int(alive.sum()), "tombstones": write_tombstones(store, ~alive)})

    def live_contents(self) -> SegmentContents:
        """Everything that the live rows hold, in document order.

        Raises:
            IndexCorrupt, IndexUnavailable: as their names say.
        """
        contents = self._rows.file.contents()
        return contents if self._deleted is None else contents.select(self.alive[contents.rows])

    def verify(self, store: ObjectStore) -> None:
        """Read the whole segment and check every byte of it, and that there are no fewer or more.

        Raises:
            IndexCorrupt, IndexUnavailable: as their names say.
        """
        if len(store.read_range(self.entry.key, self.entry.bytes - 1, 2)) != 1:
            raise IndexCorrupt(f"{self.entry.key} does not have {self.entry.bytes} bytes")
        self._rows.file.verify()


@dataclass(frozen=True)
class Held:
    """A collection's live passages in a version."""

    segments: tuple[HeldSegment, ...] = ()
    unusable: tuple[SegmentEntry, ...] = ()
    """Segments that cannot be read, and were left out."""

    @cached_property
    def ids(self) -> IdDigests:
        """Of all live passages, in ascending order."""
        return self._sorted[0]

    @property
    def count(self) -> int:
        """Live passages."""
        return sum(segment.entry.live for segment in self.segments)

    def states(self, ids: IdDigests) -> _Words:
        """For each id, whatever its passage's content is known by; zeros where there is no such passage.

        Returns:
            Shape ``(len(ids), 2)``. Two versions with equal states hold the same of these passages.
        """
        known, contents = self._sorted
        states = np.zeros((len(ids), 2), dtype=np.uint64)
        if len(known):
            place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
            present = known[place] == ids
            states[present] = contents[place[present]]
        return states

    def same_as(self, other: Held) -> bool:
        """Whether both hold the same passages, however these are spread over segments."""
        return all(np.array_equal(ours, theirs) for ours, theirs in zip(self._sorted, other._sorted, strict=True))

    def known_vectors(self, recipes: Collection[bytes]) -> dict[bytes, Vector]:
        """The vectors that were made by some of these recipes. What cannot be read is left out."""
        wanted = dict(zip(recipes, words(digests(recipes))[:, 0].tolist(), strict=True))
        found: dict[bytes, Vector] = {}
        for segment in self.segments:
            try:
                segment.vectors_of(wanted, found)
            except IndexCorrupt as error:
                logger.warning("vectors cannot be used again", extra={"segment": segment.entry.key}, exc_info=error)
        return found

    @cached_property
    def _sorted(self) -> tuple[IdDigests, _Words]:
        ids = np.concatenate([np.empty(0, dtype=np.uint64), *(segment.ids for segment in self.segments)])
        contents = np.concatenate([np.empty((0, 2), dtype=np.uint64), *(segment.contents for segment in self.segments)])
        order = np.argsort(ids, kind="stable")
        return ids[order], contents[order]


def read_held(
    store: ObjectStore,
    entries: Sequence[SegmentEntry],
    *,
    embedding_model_id: str,
    dimensions: int,
    opened: Iterable[HeldSegment] = (),
    leave_out_damaged: bool = False,
    verify: bool = False,
) -> Held:
    """Read which passages a collection holds.

    Args:
        store: where from.
        entries: the collection's segments.
        embedding_model_id: the version's.
        dimensions: the version's.
        opened: segments that were read before, maybe for another version.
        leave_out_damaged: go on without segments that cannot be read.
        verify: read every byte of every segment.

    Raises:
        IndexCorrupt, IndexMismatch: a segment is damaged, and not to be left out.
        IndexUnavailable: the store does not respond.
    """
    before = {segment.entry.key: segment for segment in opened}

    def read(entry: SegmentEntry) -> HeldSegment | SegmentEntry:
        try:
            if entry.key in before:
                return before[entry.key].as_in(store, entry)
            segment = HeldSegment.read(store, entry, embedding_model_id=embedding_model_id, dimensions=dimensions)
            if verify:
                segment.verify(store)
            segment.contents  # noqa: B018 (read side by side too)
        except (IndexCorrupt, IndexMismatch) as error:
            if not leave_out_damaged:
                raise
            logger.warning("a segment cannot be used", extra={"segment": entry.key}, exc_info=error)
            return entry
        return segment

    if not entries:
        return Held()
    workers = 1 if verify else min(PARALLEL_OPENINGS, len(entries))  # a verified segment is in memory whole
    with ThreadPoolExecutor(workers, thread_name_prefix="index-open") as pool:
        found = list(pool.map(read, entries))
    return Held(
        tuple(one for one in found if isinstance(one, HeldSegment)),
        tuple(one for one in found if isinstance(one, SegmentEntry)),
    )


def words(values: Digests) -> _Words:
    """Digests as integers. Shape ``(n, 2)``."""
    return np.frombuffer(np.ascontiguousarray(values).tobytes(), dtype=np.uint64).reshape(-1, 2)
