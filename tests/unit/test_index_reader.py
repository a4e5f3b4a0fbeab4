"""The reader: loads once, serves from memory, follows new versions beside the answers, and trusts no byte."""

from __future__ import annotations

import logging
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cicada.errors import IndexCorrupt, IndexFailure, IndexMismatch, IndexMissing, IndexUnavailable
from cicada.index.manifest import CURRENT_KEY, SEGMENTS_PREFIX, parse_manifest
from cicada.index.reader import RETRY_INTERVAL_S, IndexReader
from cicada.index.segment_format import Span
from cicada.index.segment_reader import RoundReader, open_segments
from cicada.index.versions import set_allow_partial
from cicada.index.writer import IndexWriter
from tests.support.damage import DAMAGES, damage
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
        given: dict[str, Any] = {"embedding_model_id": "test.words", "dimensions": 64, "refresh_interval_s": 3600.0}
        readers.append(IndexReader(store, **(given | options)))
        return readers[-1]

    yield make
    for reader in readers:
        reader.close()


def found(index) -> list[tuple[str, str, str]]:
    """Everything that a search finds in a version, by collection and id."""
    scope = index.scope({})
    hits = index.search_vectors(QUERY, scope, 1000)
    return summary(index.passages(scope, list(zip(hits.segment.tolist(), hits.row.tolist(), strict=True))))


def summary(passages) -> list[tuple[str, str, str]]:
    return sorted((passage.collection, passage.id, passage.text) for passage in passages)


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


def keys(store, prefix):
    return sorted(key for key in store.objects if key.startswith(prefix))


def reads_of(watched, do):
    """What is read of a watched store meanwhile."""
    before = len(watched.calls)
    do()
    return watched.calls[before:]


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
    assert found(reader.current()) == summary(OLD)
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


def test_a_small_version_is_read_whole_in_three_rounds(store, reader_of):
    watched = WatchedStore(store)
    index = reader_of(watched).current()
    assert index.warm
    (segment,) = keys(store, SEGMENTS_PREFIX)
    assert watched.calls[:2] == [("read", CURRENT_KEY), ("read_range", segment)]
    assert {what for what, _ in watched.calls[2:]} == {"read_range"}


def test_a_large_version_is_searched_before_it_is_loaded(store, reader_of):
    watched = WatchedStore(store)
    reader = reader_of(watched, eager_bytes=0)
    index = reader.current()
    assert len(watched.calls) == 2  # the manifest and the head
    assert not index.warm
    assert found(index) == everything(OLD)
    assert not index.warm


def test_a_large_version_is_loaded_after_the_first_search(store, reader_of):
    watched = WatchedStore(store)
    reader = reader_of(watched, eager_bytes=0, refresh_interval_s=0.01)
    index = reader.current()
    time.sleep(0.1)  # the thread looks for new versions meanwhile
    assert not index.warm
    reader.warm_soon()
    wait_until(lambda: reader.current().warm)
    reader.close()
    del watched.calls[:]
    assert found(reader.current()) == everything(OLD)
    assert watched.calls == []


def test_texts_that_do_not_fit_are_read_when_they_are_shown(store, reader_of):
    watched = WatchedStore(store)
    reader = reader_of(watched, eager_bytes=0, text_bytes=0)
    reader.warm_up()
    index = reader.current()
    assert index.warm
    del watched.calls[:]
    assert found(index) == everything(OLD)
    (segment,) = keys(store, SEGMENTS_PREFIX)
    assert watched.calls == [("read_range", segment)]


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
    kept = set(keys(store, SEGMENTS_PREFIX))
    publish(store, NOTES, "notes")
    del watched.calls[:]
    reader.refresh()
    (added,) = set(keys(store, SEGMENTS_PREFIX)) - kept
    assert watched.calls[0] == ("read_if_changed", CURRENT_KEY)
    assert set(watched.calls[1:]) == {("read_range", added)}
    assert found(reader.current()) == everything(OLD, NOTES)


