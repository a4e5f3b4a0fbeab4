"""Writing versions: what is published, what is kept, what a writer that fails or loses leaves behind."""

from __future__ import annotations

import numpy as np
import pytest

from cicada.errors import (
    CorpusInvalid,
    IndexCorrupt,
    IndexMismatch,
    IndexMissing,
    IndexUnavailable,
    ModelBusy,
    PublishConflict,
)
from cicada.index.manifest import CURRENT_KEY, SEGMENTS_PREFIX, VERSIONS_PREFIX
from cicada.index.publish import published_versions, read_current, restore
from cicada.index.segments import load_segments
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore, Killed, WatchedStore
from tests.support.passages import indexable, make_passages

OLD = make_passages(6)
NEW = [*OLD[:3], OLD[3].model_copy(update={"context": "another context"}), *make_passages(2, start=10)]


def write(store, passages=OLD, collection="script", embedder=None, **options):
    return IndexWriter(store, embedder or WordEmbedder(), **options).replace(collection, indexable(passages))


def content(store) -> dict[str, list[tuple[object, tuple[float, ...]]]]:
    """What a reader would find: each collection's passages and vectors."""
    current = read_current(store)
    if current is None:
        return {}
    found: dict[str, list[tuple[object, tuple[float, ...]]]] = {}
    for segment in load_segments(store, current.manifest.segments, dimensions=current.manifest.dimensions):
        rows = zip(segment.passages(), segment.vectors, strict=True)
        found.setdefault(segment.collection, []).extend((passage, tuple(vector)) for passage, vector in rows)
    return found


def expected(passages) -> list[tuple[object, tuple[float, ...]]]:
    vectors = np.asarray(WordEmbedder().embed([p.context for p in passages], time_budget_s=1), dtype=np.float32)
    return [(passage, tuple(vector)) for passage, vector in zip(passages, vectors, strict=True)]


def test_a_first_load_publishes_the_collection():
    store, embedder = InMemoryStore(), WordEmbedder()
    written = write(store, embedder=embedder)
    assert content(store) == {"script": expected(OLD)}
    assert (written.published, written.passages, written.embedded, written.segments) == (True, 6, 6, 1)
    assert read_current(store).manifest.version == written.version
    assert written.version.startswith("000001-")


def test_an_unchanged_collection_calls_no_model_and_publishes_nothing():
    store, embedder = InMemoryStore(), WordEmbedder()
    first = write(store)
    objects = dict(store.objects)
    again = write(store, embedder=embedder)
    assert embedder.asked == []
    assert store.objects == objects
    assert (again.published, again.version, again.segments) == (False, first.version, 1)


def test_only_what_changed_is_embedded_again():
    store, embedder = InMemoryStore(), WordEmbedder()
    first = write(store)
    written = write(store, NEW, embedder=embedder)
    assert embedder.asked == [passage.context for passage in NEW[3:]]
    assert written.embedded == 3
    assert content(store) == {"script": expected(NEW)}
    manifest = read_current(store).manifest
    assert (manifest.number, manifest.previous) == (2, first.version)


def test_a_change_of_what_is_shown_alone_is_published_without_a_model():
    store, embedder = InMemoryStore(), WordEmbedder()
    write(store)
    renamed = [OLD[0].model_copy(update={"text": "Another text."}), *OLD[1:]]
    assert write(store, renamed, embedder=embedder).published
    assert embedder.asked == []
    assert content(store) == {"script": expected(renamed)}


def test_equal_texts_are_embedded_once():
    embedder = WordEmbedder()
    write(InMemoryStore(), [passage.model_copy(update={"context": "the same"}) for passage in OLD], embedder=embedder)
    assert embedder.asked == ["the same"]


def test_other_collections_keep_their_segments_untouched():
    store = InMemoryStore()
    notes = make_passages(4, collection="notes")
    write(store)
    kept = read_current(store).manifest.segments
    write(store, notes, "notes")
    assert content(store) == {"script": expected(OLD), "notes": expected(notes)}
    assert read_current(store).manifest.segments[:1] == kept


def test_a_large_collection_becomes_several_segments_in_order():
    store, told = InMemoryStore(), []
    written = write(store, segment_rows=4, progress=lambda *step: told.append(step))
    assert written.segments == 2
    assert content(store) == {"script": expected(OLD)}
    assert told == [
        ("embedding", 0, 6),
        ("embedding", 6, 6),
        ("writing", 0, 2),
        ("writing", 1, 2),
        ("writing", 2, 2),
        ("publishing", 0, 1),
        ("publishing", 1, 1),
    ]


