"""Writing versions: what is embedded, written and published, and what stays where it is."""

from __future__ import annotations

import pytest

from cicada.corpus.indexable import Indexable, WeightedText
from cicada.errors import (
    CorpusInvalid,
    IndexCorrupt,
    IndexMismatch,
    IndexMissing,
    ModelBusy,
)
from cicada.index import change
from cicada.index import writer as writer_module
from cicada.index.collection_snapshot import read_snapshot
from cicada.index.embedding import EMBED_BATCH
from cicada.index.lexical import ANALYZER_VERSION
from cicada.index.manifest import CURRENT_KEY, SEGMENTS_PREFIX, TOMBSTONES_PREFIX
from cicada.index.versions import must_be_published
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.index_content import content, expected
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passage, make_passages

OLD = make_passages(6)
NEW = [*OLD[:3], OLD[3].model_copy(update={"context": "another context"}), *make_passages(2, start=10)]


def write(store, passages=OLD, collection="script", embedder=None, verify=False, **options):
    writer = IndexWriter(store, embedder or WordEmbedder(), **options)
    return writer.replace(collection, indexable(passages), verify=verify)


@pytest.fixture
def store():
    """An index that holds the script :data:`OLD`."""
    store = InMemoryStore()
    write(store)
    return store


@pytest.fixture
def embedder():
    return WordEmbedder()


def segments_of(store, collection="script"):
    return must_be_published(store).manifest.of_collection(collection)


# --- replacing a collection ---


def test_a_first_load_publishes_the_collection(embedder):
    store = InMemoryStore()
    written = write(store, embedder=embedder)
    assert content(store) == {"script": expected(OLD)}
    assert (written.published, written.passages, written.added, written.embedded) == (True, 6, 6, 6)
    assert must_be_published(store).manifest.version == written.version
    assert written.version.startswith("000001-")


def test_an_unchanged_collection_calls_no_model_and_writes_nothing(store, embedder):
    objects, version = dict(store.objects), must_be_published(store).manifest.version
    again = write(store, embedder=embedder)
    assert embedder.asked == []
    assert store.objects == objects
    assert (again.published, again.version, again.passages, again.segments) == (False, version, 6, 1)


def test_only_what_changed_is_embedded_and_written(store, embedder):
    (before,) = segments_of(store)
    version = must_be_published(store).manifest.version
    written = write(store, NEW, embedder=embedder)
    assert embedder.asked == [passage.context for passage in NEW[3:]]
    assert (written.added, written.removed, written.embedded, written.passages) == (3, 3, 3, 6)
    assert content(store) == {"script": expected(NEW)}
    old, new = segments_of(store)
    assert (old.key, old.count, old.live) == (before.key, 6, 3)
    assert (new.count, new.tombstones) == (3, None)
    assert must_be_published(store).manifest.previous == version


def test_a_passage_is_rewritten_without_a_model_while_its_recipe_stays(store, embedder):
    renamed = [OLD[0].model_copy(update={"text": "Another text."}), *OLD[1:]]
    written = write(store, renamed, embedder=embedder)
    assert (written.published, written.added, written.embedded) == (True, 1, 0)
    assert embedder.asked == []
    assert content(store) == {"script": expected(renamed)}


def test_a_passage_under_another_id_keeps_its_vector(store, embedder):
    moved = [OLD[0].model_copy(update={"id": "m0-moved"}), *OLD[1:]]
    write(store, moved, embedder=embedder)
    assert embedder.asked == []
    assert content(store) == {"script": expected(moved)}


def test_a_passage_that_comes_back_is_not_embedded_again_while_its_row_is_there(store, embedder):
    write(store, OLD[:-1])
    write(store, OLD, embedder=embedder)
    assert embedder.asked == []
    assert content(store) == {"script": expected(OLD)}


def test_a_recipe_that_only_begins_like_another_has_no_vector(store):
    recipe = indexable(OLD)[0].recipe()
    held = read_snapshot(store, must_be_published(store).manifest, "script")
    assert list(held.known_vectors([recipe, recipe[:8] + bytes(8)])) == [recipe]


def test_a_change_of_weights_makes_another_vector(store, embedder):
    heavier = [Indexable(passage, (WeightedText(passage.context, 2.0),)) for passage in OLD]
    assert IndexWriter(store, embedder).replace("script", heavier).embedded == 6


def test_equal_texts_are_embedded_once(embedder):
    write(InMemoryStore(), [passage.model_copy(update={"context": "the same"}) for passage in OLD], embedder=embedder)
    assert embedder.asked == ["the same"]


def test_a_segment_of_which_nothing_is_left_leaves_the_version(store):
    fresh = make_passages(3, start=50)
    write(store, fresh)
    assert content(store) == {"script": expected(fresh)}
    assert len(segments_of(store)) == 1
    assert store.keys(TOMBSTONES_PREFIX) == []


def test_other_collections_keep_their_segments_untouched(store):
    notes = make_passages(4, collection="notes")
    kept = segments_of(store)
    write(store, notes, "notes")
    write(store, notes[:2], "notes")
    assert content(store) == {"script": expected(OLD), "notes": expected(notes[:2])}
    assert segments_of(store) == kept


