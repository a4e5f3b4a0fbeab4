"""Publishing: writers that die, stores that fail, and writers that meet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cicada.errors import IndexMismatch, IndexMissing, IndexUnavailable, PublishConflict
from cicada.index.compaction import compact
from cicada.index.manifest import CURRENT_KEY
from cicada.index.ports import ObjectMissing, PreconditionFailed, put
from cicada.index.versions import MAX_WRITE_S, keep, must_be_published, set_allow_partial
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.index_changes import published_versions
from tests.support.index_content import content, expected
from tests.support.object_stores import InMemoryStore, Killed, WatchedStore
from tests.support.passages import indexable, make_passage, make_passages

OLD = make_passages(6)
NEW = [*OLD[:3], OLD[3].model_copy(update={"context": "another context"}), *make_passages(2, start=10)]
CHANGED = OLD[1].model_copy(update={"context": "another context"})
NOTES = make_passages(3, collection="notes")


def write(store, passages=OLD, collection="script", embedder=None, **options):
    return IndexWriter(store, embedder or WordEmbedder(), **options).replace(collection, indexable(passages))


def add(store, *passages):
    return IndexWriter(store, WordEmbedder()).add(passages[0].collection, indexable(passages))


def delete(store, *ids):
    return IndexWriter(store, WordEmbedder()).delete("script", ids)


def loaded():
    store = InMemoryStore()
    write(store)
    return store


# --- writers that die, and stores that fail ---

WORK = {
    "first load": (InMemoryStore, write, expected(OLD)),
    "replace": (loaded, lambda store: write(store, NEW), expected(NEW)),
    "add": (loaded, lambda store: add(store, CHANGED, make_passage(30)), None),
    "delete": (loaded, lambda store: delete(store, "m1", "m2"), expected([OLD[0], *OLD[3:]])),
}
WORK["add"] = (*WORK["add"][:2], expected([OLD[0], CHANGED, *OLD[2:], make_passage(30)]))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("work", WORK)
def test_a_writer_killed_at_any_call_leaves_the_old_version_or_the_whole_new_one(work, when):
    prepare, change, changed = WORK[work]
    watched = WatchedStore(prepare())
    change(watched)
    total = len(watched.calls)
    assert total >= 4
    seen = []
    for number in range(1, total + 1):
        store = prepare()
        old = content(store)
        killed: dict[str, dict[int, BaseException]] = {when: {number: Killed()}}
        with pytest.raises(Killed):
            change(WatchedStore(store, **killed))
        found = content(store)
        assert found in (old, {"script": changed})
        seen.append(found == old)
        change(store)  # and the next writer is none the worse for it
        assert content(store) == {"script": changed}
    assert seen == [True] * (total - 1) + [when == "before"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("work", WORK)
def test_a_store_that_fails_at_any_call_is_told_and_leaves_nothing_half_done(work, when):
    prepare, change, changed = WORK[work]
    watched = WatchedStore(prepare())
    change(watched)
    for number in range(1, len(watched.calls) + 1):
        store = prepare()
        old = content(store)
        failing: dict[str, dict[int, BaseException]] = {when: {number: IndexUnavailable("no answer")}}
        with pytest.raises(IndexUnavailable):
            change(WatchedStore(store, **failing))
        assert content(store) in (old, {"script": changed})


def test_writes_whose_responses_are_lost_are_recognised_when_they_are_refused_again():
    class Lossy(InMemoryStore):
        def write(self, key, data, *, replaces):
            super().write(key, data, replaces=replaces)
            raise PreconditionFailed(key)  # the SDK has sent it again

    store = Lossy()
    assert write(store).published
    assert add(store, CHANGED).published
    assert delete(store, "m5").published
    assert content(store) == {"script": expected([OLD[0], CHANGED, *OLD[2:5]])}
    assert len(published_versions(store)) == 3


def test_a_publication_that_was_built_upon_before_its_response_came_is_recognised():
    class BuiltUpon(InMemoryStore):
        def write(self, key, data, *, replaces):
            etag = super().write(key, data, replaces=replaces)
            if key != CURRENT_KEY or len(published_versions(self)) > 1:
                return etag
            write(self, NOTES, "notes")
            raise PreconditionFailed(key)

    store = BuiltUpon()
    assert write(store).published
    assert content(store) == {"script": expected(OLD), "notes": expected(NOTES)}
    assert len(published_versions(store)) == 2


def test_an_object_in_the_place_of_a_new_one_is_told():
    store = InMemoryStore()
    store.objects["k"] = b"theirs"
    with pytest.raises(IndexUnavailable, match="a different object"):
        put(store, "k", b"ours")


def test_a_damaged_object_in_the_place_of_its_content_is_replaced():
    store = InMemoryStore()
    store.objects["k"] = b"damaged"
    keep(store, "k", b"sound")
    keep(store, "k", b"sound")
    assert store.objects["k"] == b"sound"


def test_an_object_that_others_keep_changing_is_given_up():
    class Contested(InMemoryStore):
        def write(self, key, data, *, replaces):
            raise PreconditionFailed(key)

        def read(self, key):
            raise ObjectMissing(key)

    with pytest.raises(PublishConflict):
        keep(Contested(), "k", b"ours")
    with pytest.raises(IndexUnavailable):
        put(Contested(), "k", b"ours")


def test_what_was_written_too_long_ago_to_be_there_for_certain_is_not_published():
    clock = [datetime(2026, 11, 21, tzinfo=UTC)]

    class Slow(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            clock[0] += timedelta(seconds=MAX_WRITE_S + 1)
            return super().embed(texts, time_budget_s=time_budget_s)

    store = loaded()
    for method in ("replace", "start_over"):
        with pytest.raises(PublishConflict, match="12 hours"):
            getattr(IndexWriter(store, Slow(), now=lambda: clock[0]), method)("script", indexable(NEW))
    assert content(store) == {"script": expected(OLD)}


# --- writers that meet ---


class Interfering(InMemoryStore):
    """Runs another writer just before the chosen number of writes of the current manifest."""

    def __init__(self):
        super().__init__()
        self.other = None
        self.times = 0

    def write(self, key, data, *, replaces):
        if key == CURRENT_KEY and self.times and self.other:
            self.times -= 1
            other, self.other = self.other, None
            other(self)
            self.other = other
        return super().write(key, data, replaces=replaces)


def interfering(other, *, times=1, start=OLD):
    store = Interfering()
    if start:
        write(store, start)
    store.other, store.times = other, times
    return store


@pytest.mark.parametrize("start", [None, OLD])
def test_the_loser_of_a_race_for_a_whole_collection_is_told(start):
    theirs = make_passages(3, start=20)
    store = interfering(lambda s: write(s, theirs), start=start)
    with pytest.raises(PublishConflict, match="script"):
        write(store, NEW)
    assert content(store) == {"script": expected(theirs)}


@pytest.mark.parametrize("theirs", [lambda s: add(s, make_passage(30)), lambda s: delete(s, "m5")])
def test_a_collection_is_not_replaced_over_passages_that_came_or_went_meanwhile(theirs):
    store = interfering(theirs)
    with pytest.raises(PublishConflict):
        write(store, NEW)


@pytest.mark.parametrize("start", [None, OLD])
def test_writers_of_different_collections_do_not_lose_each_others_work(start):
    store = interfering(lambda s: write(s, NOTES, "notes"), start=start)
    embedder = WordEmbedder()
    written = write(store, NEW, embedder=embedder)
    assert content(store) == {"notes": expected(NOTES), "script": expected(NEW)}
    assert len(embedder.asked) == written.embedded  # nothing was embedded twice


@pytest.mark.parametrize(
    ("theirs", "ours", "outcome"),
    [
        (lambda s: add(s, make_passage(30)), lambda s: add(s, CHANGED), [OLD[0], CHANGED, *OLD[2:], make_passage(30)]),
        (lambda s: delete(s, "m5"), lambda s: add(s, CHANGED), [OLD[0], CHANGED, *OLD[2:5]]),
        (lambda s: add(s, CHANGED), lambda s: delete(s, "m5"), [OLD[0], CHANGED, *OLD[2:5]]),
        (lambda s: delete(s, "m1"), lambda s: delete(s, "m5"), [OLD[0], *OLD[2:5]]),
        (lambda s: delete(s, *[f"m{n}" for n in range(5)]), lambda s: delete(s, "m5"), None),
    ],
)
def test_writers_of_different_passages_do_not_lose_each_others_work(theirs, ours, outcome):
    store = interfering(theirs)
    ours(store)
    assert content(store) == ({"script": expected(outcome)} if outcome else {})


def test_passages_that_are_added_to_nothing_by_two_are_all_there():
    store = interfering(lambda s: add(s, *OLD[:3]), start=None)
    add(store, *OLD[3:])
    assert content(store) == {"script": expected(OLD)}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (lambda s: add(s, CHANGED), lambda s: delete(s, "m1")),
        (lambda s: delete(s, "m1"), lambda s: add(s, CHANGED)),
        (lambda s: delete(s, "m1"), lambda s: add(s, OLD[1], make_passage(30))),
        (lambda s: add(s, make_passage(30)), lambda s: add(s, make_passage(30, context="Other words."))),
        (lambda s: write(s, NEW), lambda s: add(s, OLD[3], make_passage(30))),
    ],
)
def test_of_two_changes_to_one_passage_the_second_is_told(theirs, ours):
    store, alone = interfering(theirs), loaded()
    with pytest.raises(PublishConflict, match="script"):
        ours(store)
    theirs(alone)
    assert content(store) == content(alone)


def many_small_segments(store):
    for number in range(10):
        add(store, make_passage(100 + number))


@pytest.mark.parametrize(
    "ours",
    [lambda s: write(s, NEW), lambda s: add(s, CHANGED, make_passage(100)), lambda s: delete(s, "m1", "m103")],
)
def test_a_writer_goes_on_upon_a_compaction_of_its_collection(ours):
    store, quiet = Interfering(), InMemoryStore()
    for each in (store, quiet):
        write(each)
        many_small_segments(each)
    store.other, store.times = compact, 1
    ours(store)
    ours(quiet)
    assert store.times == 0
    assert content(store) == content(quiet)


def test_a_collection_added_meanwhile_with_another_model_is_not_mixed_in():
    other = WordEmbedder("test.other", 32)
    store = interfering(lambda s: write(s, NOTES, "notes", embedder=other), start=None)
    with pytest.raises(IndexMismatch):
        write(store, NEW)
    assert list(content(store)) == ["notes"]


def test_a_damaged_collection_is_not_mended_over_somebody_elses_change():
    def theirs(store):
        IndexWriter(store, WordEmbedder()).start_over("script", indexable(NEW))

    store = interfering(theirs)
    (segment,) = store.keys("index/segments/")
    del store.objects[segment]
    with pytest.raises(PublishConflict):
        write(store)


def test_a_collection_is_not_embedded_anew_over_somebody_elses_change():
    store = interfering(lambda s: add(s, make_passage(30)))
    with pytest.raises(PublishConflict, match="script"):
        write(store, embedder=WordEmbedder("test.other", 32))
    assert content(store) == {"script": expected([*OLD, make_passage(30)])}


def test_an_index_that_is_gone_when_its_successor_is_published_is_not_brought_back():
    store = interfering(lambda s: s.delete(CURRENT_KEY))
    with pytest.raises(PublishConflict):
        add(store, CHANGED)


def test_an_index_is_not_started_over_upon_somebody_elses_work():
    store = interfering(lambda s: write(s, NOTES, "notes"))
    with pytest.raises(PublishConflict):
        IndexWriter(store, WordEmbedder()).start_over("script", indexable(NEW))
    assert content(store) == {"script": expected(OLD), "notes": expected(NOTES)}


def test_a_writer_that_is_always_overtaken_gives_up():
    count = iter(range(100))
    store = interfering(lambda s: write(s, make_passages(1, collection="notes", start=next(count)), "notes"), times=100)
    with pytest.raises(PublishConflict, match="concurrently"):
        write(store, NEW)


# --- whether readers may do without a segment ---


def test_readers_may_answer_from_the_rest_when_a_version_says_so_and_so_do_those_that_follow():
    store = loaded()
    assert not must_be_published(store).manifest.allow_partial
    manifest = set_allow_partial(store, True)
    assert (manifest.number, must_be_published(store).manifest) == (2, manifest)
    assert set_allow_partial(store, True) == manifest
    add(store, CHANGED)
    assert must_be_published(store).manifest.allow_partial
    assert not set_allow_partial(store, False).allow_partial
    assert content(store) == {"script": expected([OLD[0], CHANGED, *OLD[2:]])}


def test_that_is_said_upon_what_others_publish_meanwhile():
    store = interfering(lambda s: write(s, NOTES, "notes"))
    assert set_allow_partial(store, True).collections == ("script", "notes")
    with pytest.raises(IndexMissing):
        set_allow_partial(InMemoryStore(), True)
