"""A folder keeps the object store's contract."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cicada.errors import IndexUnavailable
from cicada.index.ports import ObjectMissing, PreconditionFailed
from cicada_evaluation.folder_store import FolderStore


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "index")


def test_what_was_written_is_read_whole_and_by_range(store: FolderStore) -> None:
    etag = store.write("index/a.bin", b"0123456789", replaces=None)
    assert store.read("index/a.bin").data == b"0123456789"
    assert store.read("index/a.bin").etag == etag
    assert store.read_range("index/a.bin", 3, 4) == b"3456"
    assert store.read_range("index/a.bin", 8, 100) == b"89"
    assert store.read_range("index/a.bin", 100, 1) == b""


def test_another_store_over_the_folder_finds_it_again(tmp_path: Path) -> None:
    FolderStore(tmp_path).write("a", b"kept", replaces=None)
    assert FolderStore(tmp_path).read("a").data == b"kept"


def test_a_write_replaces_only_what_it_was_made_for(store: FolderStore) -> None:
    first = store.write("current", b"1", replaces=None)
    with pytest.raises(PreconditionFailed):
        store.write("current", b"2", replaces=None)
    second = store.write("current", b"2", replaces=first)
    with pytest.raises(PreconditionFailed):
        store.write("current", b"3", replaces=first)
    with pytest.raises(PreconditionFailed):
        store.write("other", b"3", replaces=second)
    assert store.read("current").data == b"2"


def test_of_many_writers_at_once_one_wins(store: FolderStore) -> None:
    won = []

    def write(number: int) -> None:
        try:
            store.write("current", str(number).encode(), replaces=None)
            won.append(number)
        except PreconditionFailed:
            pass

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(number).encode() for number in won] == [store.read("current").data]


def test_an_unchanged_object_is_not_read_again(store: FolderStore) -> None:
    etag = store.write("current", b"1", replaces=None)
    assert store.read_if_changed("current", etag) is None
    store.write("current", b"2", replaces=etag)
    changed = store.read_if_changed("current", etag)
    assert changed is not None
    assert changed.data == b"2"


def test_what_is_not_there_is_missing(store: FolderStore) -> None:
    with pytest.raises(ObjectMissing):
        store.read("nothing")
    with pytest.raises(ObjectMissing):
        store.read_if_changed("nothing", "etag")
    with pytest.raises(ObjectMissing):
        store.read_range("nothing", 0, 1)


def test_entries_are_listed_by_prefix_in_byte_order(store: FolderStore) -> None:
    for key in ("index/b", "index/a/1", "index/a-1", "other/a"):
        store.write(key, b"123", replaces=None)
    entries = list(store.entries("index/"))
    assert [entry.key for entry in entries] == ["index/a-1", "index/a/1", "index/b"]
    assert {entry.bytes for entry in entries} == {3}
    assert abs(entries[0].modified_at - datetime.now(UTC)) < timedelta(minutes=5)


def test_deleting_is_final_and_may_come_twice(store: FolderStore) -> None:
    store.write("a", b"1", replaces=None)
    store.delete("a")
    store.delete("a")
    assert list(store.entries("")) == []


def test_no_key_leads_out_of_the_folder(store: FolderStore, tmp_path: Path) -> None:
    for key in ("../out", str(tmp_path / "out")):
        with pytest.raises(IndexUnavailable):
            store.write(key, b"1", replaces=None)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(IndexUnavailable):
        FolderStore(tmp_path / "file" / "index")
