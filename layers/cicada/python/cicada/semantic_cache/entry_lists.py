"""What a worker knows of the store: entries held in memory, brought up to date by each look-up."""

from __future__ import annotations

import logging
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cicada.errors import OutOfTime
from cicada.semantic_cache.entries import (
    BodyUnreadable,
    CachedAnswer,
    CacheEntry,
    CacheStore,
    Vector,
    unpack_body,
    unpack_vector,
)
from cicada.text.normal import compared

MAX_HELD_BYTES = 48 * 2**20
"""Entries and vectors in memory, of all scopes; those that were not asked for the longest go first."""
MAX_HELD_SCOPES = 256
_GONE_REMEMBERED = 256
"""Entries that a scope remembers as gone: a store that lags behind may show them for a moment longer."""
_ENTRY_BYTES = 400
"""What an entry takes beside its question and its vector, about: its id, its numbers, its place in sets and tuples."""
_AS_NEAR = 4
"""Decimals of the cosines that count: one text's cosines may differ in the last bits of a product."""


@dataclass(frozen=True)
class Snapshot:
    """The entries of a scope at one time, oldest first, without their packed vectors; one a question."""

    entries: tuple[CacheEntry, ...]
    matrix: NDArray[np.float32]
    """Shape ``(n, d)``, rows of unit length."""
    expires_at: NDArray[np.float64] = field(repr=False)

    @cached_property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        texts = sum(_ENTRY_BYTES + sys.getsizeof(entry.question) for entry in self.entries)
        return texts + self.matrix.nbytes + self.expires_at.nbytes

    def nearest(self, vector: Vector, *, at_least: float, limit: int, now_s: float) -> list[tuple[CacheEntry, float]]:
        """The nearest entries that have not expired with their cosines, nearest first; of equals the newest first."""
        cosines = np.where(self.expires_at > now_s, self.matrix @ vector, -1.0)
        near = np.flatnonzero(cosines >= at_least)
        best = near[np.lexsort((-near, -cosines[near].round(_AS_NEAR)))[:limit]]
        return [(self.entries[at], min(1.0, float(cosines[at]))) for at in best.tolist()]

    def alive(self, now_s: float) -> int:
        """Entries that have not expired."""
        return int(np.count_nonzero(self.expires_at > now_s))


