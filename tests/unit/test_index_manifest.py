"""The manifest and the tombstones: what is written is read, and nothing else passes for it."""

from __future__ import annotations

import hashlib
import json
import zlib
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from pydantic import ValidationError

from cicada.errors import IndexCorrupt, IndexMismatch, IndexNewer
from cicada.index.maintenance import collect_garbage
from cicada.index.manifest import (
    CURRENT_KEY,
    Manifest,
    SegmentEntry,
    TombstonesEntry,
    new_segment_key,
    new_tombstones_key,
    parse_manifest,
)
from cicada.index.segment_reader import decode_tombstones, read_tombstones, write_tombstones
from cicada.index.versions import must_be_published, restore, set_allow_partial
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages

SHA = "ab" * 32
WHEN = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)


def segment(name="a", *, collection="script", count=10, tombstones=None):
    return SegmentEntry(
        key=f"index/segments/{name}.segment",
        collection=collection,
        count=count,
        live=count - (tombstones.count if tombstones else 0),
        bytes=1000,
        head_bytes=100,
        sha256=SHA,
        tombstones=tombstones,
    )


def manifest(*segments, **fields):
    given: dict[str, Any] = {
        "number": 3,
        "created_at": WHEN,
        "embedding_model_id": "test.words",
        "dimensions": 64,
        "analyzer_version": 1,
        "allow_partial": False,
        "segments": segments,
        "previous": "000002-0123456789abcdef",
    }
    return Manifest.create(**(given | fields))


BURIED = TombstonesEntry(key="index/tombstones/a.bits", bytes=20, count=4, sha256=SHA)


def sealed(forged):
    """Give a forged manifest the id and the digest that its content has to have."""
    named = forged.model_copy(update={"version": forged.derived_version()})
    return named.model_copy(update={"digest": named.derived_digest()})


def test_a_manifest_is_read_as_it_was_written():
    written = manifest(segment(tombstones=BURIED), segment("b", collection="notes"), allow_partial=True)
    assert parse_manifest(written.to_bytes()) == written
    assert (written.count, written.collections) == (16, ("script", "notes"))


def test_equal_content_has_an_equal_id_and_other_content_another():
    assert manifest(segment()).version == manifest(segment()).version
    others = [
        manifest(),
        manifest(segment(), number=4),
        manifest(segment(), allow_partial=True),
        manifest(segment(), analyzer_version=2),
        manifest(segment(tombstones=BURIED)),
        manifest(segment()).derive(allow_partial=True).keeping_from(2),
    ]
    assert manifest(segment()).version not in {other.version for other in others}


def test_giving_older_versions_up_leaves_the_version_what_it_is():
    moved_on = manifest(segment()).keeping_from(3)
    assert moved_on.version == manifest(segment()).version
    assert parse_manifest(moved_on.to_bytes()).kept_from == 3


@settings(max_examples=150)
@given(st.data())
def test_no_changed_byte_goes_unnoticed(data):
    written = manifest(segment(tombstones=BURIED), segment("b")).keeping_from(2)
    stored = written.to_bytes()
    at = data.draw(st.integers(0, len(stored) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != stored[at]))
    try:
        found = parse_manifest(stored[:at] + bytes([byte]) + stored[at + 1 :])
    except (IndexCorrupt, IndexMismatch):
        return
    assert found == written  # white space of another kind


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_what_is_no_manifest_is_told_to_be_damaged(data):
    with pytest.raises(IndexCorrupt):
        parse_manifest(data)


@pytest.mark.parametrize("end", [0, 1, 200, -1])
def test_a_truncated_manifest_is_damaged(end):
    with pytest.raises(IndexCorrupt):
        parse_manifest(manifest(segment()).to_bytes()[:end])


def test_the_layout_before_this_one_tells_how_to_load_again():
    with pytest.raises(IndexMismatch, match=r"format 1.*cicada load --start-over"):
        parse_manifest(b'{"formatVersion": 1, "version": "000001-0123456789abcdef"}')


def test_a_later_layout_is_told_apart_from_damage():
    with pytest.raises(IndexNewer, match="format 3"):
        parse_manifest(b'{"formatVersion": 3}')


def newer_manifest(**fields):
    """A manifest with fields that this release does not know, as the release that knows them would store it."""
    known = json.loads(manifest(segment()).to_bytes()) | fields
    known.pop("digest")
    compact = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(compact.encode()).hexdigest()
    return json.dumps(known | {"digest": digest}, ensure_ascii=False, indent=1).encode()


def test_what_a_newer_release_added_is_told_apart_from_damage():
    written = newer_manifest(shelves=["Übersicht"])
    with pytest.raises(IndexNewer) as refused:
        parse_manifest(written)
    assert refused.value.code == "index_newer"
    with pytest.raises(IndexCorrupt):
        parse_manifest(written.replace(b"shelves", b"shelfes"))


