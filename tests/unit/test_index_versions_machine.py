"""Any sequence of work on the index, some of it killed half way, against what the index ought to hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cicada.errors import IndexMissing
from cicada.index import compaction
from cicada.index.compaction import compact
from cicada.index.maintenance import check_index, collect_garbage
from cicada.index.versions import GRACE_S, must_be_published, read_current, restore
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.index_changes import published_versions
from tests.support.index_content import content, expected
from tests.support.object_stores import InMemoryStore, Killed, WatchedStore
from tests.support.passages import indexable, make_passage

COLLECTIONS = st.sampled_from(["script", "notes"])
NUMBERS = st.integers(0, 11)
TEXTS = st.sampled_from(["", "Other words.", "More words."])
KEPT = 3


class IndexMachine(RuleBasedStateMachine):
    """Work that is killed is either done or not; which of both, the index tells."""

    def __init__(self):
        super().__init__()
        self.time = datetime(2026, 11, 21, tzinfo=UTC)
        self.store = InMemoryStore(lambda: self.time)
        self.model = {}
        self.versions = {}
        self.kill_at = None

    def work(self, work, model):
        """Do it, killed where that was decided; ``model`` is what the index holds if it was done."""
        self.time += timedelta(minutes=1)
        store = self.store if self.kill_at is None else WatchedStore(self.store, before={self.kill_at: Killed()})
        self.kill_at = None
        try:
            work(store)
        except Killed:
            if content(self.store) != self.found(model):
                return
        self.model = model
        if current := read_current(self.store):
            self.versions.setdefault(current.manifest.version, model)

    def found(self, model):
        return {name: expected(passages.values()) for name, passages in model.items() if passages}

    def writer(self, store):
        return IndexWriter(store, WordEmbedder(), segment_rows=4, now=lambda: self.time)

    @initialize(numbers=st.sets(NUMBERS, min_size=1))
    def begin(self, numbers):
        self.replace("script", numbers, "")

    @rule(call=st.integers(1, 25))
    def kill_the_next(self, call):
        self.kill_at = call

    @rule(collection=COLLECTIONS, numbers=st.sets(NUMBERS, min_size=1), text=TEXTS)
    def replace(self, collection, numbers, text):
        passages = {n: make_passage(n, collection=collection, context=text and f"{text} {n}") for n in sorted(numbers)}
        items = indexable(passages.values())
        self.work(lambda s: self.writer(s).replace(collection, items), self.model | {collection: passages})

    @rule(collection=COLLECTIONS, numbers=st.sets(NUMBERS, max_size=4), text=TEXTS)
    def add(self, collection, numbers, text):
        passages = {n: make_passage(n, collection=collection, context=text and f"{text} {n}") for n in sorted(numbers)}
        merged = self.model.get(collection, {}) | passages
        items = indexable(passages.values())
        self.work(lambda s: self.writer(s).add(collection, items), self.model | {collection: merged})

    @rule(collection=COLLECTIONS, numbers=st.sets(NUMBERS, max_size=6))
    def delete(self, collection, numbers):
        left = {n: passage for n, passage in self.model.get(collection, {}).items() if n not in numbers}
        ids = [f"m{n}" for n in numbers]
        self.work(lambda s: self.writer(s).delete(collection, ids), self.model | {collection: left})

    @rule()
    def compact(self):
        self.work(lambda s: compact(s, segment_rows=8, now=lambda: self.time), self.model)

    @rule()
    def collect(self):
        self.work(lambda s: collect_garbage(s, keep_versions=KEPT, now=lambda: self.time), self.model)

    @rule(hours=st.sampled_from([1, 30]))
    def wait(self, hours):
        self.time += timedelta(hours=hours)

    @precondition(lambda self: self.versions)
    @rule(data=st.data())
    def roll_back(self, data):
        version = data.draw(st.sampled_from(sorted(self.versions)))
        if version in published_versions(self.store):
            self.work(lambda s: restore(s, version, now=lambda: self.time), self.versions[version])
        else:
            with pytest.raises(IndexMissing):
                restore(self.store, version)

    @invariant()
    def the_index_holds_what_it_ought_to(self):
        assert content(self.store) == self.found(self.model)

    def teardown(self):
        if read_current(self.store) is None:
            return
        assert check_index(self.store).damaged == ()
        self.time += timedelta(seconds=2 * GRACE_S)
        collect_garbage(self.store, keep_versions=1, now=lambda: self.time)
        manifest = must_be_published(self.store).manifest
        assert content(self.store) == self.found(self.model)
        # one copy of the manifest beside the current one, and each segment with its tombstones: nothing else is left
        assert len(self.store.objects) == 2 + sum(1 + (entry.tombstones is not None) for entry in manifest.segments)


@pytest.fixture(autouse=True)
def small_tiers(monkeypatch):
    monkeypatch.setattr(compaction, "TIER_SEGMENTS", 2)
    monkeypatch.setattr(compaction, "MIN_DELETED_ROWS", 1)


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(max_examples=8, stateful_step_count=20)