def test_a_look_that_fails_half_way_is_gone_on_with_by_the_next(store, reader_of):
    watched = WatchedStore(store)
    reader = reader_of(watched)
    reader.current()
    publish(store, NEW)
    del watched.calls[:]
    watched.before[3] = IndexUnavailable("too slow")
    with pytest.raises(IndexUnavailable):
        reader.refresh()
    looked, opened = watched.calls[:2]
    assert (looked[0], opened[0]) == ("read_if_changed", "read_range")
    whole = reads_of(watched, lambda: load_once(watched))
    rest = reads_of(watched, reader.refresh)
    assert len(rest) < len(whole)  # the head is not read again
    assert found(reader.current()) == everything(NEW)
    version = publish(store, OLD)
    reader.refresh()
    assert reader.current().manifest.version == version


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


def test_a_store_that_refuses_for_the_rate_of_reads_is_asked_less_often(store, reader_of):
    now = [1000.0]
    watched = WatchedStore(store)
    reader = reader_of(watched, refresh_interval_s=5.0, clock=lambda: now[0])
    reader.current()
    throttled = IndexUnavailable("503 SlowDown")
    throttled.throttled = True

    def asked(after_s):
        now[0] += after_s
        before = watched.calls.count(("read_if_changed", CURRENT_KEY))
        if reader._is_past(reader._tried_at):
            reader._look_and_log()
        return watched.calls.count(("read_if_changed", CURRENT_KEY)) - before

    watched.before[len(watched.calls) + 1] = throttled
    assert asked(5.0) == 1
    assert asked(5.0) == 0
    assert asked(8.0) == 1
    for _ in range(6):  # each look that succeeds shortens the pause
        asked(60.0)
    assert asked(5.0) == 1


def test_a_closed_reader_has_no_thread_and_still_serves(store, reader_of):
    def own_threads():
        return {thread for thread in threading.enumerate() if thread.name in ("index-look", "index-refresh")}

    before = own_threads()
    reader = reader_of(store, refresh_interval_s=0.01)
    index = reader.current()
    assert own_threads() > before
    reader.close()
    assert own_threads() <= before
    reader.refresh_soon()
    assert reader.current() is index


# --- a store that changes or is damaged under the reader ---


@pytest.mark.parametrize("between", range(1, 8))
def test_a_version_published_between_any_two_reads_is_read_whole_or_not_at_all(reader_of, between):
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


@pytest.fixture(scope="module")
def published():
    """A store with several versions of two collections, and what each version holds."""
    store = InMemoryStore()
    publish(store, segment_rows=5)
    publish(store, NOTES, "notes")
    right = [everything(OLD), everything(OLD, NOTES)]
    publish(store, NEW, segment_rows=5)
    return dict(store.objects), [*right, everything(NOTES, NEW)]


@pytest.mark.parametrize("seed", range(300))
def test_a_damaged_store_is_refused_or_gives_what_was_written(published, seed):
    objects, right = published
    store = InMemoryStore()
    store.objects = dict(objects)
    done = damage(store.objects, random.Random(seed))
    try:
        answer = found(load_once(store))
    except IndexFailure:
        return
    assert answer in right, done


@pytest.mark.parametrize("name", ["flip", "truncate", "delete", "cut_out", "garbage"])
def test_damage_to_a_segment_is_told_with_the_segments_key(store, name):
    (segment,) = keys(store, SEGMENTS_PREFIX)
    DAMAGES[name](store.objects, segment, 77, segment)
    with pytest.raises(IndexCorrupt) as caught:
        load_once(store)
    assert caught.value.key == segment


# --- a version that may be answered from in part ---


def partial(store):
    """Two collections, published so that a reader may do without a damaged segment; the notes' segment's key."""
    publish(store)
    before = set(store.objects)
    publish(store, NOTES, "notes")
    set_allow_partial(store, True)
    (segment,) = (key for key in set(store.objects) - before if key.startswith(SEGMENTS_PREFIX))
    return segment


@pytest.mark.parametrize("name", ["delete", "garbage", "truncate"])
def test_a_segment_that_cannot_be_opened_is_left_out_and_told(reader_of, name):
    store = InMemoryStore()
    segment = partial(store)
    DAMAGES[name](store.objects, segment, 77, segment)
    index = reader_of(store).current()
    assert found(index) == summary(OLD)
    assert [entry.key for entry in index.unreadable] == [segment]


