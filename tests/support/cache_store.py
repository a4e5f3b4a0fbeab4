"""The semantic cache's store in memory: the twin of the DynamoDB one, with faults to switch on."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from cicada.errors import CacheUnavailable
from cicada.semantic_cache.entries import CacheEntry


class InMemoryCacheStore:
    """Keeps :class:`cicada.semantic_cache.entries.CacheStore`'s contract; ``calls`` names what was asked."""

    def __init__(self) -> None:
        self.entries_of: dict[str, dict[str, CacheEntry]] = {}
        self.bodies: dict[tuple[str, str], bytes] = {}
        self.calls: list[str] = []
        self.down = False
        self._lock = threading.Lock()

    def entries(self, scope: str, *, after: str, limit: int) -> list[CacheEntry]:
        self._enter("entries")
        with self._lock:
            found = [entry for entry in self.entries_of.get(scope, {}).values() if entry.id > after]
        return sorted(found, key=lambda entry: entry.id, reverse=True)[:limit]

    def older(self, scope: str, *, before: str, limit: int) -> list[str]:
        self._enter("older")
        with self._lock:
            found = sorted(entry_id for entry_id in self.entries_of.get(scope, {}) if entry_id < before)
        return found[:limit]

    def body(self, scope: str, entry_id: str) -> bytes | None:
        self._enter("body")
        return self.bodies.get((scope, entry_id))

    def put(self, scope: str, entry: CacheEntry, body: bytes, *, owner: str) -> None:
        self._enter("put")
        with self._lock:
            self.bodies[scope, entry.id] = body
            self.entries_of.setdefault(scope, {})[entry.id] = entry

    def delete(self, scope: str, entry_ids: Sequence[str]) -> None:
        self._enter("delete")
        with self._lock:
            for entry_id in entry_ids:
                self.entries_of.get(scope, {}).pop(entry_id, None)
                self.bodies.pop((scope, entry_id), None)

    def _enter(self, call: str) -> None:
        self.calls.append(call)
        if self.down:
            raise CacheUnavailable("switched off")
