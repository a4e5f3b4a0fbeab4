"""Compaction: what is merged, that nothing else changes by it, and what happens beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cicada.errors import IndexCorrupt, PublishConflict
from cicada.index import compaction
from cicada.index.compaction import MIN_DELETED_ROWS, TIER_SEGMENTS, Compacted, compact, compaction_due
from cicada.index.manifest import CURRENT_KEY, SEGMENTS_PREFIX, Manifest, SegmentEntry, TombstonesEntry
from cicada.index.ports import ObjectStore
from cicada.index.segment import SegmentFile
from cicada.index.versions import must_be_published, restore, utc_now
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.index_content import content
from tests.support.object_stores import InMemoryStore, Killed, WatchedStore
from tests.support.passages import indexable, make_passage, make_passages

FEW = TIER_SEGMENTS + 1


def add(store, *passages):
    return IndexWriter(store, WordEmbedder()).add(passages[0].collection, indexable(passages))


def delete(store, *numbers):
    return IndexWriter(store, WordEmbedder()).delete("script", [f"m{number}" for number in numbers])


def compacted(store: ObjectStore, **options: Any) -> Compacted:
    done = compact(store, **options)
    assert done is not None
    return done


def segments(store, collection="script"):
    return must_be_published(store).manifest.of_collection(collection)


@pytest.fixture
def store():
    """A script of as many segments of two passages as are just too many."""
    store = InMemoryStore()
    for number in range(FEW):
        add(store, *make_passages(2, start=2 * number))
    return store


# --- what is due ---


def manifest(*segments):
    """A version of segments of ``(live, deleted)`` rows, or of such with a collection's name before."""
    entries = []
    for number, segment in enumerate(segments):
        collection, live, deleted = segment if len(segment) == 3 else ("script", *segment)
        tombstones = TombstonesEntry(key="t", bytes=9, count=deleted, sha256="0" * 64) if deleted else None
        entries.append(
            SegmentEntry(
                key=f"{SEGMENTS_PREFIX}{number}",
                collection=collection,
                count=live + deleted,
                live=live,
                bytes=1,
                head_bytes=1,
                sha256="0" * 64,
                tombstones=tombstones,
            )
        )
    return Manifest.create(
        number=1,
        created_at=utc_now(),
        embedding_model_id="m",
        dimensions=1,
        analyzer_version=1,
        allow_partial=False,
        segments=tuple(entries),
        previous=None,
    )