def test_a_segment_that_is_damaged_where_a_search_reads_is_left_out_and_told(reader_of):
    store = InMemoryStore()
    segment = partial(store)
    reader = reader_of(store, eager_bytes=0)
    index = reader.current()
    store.objects[segment] = store.objects[segment][: index.segments[-1].entry.head_bytes] + bytes(100_000)
    with pytest.raises(IndexCorrupt) as caught:
        found(index)
    rest = reader.after_damage(index, caught.value)
    assert found(rest) == summary(OLD)
    assert reader.current() is rest


def test_a_version_that_must_be_whole_is_never_answered_from_in_part(reader_of):
    store = InMemoryStore()
    publish(store)
    before = set(store.objects)
    publish(store, NOTES, "notes")
    (segment,) = (key for key in set(store.objects) - before if key.startswith(SEGMENTS_PREFIX))
    del store.objects[segment]
    with pytest.raises(IndexCorrupt):
        reader_of(store).current()


def test_a_segment_that_comes_back_is_used_again(reader_of):
    store = InMemoryStore()
    segment = partial(store)
    lost = store.objects.pop(segment)
    now = [1000.0]
    reader = reader_of(store, clock=lambda: now[0])
    assert reader.current().unreadable
    store.objects[segment] = lost
    reader.refresh()
    assert reader.current().unreadable
    now[0] += RETRY_INTERVAL_S
    reader.refresh()
    assert not reader.current().unreadable
    assert found(reader.current()) == everything(OLD, NOTES)


def test_a_version_that_was_collected_under_a_search_gives_way_to_the_current_one(store, reader_of):
    reader = reader_of(store, eager_bytes=0)
    index = reader.current()
    old = keys(store, SEGMENTS_PREFIX)
    publish(store, make_passages(12, start=100))
    for key in old:
        del store.objects[key]
    with pytest.raises(IndexCorrupt) as caught:
        found(index)
    assert found(reader.after_damage(index, caught.value)) == everything(make_passages(12, start=100))


# --- memory and threads ---


def test_a_large_new_version_takes_over_before_it_is_loaded(store, reader_of):
    reader = reader_of(store, eager_bytes=0, swap_bytes=0)
    reader.warm_up()
    publish(store, make_passages(40, start=100))
    reader.refresh()
    assert not reader.current().warm
    assert found(reader.current()) == everything(make_passages(40, start=100))


def test_closing_ends_a_load_under_way(store, reader_of):
    loading, go_on = threading.Event(), threading.Event()

    class Slow(WatchedStore):
        def _call(self, what, key, call):
            if len(self.calls) > 3:
                loading.set()
                go_on.wait(30)
            return super()._call(what, key, call)

    watched = Slow(store)
    reader = reader_of(watched, eager_bytes=0)
    reader.current()
    reader.warm_soon()
    assert loading.wait(30)
    closing = threading.Thread(target=reader.close)
    closing.start()
    go_on.set()
    closing.join(30)
    assert not closing.is_alive()
    assert not reader.current().warm


def test_a_load_gives_way_to_a_search_that_waits(store):
    entries = parse_manifest(store.objects[CURRENT_KEY]).segments
    opened, _ = open_segments(store, entries)
    (sections,) = opened.values()
    searching = threading.Event()
    loaded: list[Any] = []

    class Slow(WatchedStore):
        def _call(self, what, key, call):
            if threading.current_thread() is searcher:
                searching.set()
                time.sleep(0.1)
                assert loaded == []
            return super()._call(what, key, call)

    rounds = RoundReader(Slow(store))
    span = Span(sections, "vectors.rows", 0, 8)
    searcher = threading.Thread(target=lambda: rounds.gather([span]))
    searcher.start()
    searching.wait(30)
    rounds.load(sections, ["vectors.codes"])
    loaded.append("codes")
    searcher.join()
    assert sections.resident("vectors.codes") is not None
