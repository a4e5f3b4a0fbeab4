"""The ports of the index: the object store that holds it, and progress reports of long operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from cicada.errors import IndexUnavailable


class ObjectMissing(Exception):
    """There is no object of that key."""


class PreconditionFailed(Exception):
    """A conditional write found another state than the one it was made for. Nothing was written."""


@dataclass(frozen=True)
class StoredObject:
    """An object's bytes and the entity tag of exactly this content."""

    data: bytes
    etag: str


@dataclass(frozen=True)
class StoredEntry:
    """An object, as a listing shows it."""

    key: str
    bytes: int
    modified_at: datetime  # by the store's clock, with a time zone


class ObjectStore(Protocol):
    """Whole objects under string keys. Reads are consistent: they see every write that has returned.

    Every method raises IndexUnavailable when the store does not respond, or refuses. Safe for several threads.
    """

    def read(self, key: str) -> StoredObject:
        """The object. Raises ObjectMissing if there is none."""

    def read_if_changed(self, key: str, etag: str) -> StoredObject | None:
        """The object, or None while its entity tag is still ``etag``. Raises ObjectMissing if there is none."""

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Up to ``length`` bytes (at least 1) from ``start``; fewer where the object ends. Raises ObjectMissing."""

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:
        """Write a whole object atomically, and return its new entity tag.

        ``replaces`` is the entity tag of the object to replace; None if there must be no object yet. Raises
        PreconditionFailed if that does not hold. A retry whose first response was lost can raise this after the
        write's own success: a caller that must know reads the object.
        """

    def entries(self, prefix: str) -> Iterator[StoredEntry]:
        """Every object whose key begins with ``prefix``, in byte order of the keys."""

    def delete(self, key: str) -> None:
        """Delete the object, if there is one."""


def put(store: ObjectStore, key: str, data: bytes) -> None:
    """Write an object under a key that nobody else uses. Raises IndexUnavailable if another object is there."""
    try:
        store.write(key, data, replaces=None)
    except PreconditionFailed as error:
        try:
            found = store.read(key)
        except ObjectMissing:
            raise IndexUnavailable(f"{key} can neither be written nor read") from error
        if found.data != data:  # equal data: the write succeeded, its response was lost, and a retry was refused
            raise IndexUnavailable(f"{key} holds another object") from error


Stage = Literal["preparing", "reading", "embedding", "writing", "publishing", "compacting", "collecting", "checking"]


Progress = Callable[[Stage, int, int], None]
"""Receives each step, from the thread that works: how many pieces of the stage (documents, files, passages, segments,
objects or versions) are done, and how many there are."""


def silent(stage: Stage, done: int, total: int) -> None:
    """Ignore progress."""