def test_a_large_collection_becomes_several_segments():
    store, told = InMemoryStore(), []
    written = write(store, segment_rows=4, progress=lambda *step: told.append(step))
    assert written.segments == 2
    assert content(store) == {"script": expected(OLD)}
    assert told == [
        ("embedding", 0, 6),
        ("embedding", 4, 6),
        ("writing", 0, 2),
        ("embedding", 4, 6),
        ("embedding", 6, 6),
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
    assert batches == [EMBED_BATCH, 150 - EMBED_BATCH]


# --- adding and deleting passages ---


def test_added_passages_stand_beside_the_others_or_in_the_place_of_their_ids(store, embedder):
    changed = OLD[2].model_copy(update={"context": "another context"})
    added = [OLD[1], changed, make_passage(40)]
    written = IndexWriter(store, embedder).add("script", indexable(added))
    assert embedder.asked == [changed.context, make_passage(40).context]
    assert (written.added, written.removed, written.passages) == (2, 1, 7)
    assert content(store) == {"script": expected([*OLD[:2], changed, *OLD[3:], make_passage(40)])}


def test_adding_to_nothing_begins_an_index(embedder):
    store = InMemoryStore()
    IndexWriter(store, embedder).add("script", indexable(OLD))
    assert content(store) == {"script": expected(OLD)}


def test_deleted_passages_are_gone_and_the_segment_is_not_written_again(store, embedder):
    before = store.keys(SEGMENTS_PREFIX)
    written = IndexWriter(store, embedder).delete("script", ["m1", "m4", "m99"])
    assert (written.removed, written.passages, written.embedded) == (2, 4, 0)
    assert content(store) == {"script": expected([OLD[0], *OLD[2:4], OLD[5]])}
    assert store.keys(SEGMENTS_PREFIX) == before
    IndexWriter(store, embedder).delete("script", ["m0"])
    assert content(store) == {"script": expected([*OLD[2:4], OLD[5]])}


def test_deleting_all_leaves_no_trace_of_the_collection(store, embedder):
    write(store, make_passages(2, collection="notes"), "notes")
    written = IndexWriter(store, embedder).delete("script", [passage.id for passage in OLD])
    assert (written.passages, written.segments) == (0, 0)
    assert list(content(store)) == ["notes"]


def test_an_id_means_a_passage_of_its_own_collection(store, embedder):
    notes = make_passages(3, collection="notes")
    write(store, notes, "notes")
    IndexWriter(store, embedder).delete("notes", ["m0"])
    IndexWriter(store, embedder).add("notes", indexable([notes[1].model_copy(update={"text": "Changed."})]))
    assert content(store)["script"] == expected(OLD)


@pytest.mark.parametrize(
    "nothing",
    [
        lambda writer: writer.add("script", indexable(OLD[:3])),
        lambda writer: writer.add("script", []),
        lambda writer: writer.delete("script", ["m99"]),
        lambda writer: writer.delete("script", []),
        lambda writer: writer.delete("other", ["m0"]),
    ],
)
def test_what_changes_nothing_publishes_nothing(store, embedder, nothing):
    objects = dict(store.objects)
    assert not nothing(IndexWriter(store, embedder)).published
    assert store.objects == objects


@pytest.mark.parametrize("nothing", [lambda writer: writer.add("script", []), lambda w: w.delete("script", ["m0"])])
def test_nothing_is_no_beginning_of_an_index(embedder, nothing):
    with pytest.raises(IndexMissing):
        nothing(IndexWriter(InMemoryStore(), embedder))


# --- what is refused ---


@pytest.mark.parametrize(
    ("passages", "told"),
    [
        ([OLD[0], OLD[0]], "duplicate passage id m0 in script"),
        (make_passages(1, collection="notes"), "passage m0 belongs to collection notes"),
    ],
)
@pytest.mark.parametrize("method", ["replace", "add", "start_over"])
def test_passages_that_make_no_collection_are_refused(embedder, passages, told, method):
    store = InMemoryStore()
    with pytest.raises(CorpusInvalid, match=told):
        getattr(IndexWriter(store, embedder), method)("script", indexable(passages))
    assert store.objects == {}


@pytest.mark.parametrize("method", ["replace", "start_over"])
def test_a_collection_of_no_passage_is_refused(store, embedder, method):
    before = dict(store.objects)
    with pytest.raises(CorpusInvalid, match="no passage"):
        getattr(IndexWriter(store, embedder), method)("script", [])
    assert store.objects == before


def test_ids_that_cannot_be_told_apart_are_refused(store, embedder, monkeypatch):
    monkeypatch.setattr(change, "id_digest", lambda id: 7)
    with pytest.raises(CorpusInvalid, match="m0 and m1 of script have the same digest"):
        write(store, embedder=embedder)


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


def test_a_model_that_fails_leaves_the_old_version(store):
    class Busy(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            raise ModelBusy("throttled")

    before = dict(store.objects)
    with pytest.raises(ModelBusy):
        write(store, NEW, embedder=Busy())
    assert store.objects == before


# --- another model, other rules of text analysis ---


def test_the_only_collection_can_be_embedded_with_another_model(store):
    other = WordEmbedder("test.other", 32)
    write(store, embedder=other)
    assert len(other.asked) == len(OLD)
    assert must_be_published(store).manifest.embedding_model_id == "test.other"
    assert content(store) == {"script": expected(OLD, other)}


def test_two_models_are_never_mixed_in_a_version(store):
    other = WordEmbedder("test.other", 32)
    before = dict(store.objects)
    notes = indexable(make_passages(2, collection="notes"))
    for attempt in (
        lambda w: w.replace("notes", notes),
        lambda w: w.add("notes", notes),
        lambda w: w.add("script", indexable(OLD[:1])),
        lambda w: w.delete("script", ["m0"]),
    ):
        with pytest.raises(IndexMismatch, match=r"script are embedded with test\.words"):
            attempt(IndexWriter(store, other))
    assert store.objects == before


def test_two_rules_of_text_analysis_are_never_mixed_in_a_version(store, monkeypatch):
    monkeypatch.setattr(writer_module, "ANALYZER_VERSION", ANALYZER_VERSION + 1)
    with pytest.raises(IndexMismatch, match="text analysis"):
        write(store, make_passages(2, collection="notes"), "notes")
    assert write(store).added == len(OLD)
    assert must_be_published(store).manifest.analyzer_version == ANALYZER_VERSION + 1
    assert content(store) == {"script": expected(OLD)}


def test_starting_over_leaves_the_other_collections_out(store):
    other = WordEmbedder("test.other", 32)
    before = must_be_published(store).manifest.version
    notes = make_passages(2, collection="notes")
    written = IndexWriter(store, other).start_over("notes", indexable(notes))
    assert list(content(store)) == ["notes"]
    assert written.version.startswith("000002-")
    assert must_be_published(store).manifest.previous == before


# --- damage ---


def truncated(data):
    return data[:-1]


def lengthened(data):
    return data + b"."


def flipped(share):
    """One bit, so far into the object, and not between two of its sections, which are filled up with zeros."""

    def flip(data):
        at = next(at for at in range(int(share * len(data)), len(data)) if data[at])
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    return flip


def test_a_segment_that_cannot_be_opened_is_replaced_by_loading_the_collection_again(store, embedder):
    (segment,) = store.keys(SEGMENTS_PREFIX)
    store.objects[segment] = flipped(0.1)(store.objects[segment])
    again = write(store, embedder=embedder)
    assert len(embedder.asked) == again.added == len(OLD)
    assert content(store) == {"script": expected(OLD)}


@pytest.mark.parametrize("damage", [truncated, lengthened, flipped(0.1), flipped(0.5), flipped(0.9)])
def test_damage_anywhere_is_found_and_mended_when_all_is_verified(store, embedder, damage):
    (segment,) = store.keys(SEGMENTS_PREFIX)
    assert not write(store, embedder=embedder, verify=True).published
    store.objects[segment] = damage(store.objects[segment])
    assert write(store, embedder=embedder, verify=True).added == len(OLD)
    assert content(store) == {"script": expected(OLD)}


def test_a_sound_segment_is_kept_beside_a_damaged_one(store, embedder):
    IndexWriter(store, WordEmbedder()).add("script", indexable([make_passage(40)]))
    sound, damaged = segments_of(store)
    del store.objects[damaged.key]
    assert write(store, [*OLD, make_passage(40)], embedder=embedder).added == 1
    assert segments_of(store)[0] == sound
    assert content(store) == {"script": expected([*OLD, make_passage(40)])}


def test_single_passages_are_not_changed_where_damage_hides_what_is_there(store, embedder):
    (segment,) = store.keys(SEGMENTS_PREFIX)
    del store.objects[segment]
    with pytest.raises(IndexCorrupt, match="missing"):
        IndexWriter(store, embedder).add("script", indexable(OLD[:1]))
    with pytest.raises(IndexCorrupt, match="missing"):
        IndexWriter(store, embedder).delete("script", ["m0"])


def test_lost_tombstones_make_a_segment_unusable(store, embedder):
    IndexWriter(store, embedder).delete("script", ["m0"])
    (tombstones,) = store.keys(TOMBSTONES_PREFIX)
    del store.objects[tombstones]
    with pytest.raises(IndexCorrupt, match="missing"):
        IndexWriter(store, embedder).delete("script", ["m1"])
    write(store)
    assert content(store) == {"script": expected(OLD)}


def test_a_damaged_manifest_stops_a_load_and_starting_over_mends_it(store):
    store.objects[CURRENT_KEY] = b"{}"
    with pytest.raises(IndexCorrupt):
        write(store)
    IndexWriter(store, WordEmbedder()).start_over("script", indexable(OLD))
    assert content(store) == {"script": expected(OLD)}
    assert must_be_published(store).manifest.number == 2
