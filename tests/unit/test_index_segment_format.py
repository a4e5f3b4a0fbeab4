"""The container of a segment: what goes in comes out, any range of it can be checked, and nothing altered passes."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.segment_format import (
    ALIGNMENT_BYTES,
    CHUNK_BYTES,
    Encoded,
    EncodedSegment,
    decode_head,
    encode_container,
)

LONG = bytes(range(256)) * (CHUNK_BYTES // 64)  # four chunks
PARTS = {
    "vectors": Encoded({"clusters": 3}, {"vectors.centroids": b"abc"}, {"vectors.rows": LONG, "vectors.codes": b""}),
    "rows": Encoded({}, {}, {"rows.ids": b"12345678"}),
}


def encoded(**changes: object) -> EncodedSegment:
    given: dict[str, Any] = {
        "collection": "script",
        "embedding_model_id": "m",
        "dimensions": 8,
        "count": 5,
        "parts": PARTS,
    }
    return encode_container(**(given | changes))


WRITTEN = encoded()


def head_of(written: EncodedSegment, data: bytes | None = None):
    data = written.data if data is None else data
    return decode_head(data[: written.head_bytes], written.sha256, len(data))


def section(written: EncodedSegment, name: str) -> bytes:
    extent = head_of(written).extent(name)
    start = written.head_bytes + extent.offset
    return written.data[start : start + extent.bytes]


def test_parts_come_back_as_they_were_given():
    head = head_of(WRITTEN)
    assert (head.header.collection, head.header.dimensions, head.header.count) == ("script", 8, 5)
    assert head.header.parts == {"vectors": {"clusters": 3}, "rows": {}}
    assert bytes(head.section("vectors.centroids")) == b"abc"
    assert section(WRITTEN, "vectors.rows") == LONG
    assert section(WRITTEN, "rows.ids") == b"12345678"


def test_equal_parts_give_equal_bytes():
    assert encoded() == WRITTEN


def test_sections_are_aligned_for_whoever_maps_them():
    for name in ("vectors.rows", "rows.ids"):
        assert (WRITTEN.head_bytes + head_of(WRITTEN).extent(name).offset) % ALIGNMENT_BYTES == 0


@pytest.mark.parametrize(("start", "end"), [(0, len(LONG)), (CHUNK_BYTES, 2 * CHUNK_BYTES), (3 * CHUNK_BYTES, None)])
def test_any_run_of_chunks_can_be_checked_alone(start, end):
    head_of(WRITTEN).verify("vectors.rows", start, memoryview(LONG)[start:end])


def test_an_altered_chunk_is_named():
    altered = bytearray(LONG)
    altered[CHUNK_BYTES + 7] ^= 1
    with pytest.raises(IndexCorrupt, match=f"vectors.rows .* byte {CHUNK_BYTES}$"):
        head_of(WRITTEN).verify("vectors.rows", 0, memoryview(altered))


def test_bytes_of_another_section_are_not_taken_for_this_one():
    with pytest.raises(IndexCorrupt):
        head_of(WRITTEN).verify("rows.ids", 0, memoryview(b"12345679"))
    with pytest.raises(IndexCorrupt):
        head_of(WRITTEN).verify("vectors.rows", CHUNK_BYTES * 4, memoryview(b"beyond the end"))


@pytest.mark.parametrize("name", ["vectors.none", "digest"])
def test_a_section_that_is_not_there_is_told(name):
    with pytest.raises(IndexCorrupt, match="no section"):
        head_of(WRITTEN).section(name)
    with pytest.raises(IndexCorrupt, match="no section"):
        head_of(WRITTEN).extent(name)


def test_a_format_of_the_future_is_told_apart_from_damage():
    data = bytearray(WRITTEN.data[: WRITTEN.head_bytes])
    data[8] = 4
    with pytest.raises(IndexMismatch, match="format 4"):
        decode_head(data, hashlib.sha256(data).hexdigest(), len(WRITTEN.data))


def test_an_object_that_is_shorter_than_its_sections_is_refused():
    with pytest.raises(IndexCorrupt, match="beyond its end"):
        decode_head(WRITTEN.data[: WRITTEN.head_bytes], WRITTEN.sha256, WRITTEN.head_bytes + 10)


@given(st.integers(0, WRITTEN.head_bytes - 1), st.integers(1, 255))
def test_no_altered_byte_of_the_head_passes(at, change):
    altered = bytearray(WRITTEN.data[: WRITTEN.head_bytes])
    altered[at] ^= change
    with pytest.raises(IndexCorrupt, match="checksum"):
        decode_head(altered, WRITTEN.sha256, len(WRITTEN.data))


@given(st.binary(max_size=400), st.integers(0, 400))
def test_a_head_that_was_written_wrongly_is_refused_though_its_checksum_holds(junk, keep):
    data = WRITTEN.data[:keep] + junk
    with pytest.raises((IndexCorrupt, IndexMismatch)):
        decode_head(data, hashlib.sha256(data).hexdigest(), len(data))
