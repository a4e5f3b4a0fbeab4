"""Collecting garbage: what goes, what stays, and that whoever is at work or holds an old version is not hurt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cicada.errors import IndexCorrupt, IndexMissing, PublishConflict
from cicada.index.compaction import compact
from cicada.index.maintenance import collect_garbage
from cicada.index.manifest import CURRENT_KEY, SEGMENTS_PREFIX, VERSIONS_PREFIX, parse_manifest, version_key
from cicada.index.versions import GRACE_S, must_be_published, restore
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.index_changes import published_versions
from tests.support.index_content import content, content_of, expected
from tests.support.object_stores import InMemoryStore, Killed, WatchedStore
from tests.support.passages import indexable, make_passage, make_passages

OLD = make_passages(6)
HOUR, DAY = timedelta(hours=1), timedelta(seconds=GRACE_S)


class Clock:
    def __init__(self):
        self.time = datetime(2026, 11, 21, tzinfo=UTC)

    def __call__(self):
        return self.time

    def pass_by(self, time):
        self.time += time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(clock):
    return InMemoryStore(clock)


def write(store, clock, passages=OLD, collection="script"):
    writer = IndexWriter(store, WordEmbedder(), now=clock)
    return writer.replace(collection, indexable(passages)).version


def collect(store, clock, **options):
    return collect_garbage(store, now=clock, **options)


def needed(store, versions):
    """The keys of all that these versions are made of."""
    found = {CURRENT_KEY}
    for version in versions:
        found.add(version_key(version))
        for entry in parse_manifest(store.objects[version_key(version)]).segments:
            found |= {entry.key, *((entry.tombstones.key,) if entry.tombstones else ())}
    return found


def many_versions(store, clock, count=10):
    """So many versions, each with a passage changed; all older than the grace in the end."""
    versions = [write(store, clock)]
    for number in range(count - 1):
        clock.pass_by(HOUR)
        versions.append(write(store, clock, [*OLD[:5], make_passage(5, context=f"Context {number}.")]))
    clock.pass_by(DAY + HOUR)
    return versions


def test_what_no_kept_version_needs_is_deleted(store, clock):
    versions = many_versions(store, clock)
    before, size = content(store), sum(map(len, store.objects.values()))
    told = []
    done = collect(store, clock, keep_versions=3, progress=lambda *step: told.append(step))
    assert published_versions(store) == versions[-3:]
    assert set(store.objects) == needed(store, versions[-3:])
    assert content(store) == before
    assert done.versions == 3
    assert abs(size - sum(map(len, store.objects.values())) - done.bytes) < 10  # the current manifest tells it
    assert told[0] == ("collecting", 0, done.objects)
    assert told[-1] == ("collecting", done.objects, done.objects)


def test_all_kept_versions_can_be_rolled_back_to_and_no_other(store, clock):
    versions = many_versions(store, clock)
    contents = [content_of(store, parse_manifest(store.objects[version_key(version)])) for version in versions]
    collect(store, clock, keep_versions=4)
    for version, then in zip(versions[-4:], contents[-4:], strict=True):
        restore(store, version, now=clock)
        assert content(store) == then
    with pytest.raises(IndexMissing):
        restore(store, versions[0], now=clock)


def test_collecting_again_deletes_nothing(store, clock):
    many_versions(store, clock)
    collect(store, clock, keep_versions=3)
    objects = dict(store.objects)
    assert collect(store, clock, keep_versions=3).objects == 0
    assert store.objects == objects


def test_a_version_that_was_current_within_the_grace_stays_for_whoever_holds_it(store, clock):
    first = write(store, clock)
    clock.pass_by(10 * DAY)
    for number in range(20):  # the first is 20 versions old within the hour
        write(store, clock, [make_passage(50 + number)])
    clock.pass_by(HOUR)
    assert collect(store, clock, keep_versions=2).objects == 0
    assert content_of(store, parse_manifest(store.objects[version_key(first)])) == {"script": expected(OLD)}
    clock.pass_by(DAY)
    assert collect(store, clock, keep_versions=2).versions == 2
    assert version_key(first) not in store.objects


def test_what_a_writer_has_just_written_stays_until_it_is_published(store, clock):
    write(store, clock)
    clock.pass_by(2 * DAY)

    class Collecting(WatchedStore):
        def write(self, key, data, *, replaces):
            if key == CURRENT_KEY:
                clock.pass_by(HOUR)
                collect(store, clock, keep_versions=1)
            return super().write(key, data, replaces=replaces)

    write(Collecting(store), clock, make_passages(3, start=20))
    assert content(store) == {"script": expected(make_passages(3, start=20))}


@pytest.mark.parametrize("method", ["replace", "add", "start_over"])
def test_a_long_load_is_not_lost_to_a_collection_meanwhile(store, clock, method):
    many_versions(store, clock)

    class Collecting(WatchedStore):
        def write(self, key, data, *, replaces):
            if key == CURRENT_KEY:
                collect(store, clock, keep_versions=3)
            return super().write(key, data, replaces=replaces)

    writer = IndexWriter(Collecting(store), WordEmbedder(), now=clock)
    getattr(writer, method)("script", indexable([make_passage(70)]))
    assert "m70" in content(store)["script"]
    assert must_be_published(store).manifest.kept_from > 1


def test_a_roll_back_and_a_collection_do_not_hurt_each_other(store, clock):
    """The roll-back has seen the version, and every object of it, when the collection gives it up."""
    versions = many_versions(store, clock)

    class Collecting(WatchedStore):
        def write(self, key, data, *, replaces):
            if key == CURRENT_KEY:
                collect(store, clock, keep_versions=3)
            return super().write(key, data, replaces=replaces)

    before = content(store)
    with pytest.raises(IndexMissing):
        restore(Collecting(store), versions[0], now=clock)
    assert content(store) == before
    kept = restore(Collecting(store), versions[-2], now=clock)
    assert content(store) == content_of(store, kept)


def test_a_collection_and_a_roll_back_do_not_hurt_each_other(store, clock):
    """The collection is about to give the version up when it is rolled back to."""
    versions = many_versions(store, clock)

    class RollingBack(WatchedStore):
        def write(self, key, data, *, replaces):
            if key == CURRENT_KEY and must_be_published(store).manifest.number == len(versions):
                restore(store, versions[0], now=clock)
            return super().write(key, data, replaces=replaces)

    collect(RollingBack(store), clock, keep_versions=3)
    assert content(store) == {"script": expected(OLD)}
    assert set(store.objects) == needed(store, published_versions(store))


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_a_killed_writer_leaves_is_collected(store, clock, when):
    write(store, clock)
    objects = dict(store.objects)

    def work(store):
        IndexWriter(store, WordEmbedder(), now=clock).add("script", indexable([make_passage(1, context="New.")]))

    watched = WatchedStore(store)
    work(watched)
    left = set()
    for number in range(1, len(watched.calls) + 1):
        store.objects = dict(objects)
        killed: dict[str, dict[int, BaseException]] = {when: {number: Killed()}}
        with pytest.raises(Killed):
            work(WatchedStore(store, **killed))
        left.add(len(store.objects))
        clock.pass_by(DAY + HOUR)
        before = content(store)
        collect(store, clock)
        assert content(store) == before
        assert set(store.objects) == needed(store, published_versions(store))
    assert len(left) >= 4  # segment, tombstones and manifest were left behind, in turn


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_collection_hurts_nothing_and_the_next_one_ends_it(store, clock, when):
    versions = many_versions(store, clock, 5)
    objects, before = dict(store.objects), content(store)
    watched = WatchedStore(store)
    collect(watched, clock, keep_versions=2)
    ended = dict(store.objects)
    for number in range(1, len(watched.calls) + 1):
        store.objects = dict(objects)
        killed: dict[str, dict[int, BaseException]] = {when: {number: Killed()}}
        with pytest.raises(Killed):
            collect(WatchedStore(store, **killed), clock, keep_versions=2)
        assert content(store) == before
        for version in published_versions(store):
            content_of(store, parse_manifest(store.objects[version_key(version)]))
        collect(store, clock, keep_versions=2)
        assert store.objects == ended
    assert published_versions(store) == versions[-2:]


def test_a_response_that_was_lost_is_no_conflict(store, clock):
    many_versions(store, clock)
    watched = WatchedStore(store)

    class Lossy(WatchedStore):
        def write(self, key, data, *, replaces):
            super().write(key, data, replaces=replaces)
            return super().write(key, data, replaces=replaces)  # refused

    assert collect(Lossy(watched), clock, keep_versions=3).versions == 3


def test_a_collection_that_is_always_overtaken_gives_up(store, clock):
    many_versions(store, clock)
    numbers = iter(range(1_000))

    class Busy(WatchedStore):
        def write(self, key, data, *, replaces):
            write(store, clock, [make_passage(100 + next(numbers))])
            return super().write(key, data, replaces=replaces)

    with pytest.raises(PublishConflict):
        collect(Busy(store), clock, keep_versions=3)


def test_merged_segments_go_once_no_kept_version_has_them(store, clock):
    for number in range(12):
        IndexWriter(store, WordEmbedder(), now=clock).add("script", indexable([make_passage(number)]))
    before = content(store)
    compact(store, now=clock)
    clock.pass_by(DAY + HOUR)
    assert collect(store, clock, keep_versions=1).objects == 12 + 12
    assert content(store) == before
    assert len(store.keys(SEGMENTS_PREFIX)) == 1


def test_objects_of_others_are_left_alone(store, clock):
    foreign = ["index/segments/readme.txt", "index/versions/latest.json", "index/other/x", "notes.txt"]
    for key in foreign:
        store.objects[key] = b"theirs"
    write(store, clock)
    clock.pass_by(10 * DAY)
    collect(store, clock)
    assert set(foreign) <= set(store.objects)


def test_the_layout_before_this_one_is_collected_once_it_has_aged(store, clock):
    key = f"{SEGMENTS_PREFIX}{'ab' * 32}.segment"
    manifest = f'{{"formatVersion": 1, "version": "v", "previous": null, "segments": [{{"key": "{key}"}}]}}'.encode()
    old = version_key("000001-00112233445566aa")
    store.objects.update({key: b"segment", old: manifest, CURRENT_KEY: manifest})
    IndexWriter(store, WordEmbedder(), now=clock).start_over("script", indexable(OLD))
    clock.pass_by(2 * DAY)
    collect(store, clock, keep_versions=2)
    assert {key, old} <= set(store.objects)
    collect(store, clock, keep_versions=1)
    assert {key, old}.isdisjoint(store.objects)


def test_a_damaged_old_manifest_is_in_nobodys_way(store, clock):
    versions = many_versions(store, clock)
    store.objects[version_key(versions[-2])] = b"\\xff{"
    collect(store, clock, keep_versions=3)
    assert published_versions(store) == versions[-3:]
    restore(store, versions[-3], now=clock)


def test_nothing_is_deleted_while_it_is_not_known_what_is_needed(store, clock):
    write(store, clock)
    write(store, clock, OLD[:2])
    clock.pass_by(2 * DAY)
    current = store.objects.pop(CURRENT_KEY)
    objects = dict(store.objects)
    assert collect(store, clock, keep_versions=1).objects == 0
    assert store.objects == objects
    store.objects[CURRENT_KEY] = current[:-9]
    with pytest.raises(IndexCorrupt):
        collect(store, clock, keep_versions=1)
    assert store.objects == objects | {CURRENT_KEY: current[:-9]}


def test_the_current_version_is_always_kept(store, clock):
    with pytest.raises(ValueError, match="current version"):
        collect(store, clock, keep_versions=0)


def test_manifests_of_writers_that_lost_go_too(store, clock):
    version = write(store, clock)
    lost = version_key("000002-00112233445566aa")
    store.objects[lost] = store.objects[version_key(version)]
    clock.pass_by(2 * DAY)
    collect(store, clock)
    assert lost not in store.objects
    assert store.keys(VERSIONS_PREFIX) == [version_key(version)]