class HeldScope:
    """A scope's entries, added to and forgotten by several threads; a snapshot, once taken, stays as it is."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._lock = threading.Lock()
        self._ids: set[str] = set()
        self._gone: deque[str] = deque(maxlen=_GONE_REMEMBERED)
        self._to_delete: set[str] = set()
        self._snapshot = Snapshot((), np.empty((0, dimensions), np.float32), np.empty(0))

    @property
    def snapshot(self) -> Snapshot:
        """What is held."""
        return self._snapshot

    def add(self, entries: Iterable[CacheEntry], *, keep: int, now_s: float) -> None:
        """Take in entries in whatever order; the newest ``keep`` stay, and of each question the newest.

        What has expired, or has no vector of this length, is left out.
        """
        with self._lock:
            vectors = {
                entry.id: (replace(entry, vector=b""), vector)
                for entry in entries
                if entry.id not in self._ids
                and entry.id not in self._gone
                and entry.expires_at > now_s
                and (vector := unpack_vector(entry.vector, self._dimensions)) is not None
            }
            if not vectors:
                return
            old = self._snapshot
            rows = {entry.id: (entry, old.matrix[at]) for at, entry in enumerate(old.entries)} | vectors
            alive = sorted((row for row in rows.values() if row[0].expires_at > now_s), key=lambda row: row[0].id)
            newest = {compared(entry.question): entry.id for entry, _ in alive}
            self._take([row for row in alive if newest[compared(row[0].question)] == row[0].id][-keep:])

    def forget(self, entry_id: str) -> None:
        """Leave out an entry whose body is of no use, for good."""
        with self._lock:
            self._gone.append(entry_id)
            self._to_delete.add(entry_id)
            old = self._snapshot
            self._take([(entry, old.matrix[at]) for at, entry in enumerate(old.entries) if entry.id != entry_id])

    def take_forgotten(self) -> set[str]:
        """The ids of what was forgotten since this was last called: for whoever deletes them."""
        with self._lock:
            taken, self._to_delete = self._to_delete, set()
            return taken

    def _take(self, rows: Sequence[tuple[CacheEntry, Vector]]) -> None:
        matrix = np.empty((len(rows), self._dimensions), np.float32)
        for at, (_, vector) in enumerate(rows):
            matrix[at] = vector
        entries = tuple(entry for entry, _ in rows)
        self._snapshot = Snapshot(entries, matrix, np.array([entry.expires_at for entry in entries], np.float64))
        self._ids = {entry.id for entry in entries}


class HeldScopes:
    """The scopes that were asked for lately, in bounded memory. Safe for several threads."""

    def __init__(self, dimensions: int, *, max_bytes: int = MAX_HELD_BYTES, max_scopes: int = MAX_HELD_SCOPES) -> None:
        self._dimensions = dimensions
        self._max_bytes = max_bytes
        self._max_scopes = max_scopes
        self._lock = threading.Lock()
        self._scopes: OrderedDict[str, HeldScope] = OrderedDict()

    def of(self, digest: str) -> HeldScope:
        """A scope, empty at first."""
        with self._lock:
            held = self._scopes.setdefault(digest, HeldScope(self._dimensions))
            self._scopes.move_to_end(digest)
            while len(self._scopes) > 1 and (len(self._scopes) > self._max_scopes or self._bytes() > self._max_bytes):
                self._scopes.popitem(last=False)
            return held

    def _bytes(self) -> int:
        return sum(held.snapshot.size_bytes for held in self._scopes.values())


logger = logging.getLogger(__name__)

OVERLAP_MS = 10_000
"""How much of what is known is read again, for entries that became visible after newer ones: clocks differ."""


class KnownEntries:
    """Reads entries and bodies, each entry once a worker as a rule. Safe for several threads."""

    def __init__(
        self,
        store: CacheStore,
        dimensions: int,
        *,
        max_entries: int,
        now_s: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._store = store
        self._scopes = HeldScopes(dimensions)
        self._max_entries = max_entries
        self._now_s = now_s
        self._monotonic = monotonic

    def refreshed(self, digest: str, deadline: float) -> HeldScope:
        """A scope, with what was added to it since it was last read.

        Raises:
            CacheUnavailable: the store does not answer.
            OutOfTime: it is past the deadline.
        """
        self._check_time(deadline)
        held = self._scopes.of(digest)
        entries = held.snapshot.entries
        after = f"{max(0, int(entries[-1].id[:13]) - OVERLAP_MS):013d}" if entries else ""
        self.add(held, self._store.entries(digest, after=after, limit=self._max_entries))
        return held

    def add(self, held: HeldScope, entries: list[CacheEntry]) -> None:
        """Take in entries of a scope."""
        held.add(entries, keep=self._max_entries, now_s=self._now_s())

    def body(self, digest: str, held: HeldScope, entry: CacheEntry, deadline: float) -> CachedAnswer | None:
        """An entry's body; None if it is gone or damaged, and then the entry is not looked at again.

        Raises:
            CacheUnavailable: the store does not answer.
            OutOfTime: it is past the deadline.
        """
        self._check_time(deadline)
        data = self._store.body(digest, entry.id)
        try:
            if data is not None and (body := unpack_body(data)).question == entry.question:
                return body
        except BodyUnreadable as error:
            logger.warning("an earlier answer cannot be read", extra={"entry": entry.id, "why": str(error)})
        held.forget(entry.id)
        return None

    def _check_time(self, deadline: float) -> None:
        if self._monotonic() >= deadline:
            raise OutOfTime("no time is left to read earlier answers")
