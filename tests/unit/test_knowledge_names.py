"""The index's names are read beside the answers: old ones serve meanwhile, and only where there are none is waited."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from cicada.concurrency import THREADS, Condition, Running, Threads
from cicada.errors import IndexMissing, IndexUnavailable, OutOfTime
from cicada.index.reader import IndexReader
from cicada.models.ports import Stopped
from cicada.retrieval.knowledge.contracts import Catalogue
from cicada.retrieval.knowledge.gazetteer import NAMES_HELD, IndexNames
from cicada.retrieval.ports import TimeLimit, Unlimited
from cicada.rights import EVERYTHING
from tests.support.catalogues import CATALOGUE, DIARY, SHEET, declared
from tests.support.entities import naming, reading, stored
from tests.support.object_stores import InMemoryStore

CATALOGUE_2 = replace(CATALOGUE, index_version="v2")
CATALOGUE_3 = replace(CATALOGUE, index_version="v3")


class Later(Threads):
    """Starts nothing before it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def spawn(self, run: Callable[[], None], name: str) -> Running:
        self.waiting.append(run)
        return THREADS.spawn(lambda: None, name)

    def condition(self) -> Condition:
        return THREADS.condition()

    def go_on(self) -> int:
        """Do what was started; how much that was."""
        waiting, self.waiting = self.waiting, []
        for run in waiting:
            run()
        return len(waiting)


@pytest.fixture
def reader() -> Iterator[IndexReader]:
    store = stored(naming(1, "Hask", collection="diary"), naming(2, "Gutterflame", collection="sheet"))
    with reading(store) as reader:
        yield reader


def read(reader: IndexReader) -> tuple[IndexNames, Later]:
    """Names of the first version, read, and what reads those of later ones."""
    later = Later()
    names = IndexNames(reader, concurrency=later)
    with pytest.raises(OutOfTime):
        names.names(CATALOGUE, TimeLimit(lambda: 0.0))
    assert later.go_on() == 1
    return names, later


def test_names_are_read_once_a_version_and_serve_questions_to_some_of_their_collections(reader: IndexReader) -> None:
    source, later = read(reader)
    first = source.names(CATALOGUE)
    assert source.names(CATALOGUE) is first
    assert source.names(Catalogue("v1", (DIARY,), readable=EVERYTHING)) is first
    assert later.go_on() == 0


def test_those_of_the_version_before_serve_until_the_new_ones_are_there(reader: IndexReader) -> None:
    source, later = read(reader)
    first = source.names(CATALOGUE)
    assert source.names(CATALOGUE_2) is first
    assert source.names(CATALOGUE_2) is first
    assert later.go_on() == 1  # however many questions come meanwhile
    assert source.names(CATALOGUE_2) is not first
    assert later.go_on() == 0


def test_names_of_all_collections_are_kept_while_those_of_some_are_read_anew(reader: IndexReader) -> None:
    source, later = read(reader)
    first = source.names(CATALOGUE)
    source.names(Catalogue("v2", (DIARY,), readable=EVERYTHING))
    later.go_on()
    assert source.names(CATALOGUE_2) is first
    later.go_on()
    assert source.names(Catalogue("v2", (SHEET,), readable=EVERYTHING)) is source.names(CATALOGUE_2)


def test_the_first_question_waits_for_the_first_names(reader: IndexReader) -> None:
    assert len(IndexNames(reader).names(CATALOGUE)) > 0


def test_the_first_question_to_a_new_collection_waits_for_its_names(reader: IndexReader) -> None:
    source, later = read(reader)
    wider = Catalogue(
        "v2", (*CATALOGUE.collections, declared("other", {"signs": ("Of signs.", ())})), readable=EVERYTHING
    )
    left_s = [0.01, 0.0]
    with pytest.raises(OutOfTime):
        source.names(wider, TimeLimit(lambda: left_s.pop(0)))
    assert later.go_on() == 1
    assert source.names(wider) is source.names(CATALOGUE_2)


def test_a_stop_ends_the_waiting_and_the_reading_goes_on_for_others(reader: IndexReader) -> None:
    later = Later()
    source = IndexNames(reader, concurrency=later)
    heard: list[Callable[[], None]] = []
    hearing = threading.Event()

    class Stoppable(Unlimited):
        def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
            heard.append(wake)
            hearing.set()
            return lambda: heard.remove(wake)

    def stop() -> None:
        assert hearing.wait(20)
        heard[0]()

    stopping = threading.Thread(target=stop)
    stopping.start()
    with pytest.raises(Stopped):
        source.names(CATALOGUE, Stoppable())
    stopping.join()
    assert heard == []
    assert later.go_on() == 1
    assert source.names(CATALOGUE) is not None


def test_names_that_cannot_be_read_fail_those_who_wait_and_are_read_for_the_next() -> None:
    store = InMemoryStore()
    with reading(store) as reader:
        source = IndexNames(reader)
        with pytest.raises(IndexMissing):
            source.names(CATALOGUE)
        stored(naming(1, "Hask", collection="diary"), store=store)
        assert source.names(CATALOGUE) is not None


def test_names_that_cannot_be_read_anew_leave_the_old_ones_and_are_tried_again(
    reader: IndexReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, later = read(reader)
    first = source.names(CATALOGUE)

    def gone() -> None:
        raise IndexUnavailable("gone")

    with monkeypatch.context() as broken:
        broken.setattr(reader, "current", gone)
        for _ in range(2):
            assert source.names(CATALOGUE_2) is first
            assert later.go_on() == 1
    assert source.names(CATALOGUE_2) is first
    later.go_on()
    assert source.names(CATALOGUE_2) is not first


def test_no_more_sets_of_names_are_held_than_may_be(reader: IndexReader) -> None:
    later = Later()
    source = IndexNames(reader, concurrency=later)
    single = [declared(f"c{n}", {"signs": ("Of signs.", ())}) for n in range(NAMES_HELD + 1)]
    for one in single:
        with pytest.raises(OutOfTime):
            source.names(Catalogue("v1", (one,), readable=EVERYTHING), TimeLimit(lambda: 0.0))
        later.go_on()
    assert len(source._held) == NAMES_HELD