def test_nothing_is_published_or_deleted_over_a_newer_releases_version():
    store = InMemoryStore()
    IndexWriter(store, WordEmbedder()).add("script", indexable(make_passages(2)))
    version = must_be_published(store).manifest.version
    store.objects[CURRENT_KEY] = newer_manifest(shelves=[])
    before = dict(store.objects)
    writer = IndexWriter(store, WordEmbedder())
    for change in (
        lambda: writer.add("script", indexable(make_passages(1, start=5))),
        lambda: writer.start_over("script", indexable(make_passages(1))),
        lambda: restore(store, version),
        lambda: set_allow_partial(store, True),
        lambda: collect_garbage(store, grace_s=0, keep_versions=1),
    ):
        with pytest.raises(IndexNewer):
            change()
    assert store.objects == before


def test_a_changed_memory_of_what_was_given_up_is_damage():
    stored = manifest(segment()).keeping_from(2).to_bytes()
    with pytest.raises(IndexCorrupt, match="differs from the one that was written"):
        parse_manifest(stored.replace(b'"keptFrom": 2', b'"keptFrom": 3'))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"live": 9}, id="rows that do not add up"),
        pytest.param({"live": 0, "tombstones": BURIED.model_copy(update={"count": 10})}, id="nothing left"),
        pytest.param({"sha256": "xyz"}, id="no digest"),
        pytest.param({"bytes": -1}, id="less than nothing"),
    ],
)
def test_an_entry_that_makes_no_sense_is_damage_though_its_digest_fits(change):
    bad = segment().model_copy(update=change)
    forged = sealed(manifest().model_copy(update={"segments": (bad,)}))
    assert (forged.version, forged.digest) == (forged.derived_version(), forged.derived_digest())
    with pytest.raises(IndexCorrupt):
        parse_manifest(forged.to_bytes())


def test_a_segment_stands_once_in_a_version():
    with pytest.raises(ValidationError, match="duplicate segment"):
        manifest(segment(), segment())


def test_no_two_objects_are_given_one_place():
    assert len({new_segment_key(SHA) for _ in range(100)} | {new_tombstones_key(SHA) for _ in range(100)}) == 200


# --- tombstones ---


@given(npst.arrays(np.bool_, st.integers(1, 300)).filter(np.any))
def test_tombstones_are_read_as_they_were_written(deleted):
    if deleted.all():
        deleted[0] = False
        if not deleted.any():
            return
    store = InMemoryStore()
    entry = write_tombstones(store, deleted)
    assert entry.count == deleted.sum()
    found = read_tombstones(store, segment(count=len(deleted), tombstones=entry))
    assert found is not None
    assert np.array_equal(found, deleted)


def test_a_segment_without_tombstones_reads_nothing():
    assert read_tombstones(InMemoryStore(), segment()) is None


def test_missing_tombstones_are_damage():
    with pytest.raises(IndexCorrupt, match=r"a\.bits is missing"):
        read_tombstones(InMemoryStore(), segment(tombstones=BURIED))


@pytest.mark.parametrize("at", range(12))
def test_changed_tombstones_are_damage(at):
    store = InMemoryStore()
    entry = write_tombstones(store, np.arange(20) % 3 == 0)
    data = bytearray(store.objects[entry.key])
    data[at % len(data)] ^= 4
    with pytest.raises(IndexCorrupt, match="checksum"):
        decode_tombstones(bytes(data), entry, rows=20)


def forged(bits, count, *, compress=zlib.compress):
    """Tombstones that no writer of ours wrote, with the digest that they have."""
    data = compress(bytes(bits))
    return data, TombstonesEntry(key="t", bytes=len(data), count=count, sha256=hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize(
    ("bits", "count"),
    [
        pytest.param([1], 1, id="too few bits"),
        pytest.param([1, 0, 0], 1, id="too many bits"),
        pytest.param([1, 16], 2, id="a row beyond the segment's last"),
        pytest.param([3, 0], 1, id="another number of rows"),
        pytest.param([1] + [0] * 10_000_000, 1, id="a flood"),
    ],
)
def test_tombstones_that_do_not_fit_their_segment_are_damage(bits, count):
    data, entry = forged(bits, count)
    with pytest.raises(IndexCorrupt, match="does not fit"):
        decode_tombstones(data, entry, rows=12)


def test_tombstones_that_cannot_be_unpacked_are_damage():
    data, entry = forged([1, 0], 1, compress=lambda bits: b"none" + bits)
    with pytest.raises(IndexCorrupt, match="unpacked"):
        decode_tombstones(data, entry, rows=12)
