"""The entries that a warm worker holds in memory: what a look-up compares, without reading it again."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cicada.answering.semantic_cache.records import Entry, Vector, unpack_vector

MAX_HELD_BYTES = 48 * 2**20
"""Vectors in memory, of all scopes; those that were not asked for the longest go first."""
MAX_HELD_SCOPES = 256
_GONE_REMEMBERED = 256
"""Entries that a scope remembers as gone: a store that lags behind may show them for a moment longer."""


@dataclass(frozen=True)
class Snapshot:
    """The entries of a scope at one time, oldest first."""

    entries: tuple[Entry, ...]
    matrix: NDArray[np.float32]
    """Shape ``(n, d)``, rows of unit length."""
    expires_at: NDArray[np.float64] = field(repr=False)

    def nearest(self, vector: Vector, *, at_least: float, limit: int, now_s: float) -> list[tuple[Entry, float]]:
        """The nearest entries that have not expired with their cosines, nearest first."""
        cosines = np.where(self.expires_at > now_s, self.matrix @ vector, -1.0)
        near = np.flatnonzero(cosines >= at_least)
        best = near[np.argsort(-cosines[near], kind="stable")[:limit]]
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
        self._snapshot = Snapshot((), np.empty((0, dimensions), np.float32), np.empty(0))

    @property
    def snapshot(self) -> Snapshot:
        """What is held."""
        return self._snapshot

    def add(self, entries: Iterable[Entry], *, keep: int, now_s: float) -> None:
        """Take in entries in whatever order; the newest ``keep`` stay. What has expired or no vector is left out."""
        with self._lock:
            vectors = {
                entry.id: (entry, vector)
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
            newest = sorted(rows.values(), key=lambda row: row[0].id)[-keep:]
            self._take([row for row in newest if row[0].expires_at > now_s])

    def forget(self, entry_id: str) -> None:
        """Leave out an entry whose body is gone, for good."""
        with self._lock:
            self._gone.append(entry_id)
            old = self._snapshot
            self._take([(entry, old.matrix[at]) for at, entry in enumerate(old.entries) if entry.id != entry_id])

    def _take(self, rows: Sequence[tuple[Entry, Vector]]) -> None:
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
        return sum(held.snapshot.matrix.nbytes for held in self._scopes.values())
