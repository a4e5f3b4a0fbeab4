"""The segment format: what goes in comes out, and nothing that was altered does."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.segment import ALIGNMENT_BYTES, BLOCK_ROWS, decode, encode
from tests.support.passages import indexable, make_passages, unit_rows


def encoded(count: int = 3, dimensions: int = 8):
    return encode("script", "test.model", indexable(make_passages(count)), unit_rows(count, dimensions))


def test_a_segment_gives_back_its_vectors_fields_and_passages():
    passages, vectors = make_passages(2 * BLOCK_ROWS + 5), unit_rows(2 * BLOCK_ROWS + 5, 16)
    written = encode("script", "test.model", indexable(passages), vectors)
    segment = decode(written.data, head_bytes=written.head_bytes, sha256=written.sha256)
    assert (segment.collection, segment.count, segment.dimensions) == ("script", len(passages), 16)
    np.testing.assert_array_equal(segment.vectors, vectors)
    assert list(segment.passages()) == passages
    assert segment.recipes() == [item.recipe() for item in indexable(passages)]
    assert [segment.passage(row) for row in range(len(passages))] == passages
    for name, field in (("episode", "episode_id"), ("speaker", "speaker")):
        column = segment.columns[name]
        assert [column.values[code] for code in column.codes] == [getattr(p.locator, field) for p in passages]


def test_equal_content_gives_equal_bytes():
    assert encoded() == encoded()


def test_vectors_are_aligned_and_cannot_be_written():
    written = encoded()
    segment = decode(bytearray(written.data), head_bytes=written.head_bytes, sha256=written.sha256)
    assert segment.vectors.flags.aligned
    with pytest.raises(ValueError, match="read-only"):
        segment.vectors[0] = 0


def test_a_row_that_is_not_there_is_refused():
    written = encoded()
    segment = decode(written.data, head_bytes=written.head_bytes, sha256=written.sha256)
    with pytest.raises(IndexCorrupt):
        segment.passage(3)


def test_a_format_of_the_future_is_told_apart_from_damage():
    written = encoded()
    data = bytearray(written.data)
    data[8] = 2
    sha256 = hashlib.sha256(data[: written.head_bytes]).hexdigest()
    with pytest.raises(IndexMismatch, match="format 2"):
        decode(data, head_bytes=written.head_bytes, sha256=sha256)


@given(st.data())
def test_no_altered_byte_goes_unnoticed(data):
    written = encoded()
    altered = bytearray(written.data)
    at = data.draw(st.integers(0, len(altered) - 1))
    altered[at] ^= data.draw(st.integers(1, 255))
    try:
        segment = decode(altered, head_bytes=written.head_bytes, sha256=written.sha256)
    except IndexCorrupt:
        return
    # only padding between sections is not content
    assert list(segment.passages()) == make_passages(3)
    np.testing.assert_array_equal(segment.vectors, unit_rows(3, 8))
    assert written.data[at] == 0
    assert at > written.head_bytes - ALIGNMENT_BYTES


@given(st.binary(max_size=300), st.integers(0, 300))
def test_foreign_bytes_are_refused_even_when_their_checksum_fits(data, head_bytes):
    sha256 = hashlib.sha256(data[:head_bytes]).hexdigest()
    with pytest.raises((IndexCorrupt, IndexMismatch)):
        decode(data, head_bytes=head_bytes, sha256=sha256)


@given(st.integers(0, 2_000))
def test_a_truncated_segment_is_refused(kept):
    written = encoded()
    with pytest.raises(IndexCorrupt):
        decode(written.data[: min(kept, len(written.data) - 1)], head_bytes=written.head_bytes, sha256=written.sha256)
