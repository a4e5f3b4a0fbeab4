"""A worker's copy of the store's entries in memory, which each lookup brings up to date."""

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
from cicada.text.characters import compared

MAX_HELD_BYTES = 48 * 2**20
"""Entries and vectors in memory, of all scopes; the least recently used scopes are dropped first."""
MAX_HELD_SCOPES = 256
_GONE_REMEMBERED = 256
"""Entries that a scope remembers as deleted: an eventually consistent read may still return them."""
_ENTRY_BYTES = 400
"""About what an entry takes without its question and vector."""
_COSINE_DECIMALS = 4
"""Decimals by which cosines are compared: those of equal texts may differ in the last bits."""


_Row = tuple[CacheEntry, Vector]


@dataclass(frozen=True)
class Snapshot:
    """The entries of a scope at one time, oldest first, one per question, with their vectors in a matrix."""

    entries: tuple[CacheEntry, ...]
    matrix: NDArray[np.float32]
    """Shape ``(n, d)``, rows of unit length."""
    expires_at: NDArray[np.float64] = field(repr=False)

    @cached_property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        texts = sum(_ENTRY_BYTES + sys.getsizeof(entry.question) for entry in self.entries)
        return texts + self.matrix.nbytes + self.expires_at.nbytes

    def nearest(self, vector: Vector, *, limit: int, now_s: float) -> list[tuple[CacheEntry, float]]:
        """The nearest entries with their cosines, nearest first, of equal ones the newest; expired ones have -1."""
        cosines = np.where(self.expires_at > now_s, self.matrix @ vector, -1.0)
        best = np.lexsort((-np.arange(len(cosines)), -cosines.round(_COSINE_DECIMALS)))[:limit]
        return [(self.entries[at], min(1.0, float(cosines[at]))) for at in best.tolist()]

    def alive(self, now_s: float) -> int:
        """Entries that have not expired."""
        return int(np.count_nonzero(self.expires_at > now_s))


class HeldScope:
    """A scope's entries. Thread-safe: a snapshot is never changed, only replaced."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._lock = threading.Lock()
        self._ids: set[str] = set()
        self._gone: deque[str] = deque(maxlen=_GONE_REMEMBERED)
        self._to_delete: set[str] = set()
        self._snapshot = Snapshot((), np.empty((0, dimensions), np.float32), np.empty(0))

    @property
    def snapshot(self) -> Snapshot:
        """The current entries."""
        return self._snapshot

    def add(self, entries: Iterable[CacheEntry], *, keep: int, now_s: float) -> None:
        """Add entries in any order; the newest of each question stays, and of those the newest ``keep``.

        Entries that are expired, or whose vector has other dimensions, are left out.
        """
        with self._lock:
            new = self._unknown(entries, now_s)
            if not new:
                return
            rows = sorted((*self._rows(), *new), key=lambda row: row[0].id)
            newest = {compared(row[0].question): row for row in rows if row[0].expires_at > now_s}
            self._take(sorted(newest.values(), key=lambda row: row[0].id)[-keep:])

    def forget(self, entry_id: str) -> None:
        """Leave out an entry whose body is unusable, for good."""
        with self._lock:
            self._gone.append(entry_id)
            self._to_delete.add(entry_id)
            self._take([row for row in self._rows() if row[0].id != entry_id])

    def take_forgotten(self) -> set[str]:
        """The ids of the entries that were forgotten since the last call; the caller deletes them."""
        with self._lock:
            taken, self._to_delete = self._to_delete, set()
            return taken

    def _unknown(self, entries: Iterable[CacheEntry], now_s: float) -> list[_Row]:
        """The living entries that are neither held nor forgotten, unpacked."""
        known = self._ids.union(self._gone)
        new = (entry for entry in entries if entry.id not in known and entry.expires_at > now_s)
        unpacked = ((entry, unpack_vector(entry.vector, self._dimensions)) for entry in new)
        return [(replace(entry, vector=b""), vector) for entry, vector in unpacked if vector is not None]

    def _rows(self) -> list[_Row]:
        return list(zip(self._snapshot.entries, self._snapshot.matrix, strict=True))

    def _take(self, rows: Sequence[_Row]) -> None:
        matrix = np.array([vector for _, vector in rows], np.float32).reshape(-1, self._dimensions)
        entries = tuple(entry for entry, _ in rows)
        self._snapshot = Snapshot(entries, matrix, np.array([entry.expires_at for entry in entries], np.float64))
        self._ids = {entry.id for entry in entries}


class HeldScopes:
    """The recently used scopes, in bounded memory. Thread-safe."""

    def __init__(self, dimensions: int, *, max_bytes: int = MAX_HELD_BYTES, max_scopes: int = MAX_HELD_SCOPES) -> None:
        self._dimensions = dimensions
        self._max_bytes = max_bytes
        self._max_scopes = max_scopes
        self._lock = threading.Lock()
        self._scopes: OrderedDict[str, HeldScope] = OrderedDict()

    def of(self, digest: str) -> HeldScope:
        """A scope; empty at first."""
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
"""The overlap of consecutive reads: an entry may become visible after newer ones, because clocks differ."""


class KnownEntries:
    """Reads entries, usually each once per worker, and bodies. Thread-safe.

    The methods that read raise CacheUnavailable, and OutOfTime after the deadline.
    """

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
        """A scope with the entries that were added since it was last read."""
        self._check_time(deadline)
        held = self._scopes.of(digest)
        entries = held.snapshot.entries
        after = f"{max(0, int(entries[-1].id[:13]) - OVERLAP_MS):013d}" if entries else ""
        self.add(held, self._store.entries(digest, after=after, limit=self._max_entries))
        return held

    def add(self, held: HeldScope, entries: list[CacheEntry]) -> None:
        """Add entries to a scope."""
        held.add(entries, keep=self._max_entries, now_s=self._now_s())

    def body(self, digest: str, held: HeldScope, entry: CacheEntry, deadline: float) -> CachedAnswer | None:
        """An entry's body; None if it is gone or damaged: then the entry is forgotten."""
        self._check_time(deadline)
        data = self._store.body(digest, entry.id)
        try:
            if data is not None and (body := unpack_body(data)).question == entry.question:
                return body
        except BodyUnreadable as error:
            logger.warning("cannot parse a cached answer", extra={"entry": entry.id, "why": str(error)})
        held.forget(entry.id)
        return None

    def _check_time(self, deadline: float) -> None:
        if self._monotonic() >= deadline:
            raise OutOfTime("no time left to read cached answers")
