"""What makes a version or access rules current leaves a record, whoever writes it."""

from __future__ import annotations

import pytest

from cicada.audit.listing import Recorded, list_records
from cicada.errors import AuditUnavailable, IndexUnavailable, PublishConflict
from cicada.index.access_rules import ACCESS_KEY, declare_readers
from cicada.index.maintenance import collect_garbage
from cicada.index.manifest import CURRENT_KEY
from cicada.index.ports import ObjectStore, PreconditionFailed
from cicada.index.versions import read_current, restore, set_allow_partial
from cicada.index.writer import IndexWriter
from cicada.ingest.recorded_store import RecordedStore
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages

WHO = "arn:aws:iam::123456789012:user/jo"


def replace(store: ObjectStore, count: int, collection: str = "script") -> str:
    items = indexable(make_passages(count, collection=collection))
    return IndexWriter(store, WordEmbedder()).replace(collection, items).version


def listed(store: ObjectStore) -> list[Recorded]:
    return list(list_records(store))


def test_each_published_version_is_recorded_once() -> None:
    inner = InMemoryStore()
    store = RecordedStore(inner, WHO, details={"command": "load"})
    first = replace(store, 3)
    replace(store, 3)  # changes nothing
    second = replace(store, 2, "manual")
    newest, oldest = listed(inner)
    assert oldest.details == {"command": "load", "version": first, "replaces": None, "collections": ["script"]}
    assert newest.details == {"command": "load", "version": second, "replaces": first, "collections": ["manual"]}
    assert {(one.action, one.actor, one.outcome) for one in (newest, oldest)} == {("version_published", WHO, "done")}
    assert (newest.subject, oldest.subject) == ("manual", "script")


def test_rolling_back_and_partial_answers_are_recorded() -> None:
    inner = InMemoryStore()
    store = RecordedStore(inner, WHO)
    first = replace(store, 3)
    replace(store, 4)
    set_allow_partial(store, True)
    restore(RecordedStore(inner, WHO, publishing="version_rolled_back"), first)
    rolled, partial = listed(inner)[:2]
    assert (rolled.action, rolled.subject) == ("version_rolled_back", "script")
    assert partial.details["allowPartial"] is True


def test_collecting_garbage_publishes_nothing() -> None:
    inner = InMemoryStore()
    replace(inner, 3)
    collect_garbage(RecordedStore(inner, WHO), keep_versions=1)
    assert listed(inner) == []


class NoAudit(InMemoryStore):
    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:
        if key.startswith("audit/"):
            raise IndexUnavailable("no right")
        return super().write(key, data, replaces=replaces)


def test_what_cannot_be_recorded_is_not_published() -> None:
    inner = NoAudit()
    with pytest.raises(AuditUnavailable):
        replace(RecordedStore(inner, WHO), 3)
    assert read_current(inner) is None


class Overtaken(InMemoryStore):
    """Refuses to replace the current version; ``written`` says whether the write had succeeded all the same."""

    written = False

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:
        if key != CURRENT_KEY or replaces is None:
            return super().write(key, data, replaces=replaces)
        if self.written:
            super().write(key, data, replaces=replaces)
        raise PreconditionFailed(key)


def test_a_publication_that_lost_is_recorded_as_failed() -> None:
    inner = Overtaken()
    replace(inner, 3)
    with pytest.raises(PublishConflict):
        replace(RecordedStore(inner, WHO), 4)
    assert {(one.outcome, one.fault) for one in listed(inner)} == {("failed", "PreconditionFailed")}
    inner.written = True  # the response was lost, and the retry was refused
    version = replace(RecordedStore(inner, WHO), 4)
    assert (listed(inner)[0].outcome, listed(inner)[0].details["version"]) == ("done", version)


def test_changed_access_rules_are_recorded_with_what_they_were() -> None:
    inner = InMemoryStore()
    store = RecordedStore(inner, WHO)
    declare_readers(store, "a", ("x",))
    declare_readers(store, "a", ("x",))  # changes nothing
    declare_readers(store, "b", ("y",))
    declare_readers(store, "a", ("x", "z"))
    declare_readers(store, "b", None)
    withdrawn, changed, *_ = listed(inner)
    assert {one.action for one in listed(inner)} == {"access_changed"}
    assert len(listed(inner)) == 4
    assert changed.details == {"collections": {"a": {"readers": ["x", "z"], "before": ["x"]}}}
    assert (withdrawn.subject, withdrawn.details["collections"]["b"]) == ("b", {"readers": None, "before": ["y"]})
    assert inner.read(ACCESS_KEY).data


def test_other_objects_leave_no_record() -> None:
    inner = InMemoryStore()
    store = RecordedStore(inner, WHO)
    etag = store.write("index/segments/x", b"1", replaces=None)
    assert store.read_if_changed("index/segments/x", etag) is None
    assert (store.read("index/segments/x").data, store.read_range("index/segments/x", 0, 1)) == (b"1", b"1")
    store.delete("index/segments/x")
    assert list(store.entries("")) == []
