"""The reader: loads once, serves from memory, follows new versions beside the answers, and trusts no byte."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import IndexCorrupt, IndexFailure, IndexMismatch, IndexMissing, IndexUnavailable
from cicada.index import fetch
from cicada.index.manifest import CURRENT_KEY, SEGMENTS_PREFIX
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore, WatchedStore
from tests.support.passages import indexable, make_passages, unit_rows

OLD = make_passages(12)
NEW = make_passages(15)
NOTES = make_passages(3, collection="notes")
QUERY = unit_rows(1, 64, seed=3)[0]


def publish(store, passages=OLD, collection="script", embedder=None, **options):
    return IndexWriter(store, embedder or WordEmbedder(), **options).replace(collection, indexable(passages)).version


@pytest.fixture
def store():
    store = InMemoryStore()
    publish(store)
    return store


@pytest.fixture
def reader_of():
    readers = []

    def make(store, **options):
        given = {"embedding_model_id": "test.words", "dimensions": 64, "refresh_interval_s": 3600.0} | options
        readers.append(IndexReader(store, **given))
        return readers[-1]

    yield make
    for reader in readers:
        reader.close()


def found(index) -> list[object]:
    """Everything in a version, best first, as a search would show it."""
    return [ranked.segment.passage(ranked.row) for ranked in index.rank(QUERY, {}, 1000).rows]


def everything(*collections):
    """What :func:`found` gives for the collections."""
    store = InMemoryStore()
    for passages in collections:
        publish(store, passages, passages[0].collection)
    return found(load_once(store))


def load_once(store):
    reader = IndexReader(store, embedding_model_id="test.words", dimensions=64)
    try:
        return reader.current()
    finally:
        reader.close()


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)


# --- loading ---


def test_the_first_call_loads_and_later_ones_read_nothing(store, reader_of):
    watched = WatchedStore(store)
    reader = reader_of(watched)
    assert watched.calls == []
    assert sorted(passage.id for passage in found(reader.current())) == sorted(passage.id for passage in OLD)
    after_load = list(watched.calls)
    for _ in range(5):
        found(reader.current())
    assert watched.calls == after_load


def test_threads_that_meet_a_cold_reader_share_one_load(store, reader_of):
    watched = WatchedStore(store)
    reader = reader_of(watched)
    with ThreadPoolExecutor(8) as pool:
        indexes = list(pool.map(lambda _: reader.current(), range(32)))
    assert all(index is indexes[0] for index in indexes)
    assert watched.calls.count(("read", CURRENT_KEY)) == 1


def test_a_large_segment_is_read_in_several_ranges(store, reader_of, monkeypatch):
    monkeypatch.setattr(fetch, "PART_BYTES", 1000)
    watched = WatchedStore(store)
    assert found(reader_of(watched).current()) == everything(OLD)
    (segment,) = store.keys(SEGMENTS_PREFIX)
    assert watched.calls.count(("read_range", segment)) == len(store.objects[segment]) // 1000 + 1


def test_nothing_published_is_told_until_something_is(reader_of):
    store = InMemoryStore()
    reader = reader_of(store)
    with pytest.raises(IndexMissing):
        reader.current()
    publish(store)
    assert found(reader.current()) == everything(OLD)


def test_a_store_that_does_not_respond_is_told_and_asked_again(store, reader_of):
    reader = reader_of(WatchedStore(store, before={1: IndexUnavailable("no answer"), 3: IndexUnavailable("again")}))
    for _ in range(2):
        with pytest.raises(IndexUnavailable):
            reader.current()
    assert found(reader.current()) == everything(OLD)


@pytest.mark.parametrize("other", [{"embedding_model_id": "test.other"}, {"dimensions": 65}])
def test_an_index_of_another_model_is_refused(store, reader_of, other):
    with pytest.raises(IndexMismatch, match=r"test\.words at 64"):
        reader_of(store, **other).current()


# --- following ---


def test_a_search_keeps_the_version_that_it_began_with(store, reader_of):
    reader = reader_of(store)
    pinned = reader.current()
    publish(store, NEW)
    reader.refresh()
    assert found(pinned) == everything(OLD)
    assert found(reader.current()) == everything(NEW)


def test_a_version_that_has_not_changed_is_not_read_again(store, reader_of):
    watched = WatchedStore(store)
    reader = reader_of(watched)
    index = reader.current()
    del watched.calls[:]
    reader.refresh()
    assert watched.calls == [("read_if_changed", CURRENT_KEY)]
    assert reader.current() is index


def test_only_new_segments_of_a_new_version_are_read(store, reader_of):
    watched = WatchedStore(store)
    reader = reader_of(watched)
    reader.current()
    kept = set(store.keys(SEGMENTS_PREFIX))
    publish(store, NOTES, "notes")
    del watched.calls[:]
    reader.refresh()
    (added,) = set(store.keys(SEGMENTS_PREFIX)) - kept
    assert watched.calls == [("read_if_changed", CURRENT_KEY), ("read_range", added)]
    assert found(reader.current()) == everything(OLD, NOTES)


@pytest.mark.parametrize("damage", ["segment", "manifest", "model", "gone"])
def test_a_version_that_cannot_be_had_leaves_the_old_one_in_service(store, reader_of, damage):
    reader = reader_of(store)
    reader.current()
    if damage == "model":
        publish(store, NEW, embedder=WordEmbedder("test.other", 32))
    else:
        before = set(store.objects)
        publish(store, NEW)
    if damage == "segment":
        (segment,) = (key for key in set(store.objects) - before if key.startswith(SEGMENTS_PREFIX))
        del store.objects[segment]
    elif damage == "manifest":
        store.objects[CURRENT_KEY] = b"[]"
    elif damage == "gone":
        del store.objects[CURRENT_KEY]
    with pytest.raises(IndexFailure):
        reader.refresh()
    assert found(reader.current()) == everything(OLD)
    IndexWriter(store, WordEmbedder()).start_over("script", indexable(NEW))
    reader.refresh()
    assert found(reader.current()) == everything(NEW)


def test_a_new_version_is_found_beside_the_searches(store, reader_of):
    reader = reader_of(store, refresh_interval_s=0.01)
    reader.current()
    version = publish(store, NEW)
    wait_until(lambda: reader.current().manifest.version == version)
    assert found(reader.current()) == everything(NEW)


def test_asking_for_a_refresh_loads_the_first_version_meanwhile(store, reader_of):
    watched = WatchedStore(store)
    reader = reader_of(watched)
    reader.refresh_soon()
    wait_until(lambda: any(what == "read_range" for what, _ in watched.calls))
    reader.current()
    assert watched.calls.count(("read", CURRENT_KEY)) == 1


def test_asking_again_within_the_interval_asks_for_nothing(store, reader_of):
    now = [1000.0]
    watched = WatchedStore(store)
    reader = reader_of(watched, refresh_interval_s=3600.0, clock=lambda: now[0])
    reader.current()
    version = publish(store, NEW)
    for now[0] in (1000.0, 4599.0):
        reader.refresh_soon()
    assert ("read_if_changed", CURRENT_KEY) not in watched.calls
    now[0] = 4600.0
    reader.refresh_soon()
    wait_until(lambda: reader.current().manifest.version == version)


@pytest.mark.parametrize("fault", [IndexUnavailable("no answer"), RuntimeError("a bug")])
def test_a_refresh_that_fails_is_logged_and_tried_again(store, reader_of, caplog, fault):
    caplog.set_level(logging.WARNING)
    watched = WatchedStore(store)
    reader = reader_of(watched, refresh_interval_s=0.01)
    reader.current()
    failing = len(watched.calls) + 5
    watched.before[failing] = fault
    wait_until(lambda: len(watched.calls) > failing)
    version = publish(store, NEW)
    wait_until(lambda: reader.current().manifest.version == version)
    assert "index not refreshed" in caplog.text


def test_a_closed_reader_has_no_thread_and_still_serves(store, reader_of):
    before = set(threading.enumerate())
    reader = reader_of(store, refresh_interval_s=0.01)
    index = reader.current()
    assert set(threading.enumerate()) > before
    reader.close()
    assert set(threading.enumerate()) <= before
    reader.refresh_soon()
    assert reader.current() is index


# --- a store that changes or is damaged under the reader ---


@pytest.mark.parametrize("between", range(1, 8))
def test_a_version_published_between_any_two_reads_is_read_whole_or_not_at_all(reader_of, between, monkeypatch):
    monkeypatch.setattr(fetch, "PART_BYTES", 3000)

    class Swapping(WatchedStore):
        def _call(self, what, key, call):
            if len(self.calls) >= between and swap.acquire(blocking=False):
                publish(store, NEW)
            return super()._call(what, key, call)

    swap = threading.Lock()
    store = InMemoryStore()
    publish(store)
    reader = reader_of(Swapping(store))
    index = reader.current()
    assert found(index) == everything(OLD)
    reader.refresh()
    assert found(reader.current()) == everything(NEW if swap.locked() else OLD)


class Damages:
    """Ways to tamper with the objects of a store."""

    @staticmethod
    def flip(objects, key, at, key2):
        if data := bytearray(objects[key]):
            data[at % len(data)] ^= 1 + at % 255
        objects[key] = bytes(data)

    @staticmethod
    def truncate(objects, key, at, key2):
        objects[key] = objects[key][: at % (len(objects[key]) + 1)]

    @staticmethod
    def extend(objects, key, at, key2):
        objects[key] += bytes(1 + at % 100)

    @staticmethod
    def delete(objects, key, at, key2):
        del objects[key]

    @staticmethod
    def swap(objects, key, at, key2):
        objects[key], objects[key2] = objects[key2], objects[key]

    @staticmethod
    def copy(objects, key, at, key2):
        objects[key] = objects[key2]

    @staticmethod
    def cut_out(objects, key, at, key2):
        data = objects[key]
        at %= len(data) + 1
        objects[key] = data[:at] + data[at + 1 + at % 7 :]

    @staticmethod
    def garbage(objects, key, at, key2):
        objects[key] = [b"", b"{}", b"[]", b"null", b"\xff", b"CICADSEG", b'{"formatVersion": "x"}', b"[" * 50_000][
            at % 8
        ]


@pytest.fixture(scope="module")
def published():
    """A store with two versions of two collections, and what each version holds."""
    store = InMemoryStore()
    publish(store, segment_rows=5)
    publish(store, NOTES, "notes")
    right = [everything(OLD), everything(OLD, NOTES)]
    publish(store, NEW, segment_rows=5)
    return dict(store.objects), [*right, everything(NOTES, NEW)]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([name for name in vars(Damages) if not name.startswith("_")]),
            st.integers(0, 99),
            st.integers(0, 10**6),
            st.integers(0, 99),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_damaged_store_is_refused_or_gives_what_was_written(published, damages):
    objects, right = published
    store = InMemoryStore()
    store.objects = dict(objects)
    for name, which, at, which2 in damages:
        keys = sorted(store.objects)
        getattr(Damages, name)(store.objects, keys[which % len(keys)], at, keys[which2 % len(keys)])
    try:
        answer = found(load_once(store))
    except IndexFailure:
        return
    assert answer in right


def test_every_kind_of_damage_to_a_segment_is_told_as_damage():
    for name in ("flip", "truncate", "delete", "cut_out", "garbage"):
        store = InMemoryStore()
        publish(store)
        (segment,) = store.keys(SEGMENTS_PREFIX)
        getattr(Damages, name)(store.objects, segment, 77, segment)
        with pytest.raises(IndexCorrupt):
            load_once(store)
