"""Old versions: what is listed, what can be rolled back to; and the check of the current one."""

from __future__ import annotations

import pytest

from cicada.errors import IndexCorrupt, IndexMismatch, IndexMissing, PublishConflict
from cicada.index.compaction import compact
from cicada.index.maintenance import check_index
from cicada.index.manifest import CURRENT_KEY, SEGMENTS_PREFIX, TOMBSTONES_PREFIX, VERSIONS_PREFIX, version_key
from cicada.index.versions import history, must_be_published, publish, restore
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.index_changes import published_versions
from tests.support.index_content import content, expected
from tests.support.object_stores import InMemoryStore, Killed, WatchedStore
from tests.support.passages import indexable, make_passage, make_passages

OLD = make_passages(6)
NEW = make_passages(4, start=4)
NEVER = "000009-0123456789abcdef"


def write(store, passages=OLD, collection="script"):
    return IndexWriter(store, WordEmbedder()).replace(collection, indexable(passages)).version


@pytest.fixture
def store():
    return InMemoryStore()


# --- rolling back ---


def test_an_old_version_can_be_rolled_back_to(store):
    first, second = write(store), write(store, NEW)
    assert published_versions(store) == [first, second]
    restored = restore(store, first)
    assert content(store) == {"script": expected(OLD)}
    assert (restored.number, restored.previous) == (3, second)
    assert published_versions(store) == [first, second, restored.version]


def test_a_roll_back_works_across_compaction(store):
    version = write(store)
    for number in range(10):
        version = IndexWriter(store, WordEmbedder()).add("script", indexable([make_passage(20 + number)])).version
    before = content(store)
    assert compact(store) is not None
    write(store, NEW)
    restore(store, version)
    assert content(store) == before


def test_rolling_back_to_the_current_version_publishes_nothing(store):
    version = write(store)
    objects = dict(store.objects)
    assert restore(store, version).version == version
    assert store.objects == objects


@pytest.mark.parametrize("loaded", [False, True])
def test_a_version_that_never_was_cannot_be_rolled_back_to(store, loaded):
    if loaded:
        write(store)
    with pytest.raises(IndexMissing):
        restore(store, NEVER)


def test_the_manifest_of_a_writer_that_lost_is_no_version(store):
    write(store)
    watched = WatchedStore(store)
    IndexWriter(watched, WordEmbedder()).replace("notes", indexable(make_passages(2, collection="notes")))
    calls = len(watched.calls)
    store = InMemoryStore()
    first = write(store)
    with pytest.raises(Killed):  # with its manifest written, and not published
        IndexWriter(WatchedStore(store, before={calls: Killed()}), WordEmbedder()).replace(
            "notes", indexable(make_passages(2, collection="notes"))
        )
    (lost,) = {key.removeprefix(VERSIONS_PREFIX).removesuffix(".json") for key in store.keys(VERSIONS_PREFIX)} - {first}
    second = write(store, NEW)
    assert published_versions(store) == [first, second]
    with pytest.raises(IndexMissing):
        restore(store, lost)


def test_versions_are_followed_from_one_to_the_one_before_it(store):
    first, second, third = write(store), write(store, NEW), write(store, make_passages(2))
    for lost in ("000002-0000000000000000", "000002-ffffffffffffffff", "000009-ffffffffffffffff"):
        store.objects[version_key(lost)] = store.objects[version_key(second)]
    assert published_versions(store) == [first, second, third]


@pytest.mark.parametrize("prefix", [SEGMENTS_PREFIX, TOMBSTONES_PREFIX])
def test_a_version_that_lacks_an_object_cannot_be_rolled_back_to(store, prefix):
    write(store)
    IndexWriter(store, WordEmbedder()).delete("script", ["m0"])
    version = must_be_published(store).manifest.version
    now = write(store, NEW)
    for key in store.keys(prefix):
        store.delete(key)
    with pytest.raises(IndexCorrupt, match="is missing"):
        restore(store, version)
    assert must_be_published(store).manifest.version == now


def test_a_damaged_version_cannot_be_rolled_back_to_but_those_before_it_can(store):
    first, second, third = write(store), write(store, NEW), write(store, make_passages(2))
    store.objects[version_key(second)] = b"{}"
    with pytest.raises(IndexCorrupt):
        restore(store, second)
    store.objects[version_key(second)] = store.objects[version_key(third)]
    with pytest.raises(IndexCorrupt, match="contains version"):
        restore(store, second)
    del store.objects[version_key(second)]
    assert published_versions(store) == [first, third]
    restore(store, first)
    assert content(store) == {"script": expected(OLD)}


@pytest.mark.parametrize("damage", ["damaged", "gone"])
def test_a_roll_back_mends_the_current_manifest(store, damage):
    first, second = write(store), write(store, NEW)
    if damage == "gone":
        store.delete(CURRENT_KEY)
    else:
        store.objects[CURRENT_KEY] = store.objects[CURRENT_KEY][:-20]
    mended = restore(store, second)
    assert content(store) == {"script": expected(NEW)}
    assert mended.number == 3
    assert published_versions(store)[:2] == [first, second]


def test_where_no_version_can_be_read_there_is_none_to_roll_back_to(store):
    version = write(store)
    store.objects[CURRENT_KEY] = store.objects[version_key(version)] = b"{"
    with pytest.raises(IndexCorrupt):
        restore(store, version)


