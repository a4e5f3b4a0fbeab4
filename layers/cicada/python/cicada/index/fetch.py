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
from cicada.index.ports import ObjectMissing, ObjectStore

PARALLEL_READS = 32  # ranges that one call reads at a time
PART_BYTES = 4 * 2**20  # the most that one request reads; longer parts are read as several ranges
MIN_PART_BYTES = 2**20
"""Shorter parts are never cut: below about 1 MiB a read costs its first byte's latency, not its bytes. Between the two
sizes, parts are cut so that all parallel reads have work."""
THREADS = 3 * PARALLEL_READS
"""Threads at most; enough that a search does not wait for the threads of a load that is under way."""


@dataclass(frozen=True)
class ByteRange:
    """Bytes ``start`` to ``start + length`` of an object."""

    key: str
    start: int
    length: int


@runtime_checkable
class ReadsInto(Protocol):
    """An optional ability of an :class:`~cicada.index.ports.ObjectStore`: to read without a copy."""

    def read_range_into(self, key: str, start: int, buffer: memoryview) -> int:
        """Fill the buffer (at least 1 byte) from ``start``; returns how many bytes the object had there.

        Raises ObjectMissing if there is no object; IndexUnavailable if the store does not respond, or refuses.
        """


def fetch(
    store: ObjectStore,
    parts: Sequence[ByteRange],
    done: Callable[[int, memoryview], None] | None = None,
    *,
    into: Sequence[memoryview] | None = None,
) -> list[memoryview]:
    """Read parts of objects, up to :data:`PARALLEL_READS` ranges at a time; one buffer for each part, in order.

    The first failure is raised at once; ranges that no thread has begun to read by then are not read. ``done`` is
    called with each part's index and bytes when they are complete, by the thread that read the last range, so that
    digests are computed in parallel; an error that it raises fails the fetch. ``into`` are buffers to read into, of
    exactly the parts' lengths. Raises IndexCorrupt if an object is missing or too short; IndexUnavailable.
    """
    if into is None:
        into = [np.empty(part.length, np.uint8).data for part in parts]  # the reading threads first touch the pages
    buffers = list(into)
    _Round(store, parts, buffers, done).run()
    return buffers


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
        """Start threads that drain the ranges; False if none can start, because the process is ending or full."""
        pool = _pool()
        for number in range(min(PARALLEL_READS, len(self._ranges))):
            try:
                pool.submit(self._drain)
            except RuntimeError:
                return number > 0
        return True

    def _drain(self) -> None:
        """Read one range after the other until none is left, or one has failed."""
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
            raise IndexCorrupt(
                f"{part.key} ends before the {part.start + part.length} bytes it must have", key=part.key
            )
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


# --- the threads: started when they are first needed, then kept; a forked process starts its own ---

_threads: ThreadPoolExecutor | None = None
_starting = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    global _threads  # noqa: PLW0603 (one pool a process)
    with _starting:
        if _threads is None:
            _threads = ThreadPoolExecutor(THREADS, thread_name_prefix="index-fetch")
        return _threads


def _forget_threads() -> None:
    """A fork has the pool, but none of its threads."""
    global _threads, _starting  # noqa: PLW0603
    _threads = None
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_forget_threads)
