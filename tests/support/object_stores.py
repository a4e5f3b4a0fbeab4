"""Object stores for tests: one in memory, and one that fails where it is told to."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed, StoredEntry, StoredObject


class InMemoryStore:
    """The in-memory twin of the S3 store; ``objects`` may be tampered with.

    ``now`` is its clock, which dates what is written; what was put into ``objects`` directly is as old as the store.
    """

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.objects: dict[str, bytes] = {}
        self._now = now
        self._made_at = now()
        self._modified_at: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def read(self, key: str) -> StoredObject:
        data = self._data(key)
        return StoredObject(data, _etag(data))

    def read_if_changed(self, key: str, etag: str) -> StoredObject | None:
        found = self.read(key)
        return None if found.etag == etag else found

    def read_range(self, key: str, start: int, length: int) -> bytes:
        return self._data(key)[start : start + length]

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:
        with self._lock:
            present = self.objects.get(key)
            if (None if present is None else _etag(present)) != replaces:
                raise PreconditionFailed(key)
            self.objects[key] = bytes(data)
            self._modified_at[key] = self._now()
            return _etag(data)

    def entries(self, prefix: str) -> Iterator[StoredEntry]:
        for key in self.keys(prefix):
            yield StoredEntry(key, len(self.objects[key]), self._modified_at.get(key, self._made_at))

    def delete(self, key: str) -> None:
        with self._lock:
            self.objects.pop(key, None)

    def keys(self, prefix: str) -> list[str]:
        """For tests, which look at names alone."""
        return sorted(key for key in self.objects if key.startswith(prefix))

    def _data(self, key: str) -> bytes:
        try:
            return self.objects[key]
        except KeyError:
            raise ObjectMissing(key) from None


_T = TypeVar("_T")


class Killed(BaseException):
    """The process ends here: nothing may catch it."""


class WatchedStore:
    """Counts the calls to a store, and fails at chosen ones.

    ``before`` and ``after`` map a call's number, from 1, to what is raised before the call is carried out, or after
    it was carried out and its response is lost.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        before: dict[int, BaseException] | None = None,
        after: dict[int, BaseException] | None = None,
    ) -> None:
        self.calls: list[tuple[str, str]] = []
        self.before = before or {}
        self.after = after or {}
        self._store = store
        self._lock = threading.Lock()

    def read(self, key: str) -> StoredObject:
        return self._call("read", key, lambda: self._store.read(key))

    def read_if_changed(self, key: str, etag: str) -> StoredObject | None:
        return self._call("read_if_changed", key, lambda: self._store.read_if_changed(key, etag))

    def read_range(self, key: str, start: int, length: int) -> bytes:
        return self._call("read_range", key, lambda: self._store.read_range(key, start, length))

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:
        return self._call("write", key, lambda: self._store.write(key, data, replaces=replaces))

    def entries(self, prefix: str) -> Iterator[StoredEntry]:
        return self._call("entries", prefix, lambda: iter(list(self._store.entries(prefix))))

    def delete(self, key: str) -> None:
        self._call("delete", key, lambda: self._store.delete(key))

    def _call(self, what: str, key: str, call: Callable[[], _T]) -> _T:
        with self._lock:
            self.calls.append((what, key))
            number = len(self.calls)
        if number in self.before:
            raise self.before[number]
        try:
            return call()
        finally:
            if number in self.after:
                raise self.after[number]


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