def test_a_version_of_the_layout_before_this_one_is_listed_and_cannot_be_rolled_back_to(store):
    old = "000001-00112233445566aa"
    store.objects[version_key(old)] = b'{"formatVersion": 1, "segments": []}'
    store.objects[CURRENT_KEY] = store.objects[version_key(old)]
    new = IndexWriter(store, WordEmbedder()).start_over("script", indexable(OLD)).version
    assert published_versions(store) == [old, new]
    with pytest.raises(IndexMismatch):
        restore(store, old)


def test_a_roll_back_that_is_overtaken_is_told(store):
    first, _ = write(store), write(store, NEW)

    class Overtaken(WatchedStore):
        def write(self, key, data, *, replaces):
            if key == CURRENT_KEY:
                write(store, make_passages(2))
            return super().write(key, data, replaces=replaces)

    with pytest.raises(PublishConflict):
        restore(Overtaken(store), first)
    assert content(store) == {"script": expected(make_passages(2))}


def test_foreign_objects_are_no_versions(store):
    version = write(store)
    store.objects[VERSIONS_PREFIX + "readme.txt"] = b""
    assert published_versions(store) == [version]


def test_history_follows_a_start_over(store):
    first = write(store)
    store.objects[CURRENT_KEY] = b"damaged"
    second = IndexWriter(store, WordEmbedder()).start_over("script", indexable(NEW)).version
    assert [past.version for past in history(store, must_be_published(store).manifest)] == [second, first]
    restore(store, first)
    assert content(store) == {"script": expected(OLD)}


def test_nothing_published_has_no_versions(store):
    assert published_versions(store) == []


# --- checking ---


@pytest.fixture
def checked(store):
    """An index with two collections and tombstones."""
    write(store)
    IndexWriter(store, WordEmbedder()).delete("script", ["m0"])
    write(store, make_passages(3, collection="notes"), "notes")
    return store


def test_a_sound_index_has_no_damage(checked):
    told = []
    found = check_index(checked, progress=lambda *step: told.append(step))
    assert (found.version, found.damaged) == (must_be_published(checked).manifest.version, ())
    manifest = must_be_published(checked).manifest
    needed = {CURRENT_KEY, version_key(manifest.version)}
    for entry in manifest.segments:
        needed |= {entry.key, *((entry.tombstones.key,) if entry.tombstones else ())}
    assert found.objects == len(needed)
    assert found.bytes == sum(len(checked.objects[key]) for key in needed)
    assert told == [("checking", 0, 2), ("checking", 1, 2), ("checking", 2, 2)]


def flipped(data, share):
    """One bit, so far into the object, and not between two of its sections, which are filled up with zeros."""
    at = next(at for at in range(int(share * len(data)), len(data)) if data[at])
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.7, 0.9])
def test_a_changed_bit_in_a_segment_is_found_and_named(checked, share):
    key = must_be_published(checked).manifest.of_collection("notes")[0].key
    checked.objects[key] = flipped(checked.objects[key], share)
    (damage,) = check_index(checked).damaged
    assert (damage.key, damage.collection) == (key, "notes")
    assert damage.reason


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b".", lambda data: b""])
def test_another_length_is_found(checked, change):
    key = must_be_published(checked).manifest.of_collection("script")[0].key
    checked.objects[key] = change(checked.objects[key])
    assert [damage.key for damage in check_index(checked).damaged] == [key]


@pytest.mark.parametrize("prefix", [SEGMENTS_PREFIX, TOMBSTONES_PREFIX])
def test_a_missing_object_is_found(checked, prefix):
    manifest = must_be_published(checked).manifest
    script = manifest.of_collection("script")[0]
    assert script.tombstones is not None
    checked.delete(script.key if prefix == SEGMENTS_PREFIX else script.tombstones.key)
    (damage,) = check_index(checked).damaged
    assert damage.collection == "script"
    assert "is missing" in damage.reason


def test_a_segment_in_the_place_of_another_is_found(checked):
    script, notes = must_be_published(checked).manifest.segments
    checked.objects[script.key] = checked.objects[notes.key]
    assert [damage.key for damage in check_index(checked).damaged] == [script.key]


@pytest.mark.parametrize("change", [lambda data: None, lambda data: b"{}", lambda data: data.replace(b"m", b"n", 1)])
def test_a_version_that_a_roll_back_could_not_read_is_found(checked, change):
    key = version_key(must_be_published(checked).manifest.version)
    changed = change(checked.objects[key])
    if changed is None:
        checked.delete(key)
    else:
        checked.objects[key] = changed
    assert [(damage.key, damage.collection) for damage in check_index(checked).damaged] == [(key, None)]


def test_a_passage_that_stands_in_two_segments_is_found(checked):
    twice = InMemoryStore()
    write(twice, OLD[:2])
    current, other = must_be_published(checked), must_be_published(twice)
    (entry,) = other.manifest.segments
    checked.objects[entry.key] = twice.objects[entry.key]
    manifest = current.manifest.successor(
        created_at=other.manifest.created_at, segments=(*current.manifest.segments, entry)
    )
    publish(checked, manifest, replaces=current.etag)
    (damage,) = check_index(checked).damaged
    assert damage.key == entry.key
    assert "another segment" in damage.reason


def test_a_segment_of_another_model_is_found(checked):
    current = must_be_published(checked)
    other = current.manifest.derive(embedding_model_id="test.other", allow_partial=True)
    publish(checked, other, replaces=current.etag)
    assert [damage.key for damage in check_index(checked).damaged] == [entry.key for entry in other.segments]


def test_nothing_published_cannot_be_checked(store):
    with pytest.raises(IndexMissing):
        check_index(store)
