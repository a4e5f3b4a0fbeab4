"""The ports of the index: the object store that holds it, and progress reports of long operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from cicada.errors import IndexUnavailable

PARALLEL_READS = 32  # ranges that one fetch reads at a time; clients need as many connections


class ObjectMissing(Exception):
    """No object has this key."""


class PreconditionFailed(Exception):
    """The condition of a write does not hold. Nothing was written."""


@dataclass(frozen=True)
class StoredObject:
    """An object's bytes and the entity tag of exactly this content."""

    data: bytes
    etag: str


@dataclass(frozen=True)
class StoredEntry:
    """An object in a listing."""

    key: str
    bytes: int
    modified_at: datetime  # by the store's clock, with a time zone


class ObjectStore(Protocol):
    """Whole objects under string keys. Reads see every write that has returned. Thread-safe.

    Every method raises IndexUnavailable if the store does not respond, or refuses.
    """

    def read(self, key: str) -> StoredObject:
        """Raises ObjectMissing."""

    def read_if_changed(self, key: str, etag: str) -> StoredObject | None:
        """The object, or None if its entity tag is still ``etag``. Raises ObjectMissing."""

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Up to ``length`` bytes (at least 1) from ``start``; fewer where the object ends. Raises ObjectMissing."""

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:
        """Write an object atomically, and return its entity tag.

        ``replaces`` is the entity tag of the object to replace, None for a new object. Raises PreconditionFailed if
        that does not hold. After a lost response a retry may raise it although the write succeeded.
        """

    def entries(self, prefix: str) -> Iterator[StoredEntry]:
        """All objects whose keys begin with ``prefix``, in byte order."""

    def delete(self, key: str) -> None:
        """Delete the object, if there is one."""


def put(store: ObjectStore, key: str, data: bytes) -> None:
    """Write an object under a unique key. Raises IndexUnavailable if another object has it."""
    try:
        store.write(key, data, replaces=None)
    except PreconditionFailed as error:
        try:
            found = store.read(key)
        except ObjectMissing:
            raise IndexUnavailable(f"{key} can neither be written nor read") from error
        if found.data != data:  # equal data: the write succeeded, but its response was lost, and the retry was refused
            raise IndexUnavailable(f"{key} contains a different object") from error


Stage = Literal["preparing", "reading", "embedding", "writing", "publishing", "compacting", "collecting", "checking"]


Progress = Callable[[Stage, int, int], None]  # stage, pieces of it that are done, and their total


def silent(stage: Stage, done: int, total: int) -> None:
    """Ignore progress."""