@pytest.mark.parametrize(
    ("segments", "due"),
    [
        pytest.param([], False, id="nothing"),
        pytest.param([(10, 0)] * TIER_SEGMENTS, False, id="a tier that is full"),
        pytest.param([(10, 0)] * FEW, True, id="one more"),
        pytest.param([(10, 0)] * TIER_SEGMENTS + [(5_000, 0)] * TIER_SEGMENTS, False, id="two tiers that are full"),
        pytest.param([(5_000, 0)] * FEW, True, id="a higher tier with one more"),
        pytest.param([("a", 10, 0)] * 5 + [("b", 10, 0)] * 5, False, id="collections are not merged"),
        pytest.param([(200_000, 0)] * 20, False, id="segments too large to be merged"),
        pytest.param([(900, MIN_DELETED_ROWS)], False, id="few deleted"),
        pytest.param([(300, MIN_DELETED_ROWS)], True, id="many deleted"),
        pytest.param([(MIN_DELETED_ROWS // 2, MIN_DELETED_ROWS - 1)], False, id="many of hardly any"),
        pytest.param([(200_000, 60_000)], True, id="a large segment of which many are deleted"),
    ],
)
def test_what_is_due(segments, due):
    assert compaction_due(manifest(*segments)) == due


def test_a_collection_is_looked_at_alone_where_it_is_named():
    version = manifest(*[("notes", 10, 0)] * FEW, ("script", 10, 0))
    assert compaction_due(version, "notes")
    assert not compaction_due(version, "script")
    assert not compaction_due(version, "other")


# --- merging ---


def test_small_segments_become_one_with_the_same_live_content(store):
    before, old = content(store), must_be_published(store).manifest
    told: list[tuple[object, ...]] = []
    done = compacted(store, progress=lambda *step: told.append(step))
    assert (done.merged, done.segments, done.dropped) == (FEW, 1, 0)
    assert told == [("compacting", 0, 1), ("compacting", 1, 1)]
    assert content(store) == before
    (merged,) = segments(store)
    assert (merged.count, merged.live, merged.tombstones) == (2 * FEW, 2 * FEW, None)
    manifest = must_be_published(store).manifest
    assert (manifest.number, manifest.previous, manifest.version) == (old.number + 1, old.version, done.version)


def test_passages_keep_their_order(store):
    def order():
        found = []
        for entry in segments(store):
            found += [json.loads(line)["id"] for line in SegmentFile.open(store, entry).contents().lines]
        return found

    before = order()
    compact(store)
    assert order() == before


def test_deleted_rows_are_left_behind(store):
    delete(store, 0, 3)
    before = content(store)
    assert compacted(store).dropped == 2
    assert content(store) == before
    (merged,) = segments(store)
    assert merged.count == 2 * FEW - 2


def test_a_segment_of_which_many_rows_are_deleted_is_written_again_alone(store):
    store = InMemoryStore()
    add(store, *make_passages(3 * MIN_DELETED_ROWS))
    add(store, make_passage(1_000))
    delete(store, *range(MIN_DELETED_ROWS))
    before, (worn, other) = content(store), segments(store)
    done = compacted(store)
    assert (done.merged, done.segments, done.dropped) == (1, 1, MIN_DELETED_ROWS)
    assert content(store) == before
    anew, same = segments(store)
    assert (same, anew.count) == (other, worn.live)


def test_nothing_is_done_when_nothing_is_due(store):
    compact(store)
    objects = dict(store.objects)
    assert compact(store) is None
    assert store.objects == objects
    assert compact(InMemoryStore()) is None


def test_other_collections_stay_as_they_are(store):
    for number in range(FEW):
        add(store, make_passage(number, collection="notes"))
    before = content(store)
    script = segments(store)
    assert compacted(store, collection="notes").merged == FEW
    assert (segments(store), len(segments(store, "notes"))) == (script, 1)
    assert compacted(store).merged == FEW
    assert content(store) == before


def test_a_merged_segment_is_bounded(store):
    before = content(store)
    assert compacted(store, segment_rows=6).segments == 3
    assert content(store) == before
    assert [entry.count for entry in segments(store)] == [6, 6, 6]


def test_a_segment_that_fits_no_other_is_not_written_again(store):
    *_, last = segments(store)
    assert compacted(store, segment_rows=4).merged == FEW - 1
    assert segments(store)[-1] == last


def test_a_merge_goes_on_over_segments_that_were_merged_before(store):
    compact(store)
    for number in range(FEW):
        add(store, make_passage(100 + number))
    before = content(store)
    assert compacted(store).merged == FEW + 1
    assert content(store) == before


def test_a_damaged_segment_is_not_merged(store):
    key = segments(store)[0].key
    store.objects[key] = store.objects[key][:-200]
    version = must_be_published(store).manifest.version
    with pytest.raises(IndexCorrupt):
        compact(store)
    assert must_be_published(store).manifest.version == version


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_compaction_killed_at_any_call_changes_no_content(monkeypatch, when):
    monkeypatch.setattr(compaction, "TIER_SEGMENTS", 1)
    store = InMemoryStore()
    for number in range(2):
        add(store, *make_passages(2, start=2 * number))
    delete(store, 0)
    objects, before = dict(store.objects), content(store)
    watched = WatchedStore(store)
    compact(watched)
    for number in range(1, len(watched.calls) + 1):
        store.objects = dict(objects)
        killed: dict[int, BaseException] = {number: Killed()}
        with pytest.raises(Killed):
            compact(WatchedStore(store, **{when: killed}))
        assert content(store) == before
        if (number, when) != (len(watched.calls), "after"):
            assert compact(store) is not None
        assert content(store) == before


# --- beside others ---


class Meanwhile(WatchedStore):
    """Has others work just before this writer publishes, once."""

    def __init__(self, store, others):
        super().__init__(store)
        self._others = others
        self._quiet = store

    def write(self, key, data, *, replaces):
        if key == CURRENT_KEY and (others := self._others):
            self._others = None
            others(self._quiet)
        return super().write(key, data, replaces=replaces)


def both(store, others):
    """The content that the others alone would leave."""
    alone = InMemoryStore()
    alone.objects = dict(store.objects)
    others(alone)
    return content(alone)


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(lambda s: add(s, make_passage(200)), id="a passage is added"),
        pytest.param(lambda s: add(s, make_passage(0, context="Other words.")), id="a passage is changed"),
        pytest.param(lambda s: delete(s, 1, 4), id="passages are deleted"),
        pytest.param(lambda s: add(s, *make_passages(3, collection="notes")), id="another collection is added"),
    ],
)
def test_what_others_do_meanwhile_is_kept(store, others):
    due = both(store, others)
    done = compacted(Meanwhile(store, others))
    assert content(store) == due
    assert done.version == must_be_published(store).manifest.version
    assert done.segments == 1


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(compact, id="the same is merged"),
        pytest.param(lambda s: delete(s, 0, 1), id="a whole segment is deleted"),
        pytest.param(
            lambda s: IndexWriter(s, WordEmbedder()).start_over("script", indexable(make_passages(2))),
            id="started over",
        ),
    ],
)
def test_a_merge_of_segments_that_are_gone_is_given_up(store, others):
    due = both(store, others)
    with pytest.raises(PublishConflict, match="while they were being merged"):
        compact(Meanwhile(store, others))
    assert content(store) == due


def test_rows_that_a_roll_back_brings_back_are_not_lost(store):
    whole = must_be_published(store).manifest.version
    delete(store, 0)
    with pytest.raises(PublishConflict, match="were restored"):
        compact(Meanwhile(store, lambda s: restore(s, whole)))
    assert "m0" in content(store)["script"]
