"""Reading byte ranges of many objects in parallel, as one round."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from cicada.errors import IndexCorrupt
from cicada.index.ports import PARALLEL_READS, ObjectMissing, ObjectStore

PART_BYTES = 4 * 2**20  # the most that one request reads; longer parts are read as several ranges
MIN_PART_BYTES = 2**20  # shorter parts are not cut: below about 1 MiB a read costs latency, not bandwidth
THREADS = 3 * PARALLEL_READS  # so that a search does not wait for the threads of a concurrent load


@dataclass(frozen=True)
class ByteRange:
    """Bytes ``start`` to ``start + length`` of an object."""

    key: str
    start: int
    length: int


@runtime_checkable
class ReadsInto(Protocol):
    """An :class:`~cicada.index.ports.ObjectStore` that can read without a copy."""

    def read_range_into(self, key: str, start: int, buffer: memoryview) -> int:
        """Fill the buffer from ``start``; returns the bytes read. Raises ObjectMissing or IndexUnavailable."""


def fetch(
    store: ObjectStore,
    parts: Sequence[ByteRange],
    done: Callable[[int, memoryview], None] | None = None,
    *,
    into: Sequence[memoryview] | None = None,
) -> list[memoryview]:
    """Read parts of objects, up to :data:`PARALLEL_READS` ranges at a time; one buffer for each part, in order.

    The first failure is raised at once, and no further range is started. ``done`` is called with each complete part's
    index and bytes by the thread that read its last range, so that digests are computed in parallel; its errors fail
    the fetch. ``into`` are buffers of exactly the parts' lengths. Raises IndexCorrupt if an object is missing or too
    short, or IndexUnavailable.
    """
    if into is None:
        into = [np.empty(part.length, np.uint8).data for part in parts]  # the reading threads first touch the pages
    _Round(store, parts, into, done).run()
    return list(into)


class _Round:
    """One call's ranges, and the threads' progress through them."""

    def __init__(
        self,
        store: ObjectStore,
        parts: Sequence[ByteRange],
        buffers: Sequence[memoryview],
        done: Callable[[int, memoryview], None] | None,
    ) -> None:
        self._read_into = store.read_range_into if isinstance(store, ReadsInto) else _copying(store)
        self._parts = parts
        self._buffers = buffers
        self._done = done
        even = -(-sum(part.length for part in parts) // PARALLEL_READS)
        self._range_bytes = min(max(even, MIN_PART_BYTES), PART_BYTES)
        self._ranges = [
            (at, start) for at, part in enumerate(parts) for start in range(0, part.length, self._range_bytes)
        ]
        self._missing = [-(-part.length // self._range_bytes) for part in parts]
        self._next = 0
        self._unread = len(self._ranges)
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def run(self) -> None:
        """Read everything, or raise the first failure."""
        if self._done is not None:
            for at, part in enumerate(self._parts):
                if part.length == 0:
                    self._done(at, self._buffers[at])
        if not self._ranges:
            return
        if len(self._ranges) == 1 or not self._hand_out():
            self._drain()  # in this thread
        self._ended.wait()
        if self._failure is not None:
            raise self._failure

    def _hand_out(self) -> bool:
        """Submit the ranges to threads; False if none can start because the process is ending or out of threads."""
        pool = _pool()
        for number in range(min(PARALLEL_READS, len(self._ranges))):
            try:
                pool.submit(self._drain)
            except RuntimeError:
                return number > 0
        return True

    def _drain(self) -> None:
        """Read ranges until none is left, or one has failed."""
        while True:
            with self._lock:
                if self._failure is not None or self._next == len(self._ranges):
                    return
                at, start = self._ranges[self._next]
                self._next += 1
            try:
                self._read(at, start)
            except BaseException as error:  # run() raises it again
                with self._lock:
                    self._failure = self._failure or error
                self._ended.set()
                return
            with self._lock:
                self._unread -= 1
                ended = self._unread == 0
            if ended:
                self._ended.set()

    def _read(self, at: int, start: int) -> None:
        part = self._parts[at]
        buffer = self._buffers[at][start : start + self._range_bytes]
        try:
            count = self._read_into(part.key, part.start + start, buffer)
        except ObjectMissing as error:
            raise IndexCorrupt(f"{part.key} is missing", key=part.key) from error
        if count != len(buffer):
            raise IndexCorrupt(f"{part.key} ends before byte {part.start + part.length}", key=part.key)
        with self._lock:
            self._missing[at] -= 1
            complete = self._missing[at] == 0
        if complete and self._done is not None:
            self._done(at, self._buffers[at])


def _copying(store: ObjectStore) -> Callable[[str, int, memoryview], int]:
    def read_into(key: str, start: int, buffer: memoryview) -> int:
        data = store.read_range(key, start, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    return read_into


_threads: ThreadPoolExecutor | None = None
_starting = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    global _threads  # noqa: PLW0603 (one pool a process)
    with _starting:
        if _threads is None:
            _threads = ThreadPoolExecutor(THREADS, thread_name_prefix="index-fetch")
        return _threads


def _forget_threads() -> None:
    """A forked process has the pool, but none of its threads: it starts its own."""
    global _threads, _starting  # noqa: PLW0603
    _threads = None
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_forget_threads)