def test_texts_are_embedded_in_batches():
    class Counting(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            batches.append(len(texts))
            return super().embed(texts, time_budget_s=time_budget_s)

    batches: list[int] = []
    write(InMemoryStore(), make_passages(150), embedder=Counting())
    assert batches == [64, 64, 22]


@pytest.mark.parametrize(
    ("passages", "told"),
    [
        ([], "no passage"),
        ([OLD[0], OLD[0]], "two passages of script have the id m0"),
        (make_passages(1, collection="notes"), "passage m0 is of collection notes"),
    ],
)
def test_passages_that_make_no_collection_are_refused(passages, told):
    store = InMemoryStore()
    with pytest.raises(CorpusInvalid, match=told):
        write(store, passages)
    assert store.objects == {}


class Misbehaving(WordEmbedder):
    def __init__(self, change):
        super().__init__()
        self._change = change

    def _vector(self, text):
        return self._change(super()._vector(text))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda vector: vector[:-1], id="too short"),
        pytest.param(lambda vector: [2 * x for x in vector], id="not of unit length"),
        pytest.param(lambda vector: [float("nan")] * len(vector), id="not a number"),
    ],
)
def test_vectors_that_cannot_be_searched_are_refused(change):
    store = InMemoryStore()
    with pytest.raises(IndexMismatch):
        write(store, embedder=Misbehaving(change))
    assert store.objects == {}


