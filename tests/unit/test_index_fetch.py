"""Reading many ranges side by side: every byte in its place, the first failure at once, threads kept and forked."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import IndexCorrupt, IndexUnavailable
from cicada.index import fetch as fetching
from cicada.index.fetch import MIN_PART_BYTES, ByteRange, fetch
from cicada.index.ports import PARALLEL_READS, ObjectMissing
from tests.support.object_stores import InMemoryStore

DATA = bytes(range(256)) * 64


class Ranges(InMemoryStore):
    """Objects by key, read by range; counts what is asked for."""

    def __init__(self, **objects: bytes) -> None:
        super().__init__()
        self.objects = objects
        self.asked: list[tuple[str, int, int]] = []

    def read_range(self, key, start, length):
        self.asked.append((key, start, length))
        if key not in self.objects:
            raise ObjectMissing(key)
        return self.objects[key][start : start + length]


class RangesInto(Ranges):
    """The same for a store that reads into buffers."""

    def read_range_into(self, key, start, buffer):
        data = self.read_range(key, start, len(buffer))
        buffer[: len(data)] = data
        return len(data)


@pytest.fixture(params=[Ranges, RangesInto])
def store(request):
    return request.param(a=DATA, b=DATA[::-1])


def test_parts_are_returned_in_order(store):
    parts = [ByteRange("a", 3, 5), ByteRange("b", 0, 2), ByteRange("a", 0, len(DATA))]
    assert [bytes(found) for found in fetch(store, parts)] == [DATA[3:8], DATA[::-1][:2], DATA]


def test_nothing_is_asked_for_nothing(store):
    seen = []
    assert fetch(store, []) == []
    assert [bytes(found) for found in fetch(store, [ByteRange("a", 7, 0)], lambda at, data: seen.append(at))] == [b""]
    assert seen == [0]
    assert store.asked == []


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 400)), max_size=20))
def test_long_parts_are_read_in_pieces_and_put_together(spans):
    store = RangesInto(a=DATA)
    complete: Counter[int] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetching, "MIN_PART_BYTES", 64)
        patch.setattr(fetching, "PART_BYTES", 64)
        parts = [ByteRange("a", start, length) for start, length in spans]
        found = fetch(
            store, parts, lambda at, data: complete.update({at: bytes(data) == DATA[spans[at][0] :][: spans[at][1]]})
        )
    assert [bytes(data) for data in found] == [DATA[start : start + length] for start, length in spans]
    assert complete == Counter(range(len(spans)))  # once each, and whole
    assert all(length <= 64 for _, _, length in store.asked)


def ranges_of(*lengths):
    """The lengths of the ranges that parts of some lengths are read as."""
    store = Ranges(a=bytes(max(lengths)))
    fetch(store, [ByteRange("a", 0, length) for length in lengths])
    return sorted(length for _, _, length in store.asked)


def test_a_short_part_is_one_range():
    assert ranges_of(MIN_PART_BYTES) == [MIN_PART_BYTES]
    assert ranges_of(*[MIN_PART_BYTES] * 3) == [MIN_PART_BYTES] * 3


def test_a_long_part_is_cut_so_that_all_threads_read():
    assert ranges_of(MIN_PART_BYTES + 1) == [1, MIN_PART_BYTES]
    assert ranges_of(2 * PARALLEL_READS * MIN_PART_BYTES) == [2 * MIN_PART_BYTES] * PARALLEL_READS


def test_no_range_is_longer_than_the_bound(monkeypatch):
    monkeypatch.setattr(fetching, "MIN_PART_BYTES", 16)
    monkeypatch.setattr(fetching, "PART_BYTES", 64)
    assert ranges_of(100 * PARALLEL_READS, 64, 65) == [1, *[64] * (100 * PARALLEL_READS // 64 + 2)]


def test_parts_are_read_into_the_buffers_given(store):
    whole = bytearray(8)
    halves = [memoryview(whole)[:4], memoryview(whole)[4:]]
    fetch(store, [ByteRange("a", 0, 4), ByteRange("a", 4, 4)], into=halves)
    assert whole == DATA[:8]


def test_ranges_are_read_side_by_side():
    together = threading.Barrier(PARALLEL_READS, timeout=30)

    class Meeting(Ranges):
        def read_range(self, key, start, length):
            together.wait()  # breaks unless all are under way at a time
            return super().read_range(key, start, length)

    fetch(Meeting(a=DATA), [ByteRange("a", at, 1) for at in range(PARALLEL_READS)])


def test_a_search_does_not_wait_for_the_threads_of_a_load():
    held, release = threading.Semaphore(0), threading.Event()

    class Slow(Ranges):
        def read_range(self, key, start, length):
            if key == "b":
                held.release()
                assert release.wait(30)
            return super().read_range(key, start, length)

    store = Slow(a=DATA, b=DATA)
    load = threading.Thread(target=fetch, args=(store, [ByteRange("b", at, 1) for at in range(2 * PARALLEL_READS)]))
    load.start()
    for _ in range(PARALLEL_READS):
        assert held.acquire(timeout=30)
    assert [bytes(data) for data in fetch(store, [ByteRange("a", 0, 1), ByteRange("a", 1, 1)])] == [DATA[:1], DATA[1:2]]
    release.set()
    load.join()


def test_an_absent_object_is_damage(store):
    for parts in ([ByteRange("none", 0, 1)], [ByteRange("a", 0, 1), ByteRange("none", 0, 1)]):
        with pytest.raises(IndexCorrupt, match="none") as told:
            fetch(store, parts)
        assert told.value.key == "none"


def test_an_object_that_ends_too_early_is_damage(store):
    with pytest.raises(IndexCorrupt, match="a ends before"):
        fetch(store, [ByteRange("b", 0, 1), ByteRange("a", len(DATA) - 3, 4)])


def test_what_the_check_of_a_part_raises_fails_the_fetch(store):
    def check(at, data):
        if at == 1:
            raise IndexCorrupt("not what was written")

    with pytest.raises(IndexCorrupt, match="not what was written"):
        fetch(store, [ByteRange("a", at, 1) for at in range(3)], check)


def test_after_a_failure_no_further_range_is_asked_for():
    class Down(Ranges):
        def read_range(self, key, start, length):
            self.asked.append((key, start, length))
            raise IndexUnavailable("down")

    store = Down()
    with pytest.raises(IndexUnavailable):
        fetch(store, [ByteRange("a", at, 1) for at in range(100 * PARALLEL_READS)])
    assert len(store.asked) <= PARALLEL_READS


def test_a_failure_is_told_while_other_ranges_still_hang():
    release = threading.Event()

    class Hanging(Ranges):
        def read_range(self, key, start, length):
            if start:
                assert release.wait(30)
                return b"x"
            raise IndexUnavailable("down")

    with pytest.raises(IndexUnavailable):
        fetch(Hanging(), [ByteRange("a", at, 1) for at in range(3)])
    release.set()


def test_threads_are_kept_from_call_to_call():
    names: set[str] = set()

    class Named(Ranges):
        def read_range(self, key, start, length):
            names.add(threading.current_thread().name)
            return super().read_range(key, start, length)

    for _ in range(30):
        fetch(Named(a=DATA), [ByteRange("a", at, 1) for at in range(4)])
    assert all(name.startswith("index-fetch") for name in names)
    assert len(names) <= fetching.THREADS


def _read_in_a_fork(queue):
    queue.put([bytes(data) for data in fetch(Ranges(a=DATA), [ByteRange("a", 0, 2), ByteRange("a", 2, 2)])])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
def test_a_forked_process_reads_with_threads_of_its_own():
    fetch(Ranges(a=DATA), [ByteRange("a", 0, 1), ByteRange("a", 1, 1)])  # the parent's threads are running
    forking = multiprocessing.get_context("fork")
    queue = forking.Queue()
    child = forking.Process(target=_read_in_a_fork, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=30) == [DATA[:2], DATA[2:4]]
    finally:
        child.kill()
        child.join()


def test_without_threads_the_caller_reads_by_itself(monkeypatch, store):
    class Full:
        def submit(self, call):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(fetching, "_pool", Full)
    assert [bytes(found) for found in fetch(store, [ByteRange("a", 0, 2), ByteRange("b", 0, 2)])] == [
        DATA[:2],
        DATA[::-1][:2],
    ]
