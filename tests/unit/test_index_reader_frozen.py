"""The reader in a function that is frozen between its calls, with its threads: it follows new versions all the same."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import pytest

from cicada.errors import IndexUnavailable
from cicada.index.manifest import CURRENT_KEY
from cicada.index.ports import ObjectStore
from cicada.index.reader import REFRESH_INTERVAL_S, IndexReader
from cicada.index.writer import IndexWriter
from cicada.retrieval.facets import ShardFacets
from cicada.retrieval.ports import Filters, SearchQuery, TimeLimit
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore, WatchedStore
from tests.support.passages import indexable, make_passages

READ_S = 0.006
"""What one read takes of the time in which the function is awake."""
BUDGET_S = 8.0
"""What one read may take by the clock, which goes on while the function is frozen."""
LONG_S = 60.0
"""Patience that outlasts what is waited for, on a slow machine too."""


class House:
    """A function's environment, and the object store that its threads can read while it is not frozen."""

    def __init__(self, store: ObjectStore) -> None:
        self.now_s = 1000.0
        self.answers = True
        self.watched = WatchedStore(store)
        self.readers: set[str] = set()
        """The threads that have read, or tried to."""
        self._awake = threading.Event()

    @contextmanager
    def call(self, after_s: float = 0.0) -> Iterator[None]:
        """One call, some seconds after the one before."""
        self.now_s += after_s
        self._awake.set()
        yield
        self._awake.clear()

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self.watched, name)

        def read(*args: object) -> object:
            self.readers.add(threading.current_thread().name)
            began_s, left_s = self.now_s, READ_S
            while left_s > 0 or not self.answers:
                self._awake.wait()
                if self.now_s - began_s >= BUDGET_S:
                    raise IndexUnavailable("the response is too slow")
                time.sleep(0.003)
                left_s -= 0.003
            return method(*args)

        return read

    def close(self, reader: IndexReader) -> None:
        self.answers = True
        self._awake.set()
        reader.close()


@pytest.fixture
def bucket() -> InMemoryStore:
    store = InMemoryStore()
    publish(store)
    return store


@pytest.fixture
def house(bucket: InMemoryStore) -> House:
    return House(bucket)


@pytest.fixture
def reader_of(house: House):
    readers = []

    def make(**options) -> IndexReader:
        given: dict[str, Any] = {
            "embedding_model_id": "test.words",
            "dimensions": 64,
            "clock": lambda: house.now_s,
        } | options
        readers.append(IndexReader(cast(ObjectStore, house), **given))
        with house.call():
            readers[-1].current()
        return readers[-1]

    yield make
    for reader in readers:
        house.close(reader)


def publish(store: InMemoryStore, count: int = 12) -> str:
    return IndexWriter(store, WordEmbedder()).replace("script", indexable(make_passages(count))).version


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def looks(house: House) -> int:
    return house.watched.calls.count(("read_if_changed", CURRENT_KEY))


def given_up(caplog: pytest.LogCaptureFixture) -> list[tuple[str, float]]:
    """How each look ended that was waited for in vain, and for how many seconds."""
    told = [record for record in caplog.records if "serving the held version" in record.message]
    return [(record.message.partition(":")[0], vars(record)["waited_s"]) for record in told]


def test_calls_of_milliseconds_never_stay_behind(bucket: InMemoryStore, house: House, reader_of):
    facets = ShardFacets(reader_of(patience_s=LONG_S))
    for count in range(13, 19):
        version = publish(bucket, count)
        with house.call(after_s=10.0):
            assert facets.count(["speaker"], Filters(), limit=3, readable=EVERYTHING).index_version == version


def test_back_to_back_calls_see_a_new_version_within_the_interval(bucket: InMemoryStore, house: House, reader_of):
    facets = ShardFacets(reader_of(patience_s=LONG_S))
    version = publish(bucket, 15)
    for _ in range(int(REFRESH_INTERVAL_S / 0.25)):
        with house.call(after_s=0.25):
            answered = facets.count(["speaker"], Filters(), limit=3, readable=EVERYTHING).index_version
    assert answered == version