def test_a_model_that_fails_leaves_the_old_version():
    class Busy(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            raise ModelBusy("throttled")

    store = InMemoryStore()
    write(store)
    before = dict(store.objects)
    with pytest.raises(ModelBusy):
        write(store, NEW, embedder=Busy())
    assert store.objects == before


# --- another model ---


def test_the_only_collection_can_be_embedded_with_another_model():
    store, other = InMemoryStore(), WordEmbedder("test.other", 32)
    write(store)
    write(store, embedder=other)
    assert len(other.asked) == len(OLD)
    assert read_current(store).manifest.embedding_model_id == "test.other"


def test_two_models_are_never_mixed_in_a_version():
    store, other = InMemoryStore(), WordEmbedder("test.other", 32)
    write(store)
    before = dict(store.objects)
    with pytest.raises(IndexMismatch, match=r"script are embedded with test\.words"):
        write(store, make_passages(2, collection="notes"), "notes", embedder=other)
    assert store.objects == before


def test_starting_over_leaves_the_other_collections_out():
    store, other = InMemoryStore(), WordEmbedder("test.other", 32)
    write(store)
    notes = make_passages(2, collection="notes")
    written = IndexWriter(store, other).start_over("notes", indexable(notes))
    assert list(content(store)) == ["notes"]
    assert written.version.startswith("000002-")


# --- damage ---


def test_damaged_segments_are_replaced_by_loading_the_collection_again():
    store = InMemoryStore()
    first = write(store)
    (segment,) = store.keys(SEGMENTS_PREFIX)
    store.objects[segment] = store.objects[segment][:-1]
    embedder = WordEmbedder()
    again = write(store, embedder=embedder)
    assert len(embedder.asked) == len(OLD)
    assert content(store) == {"script": expected(OLD)}
    assert again.version != first.version


def test_a_damaged_manifest_stops_a_load_and_starting_over_mends_it():
    store = InMemoryStore()
    write(store)
    store.objects[CURRENT_KEY] = b"{}"
    with pytest.raises(IndexCorrupt):
        write(store)
    IndexWriter(store, WordEmbedder()).start_over("script", indexable(OLD))
    assert content(store) == {"script": expected(OLD)}
    assert read_current(store).manifest.number == 2


# --- writers that die, and races ---


def calls_of_a_load(prepare) -> int:
    store = InMemoryStore()
    prepare(store)
    watched = WatchedStore(store)
    write(watched, NEW)
    return len(watched.calls)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("start", ["empty", "loaded"])
def test_a_writer_killed_at_any_call_leaves_the_old_version_or_the_whole_new_one(when, start):
    def prepare(store):
        if start == "loaded":
            write(store)

    total = calls_of_a_load(prepare)
    assert total >= 4
    seen = []
    for number in range(1, total + 1):
        store = InMemoryStore()
        prepare(store)
        old = content(store)
        with pytest.raises(Killed):
            write(WatchedStore(store, **{when: {number: Killed()}}), NEW)
        found = content(store)
        assert found in (old, {"script": expected(NEW)})
        seen.append(found == old)
        write(store, NEW)  # and the next load is none the worse for it
        assert content(store) == {"script": expected(NEW)}
    assert seen[:-1] == [True] * (total - 1)
    assert seen[-1] == (when == "before")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_store_that_fails_at_any_call_is_told_and_leaves_nothing_half_done(when):
    total = calls_of_a_load(write)
    for number in range(1, total + 1):
        store = InMemoryStore()
        write(store)
        watched = WatchedStore(store, **{when: {number: IndexUnavailable("no answer")}})
        try:
            write(watched, NEW)
        except IndexUnavailable:
            assert content(store) in ({"script": expected(OLD)}, {"script": expected(NEW)})
        else:  # segments that cannot be read are made anew
            assert content(store) == {"script": expected(NEW)}


class Interfering(InMemoryStore):
    """Runs another writer just before the chosen write of the current manifest."""

    def __init__(self, other, times=1):
        super().__init__()
        self._other = other
        self._times = times

    def write(self, key, data, *, replaces):
        if key == CURRENT_KEY and self._times:
            self._times -= 1
            other, self._other = self._other, lambda store: None
            other(self)
            self._other = other
        return super().write(key, data, replaces=replaces)


def interfering(other, *, times=1, start=OLD):
    store = Interfering(lambda _: None, times=0)
    if start:
        write(store, start)
    store._other, store._times = other, times
    return store


@pytest.mark.parametrize("start", [None, OLD])
def test_the_loser_of_a_race_for_a_collection_is_told(start):
    theirs = make_passages(3, start=20)
    store = interfering(lambda s: write(s, theirs), start=start)
    with pytest.raises(PublishConflict):
        write(store, NEW)
    assert content(store) == {"script": expected(theirs)}


@pytest.mark.parametrize("start", [None, OLD])
def test_writers_of_different_collections_do_not_lose_each_others_work(start):
    notes = make_passages(3, collection="notes")
    store = interfering(lambda s: write(s, notes, "notes"), start=start)
    embedder = WordEmbedder()
    written = write(store, NEW, embedder=embedder)
    assert content(store) == {"notes": expected(notes), "script": expected(NEW)}
    assert len(embedder.asked) == written.embedded  # nothing was embedded twice


def test_a_collection_added_meanwhile_with_another_model_is_not_mixed_in():
    other = WordEmbedder("test.other", 32)
    notes = make_passages(3, collection="notes")
    store = interfering(lambda s: write(s, notes, "notes", embedder=other), start=None)
    with pytest.raises(IndexMismatch):
        write(store, NEW)
    assert list(content(store)) == ["notes"]


def test_a_writer_that_is_always_overtaken_gives_up():
    count = iter(range(100))
    store = interfering(lambda s: write(s, make_passages(1, collection="notes", start=next(count)), "notes"), times=100)
    with pytest.raises(PublishConflict, match="meanwhile"):
        write(store, NEW)


def test_a_publication_whose_response_was_lost_is_recognised_when_it_is_refused_again():
    class Echo(InMemoryStore):
        def write(self, key, data, *, replaces):
            etag = super().write(key, data, replaces=replaces)
            if key == CURRENT_KEY:
                return super().write(key, data, replaces=replaces)  # the SDK sends it again: refused
            return etag

    store = Echo()
    assert write(store).published
    assert content(store) == {"script": expected(OLD)}


# --- old versions ---


def test_an_old_version_can_be_rolled_back_to():
    store = InMemoryStore()
    first, second = write(store), write(store, NEW)
    assert published_versions(store) == [first.version, second.version]
    restored = restore(store, first.version)
    assert content(store) == {"script": expected(OLD)}
    assert (restored.number, restored.previous) == (3, second.version)
    assert published_versions(store) == [first.version, second.version, restored.version]


def test_a_version_that_never_was_cannot_be_rolled_back_to():
    store = InMemoryStore()
    with pytest.raises(IndexMissing):
        restore(store, "000001-0123456789abcdef")
    write(store)
    with pytest.raises(IndexMissing):
        restore(store, "000009-0123456789abcdef")


def test_foreign_objects_are_no_versions():
    store = InMemoryStore()
    written = write(store)
    store.objects[VERSIONS_PREFIX + "readme.txt"] = b""
    assert published_versions(store) == [written.version]


def test_a_manifest_that_was_edited_is_refused():
    store = InMemoryStore()
    write(store)
    manifest = read_current(store).manifest
    store.objects[CURRENT_KEY] = replace_count(manifest).to_bytes()
    with pytest.raises(IndexCorrupt, match="not the one that was written"):
        read_current(store)


def replace_count(manifest):
    return manifest.model_copy(update={"segments": (manifest.segments[0].model_copy(update={"count": 5}),)})


def test_a_manifest_of_a_later_format_is_told_apart_from_damage():
    store = InMemoryStore()
    store.objects[CURRENT_KEY] = b'{"formatVersion": 2}'
    with pytest.raises(IndexMismatch, match="format 2"):
        read_current(store)
