"""Object stores for tests: one in memory, and one that fails where it is told to."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from cicada.index.store import ObjectMissing, ObjectStore, PreconditionFailed, StoredObject


class InMemoryStore:
    """The in-memory twin of the S3 store; ``objects`` may be tampered with."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
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
            return _etag(data)

    def keys(self, prefix: str) -> Iterator[str]:
        yield from sorted(key for key in self.objects if key.startswith(prefix))

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

    def keys(self, prefix: str) -> Iterator[str]:
        return self._call("keys", prefix, lambda: iter(list(self._store.keys(prefix))))

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