def test_a_search_waits_too(bucket: InMemoryStore, house: House, reader_of):
    retriever = ShardRetriever(reader_of(patience_s=LONG_S), WordEmbedder())
    version = publish(bucket, 15)
    with house.call(after_s=10.0):
        assert retriever.search(SearchQuery("lamp", readable=EVERYTHING)).index_version == version


def test_a_look_that_was_frozen_half_way_and_fails_for_it_is_made_again_at_once(
    bucket: InMemoryStore, house: House, reader_of
):
    reader = reader_of(patience_s=LONG_S)
    version = publish(bucket, 15)
    with house.call(after_s=10.0):
        reader.refresh_soon()  # and the call ends before the look
    with house.call(after_s=10.0):
        assert reader.current().manifest.version == version


def test_an_unchanged_version_costs_one_conditional_read_for_all_who_wait(house: House, reader_of):
    reader = reader_of(patience_s=LONG_S)
    before = list(house.watched.calls)
    with house.call(after_s=10.0), ThreadPoolExecutor(8) as pool:
        reader.refresh_soon()
        list(pool.map(lambda _: reader.current(), range(32)))
    assert house.watched.calls[len(before) :] == [("read_if_changed", CURRENT_KEY)]
    with house.call(after_s=REFRESH_INTERVAL_S - 1):
        reader.current()
    assert looks(house) == 1


def test_a_store_that_hangs_is_waited_for_once_an_interval_and_the_old_version_answers(
    bucket: InMemoryStore, house: House, reader_of, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING)
    reader = reader_of(patience_s=0.2)
    held = reader.current()
    publish(bucket, 15)
    house.answers = False
    for _ in range(20):
        with house.call(after_s=10.0 if not given_up(caplog) else 0.1):
            assert reader.current() is held
    [(how, waited_s)] = given_up(caplog)
    assert (how, waited_s >= 0.2) == ("version check too slow", True)
    house.answers = True
    with house.call(after_s=REFRESH_INTERVAL_S):
        wait_until(lambda: reader.current() is not held)


def test_a_store_that_refuses_is_not_asked_again_by_each_who_waits(
    house: House, reader_of, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING)
    reader = reader_of(patience_s=LONG_S)
    calls = len(house.watched.calls)
    house.watched.before = {calls + n: IndexUnavailable("refused") for n in range(1, 100)}
    with house.call(after_s=10.0):
        for _ in range(20):
            reader.current()
    assert looks(house) == 1
    [(how, waited_s)] = given_up(caplog)
    assert (how, waited_s < LONG_S) == ("version check failed", True)


def test_a_search_keeps_half_of_its_time_for_itself(house: House, reader_of, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    retriever = ShardRetriever(reader_of(patience_s=LONG_S), WordEmbedder())
    house.answers = False
    with house.call(after_s=10.0):
        retriever.search(SearchQuery("lamp", limits=TimeLimit(lambda: 0.2), readable=EVERYTHING))
    [(how, waited_s)] = given_up(caplog)
    assert (how, 0.1 <= waited_s < LONG_S) == ("version check too slow", True)


def test_without_patience_nothing_is_read_on_the_way_of_a_call(house: House, reader_of):
    reader = reader_of()
    house.answers = False
    house.readers.clear()
    for _ in range(20):
        with house.call(after_s=10.0):
            reader.refresh_soon()
            reader.current()
    assert house.readers <= {"index-refresh"}


def test_a_version_that_takes_over_while_the_old_one_is_loaded_is_loaded_too(bucket: InMemoryStore, house, reader_of):
    reader = reader_of(eager_bytes=0, swap_bytes=0, patience_s=LONG_S)
    loading = threading.Thread(target=reader.warm_up)
    version = publish(bucket, 15)
    with house.call(after_s=10.0):
        loading.start()
        time.sleep(READ_S)
        assert reader.current().manifest.version == version
        loading.join()
        reader.warm_soon()
        wait_until(lambda: reader.current().warm)
