"""What is written of vectors, and what becomes of it when it is damaged."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import IndexCorrupt
from cicada.index.segment_format import Encoded
from cicada.index.vectors.encoding import encode_vectors
from cicada.index.vectors.part import VectorPart, row_bytes
from cicada.index.vectors.search import search_vectors
from tests.support.sections import MemorySections, gather_resident

COUNT, DIMENSIONS = 1_500, 24


def _vectors() -> np.ndarray:
    rows = np.random.default_rng(4).standard_normal((COUNT, DIMENSIONS), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


VECTORS = _vectors()
ORDER, ENCODED = encode_vectors(VECTORS)


def opened(encoded: Encoded, count: int = COUNT, dimensions: int = DIMENSIONS) -> VectorPart:
    return VectorPart(MemorySections({"vectors": encoded}), count, dimensions)


def with_meta(**changes: object) -> Encoded:
    return replace(ENCODED, meta={**ENCODED.meta, **changes})


def with_head(name: str, data: bytes) -> Encoded:
    return replace(ENCODED, head={**ENCODED.head, name: data})


def test_encoding_twice_gives_the_same_bytes():
    order, encoded = encode_vectors(VECTORS)
    assert np.array_equal(order, ORDER)
    assert encoded == ENCODED


def test_another_seed_gives_another_order_of_the_same_rows():
    order, _ = encode_vectors(VECTORS, seed=1)
    assert not np.array_equal(order, ORDER)
    assert sorted(order) == list(range(COUNT))


def test_the_head_is_small_and_the_codes_and_rows_are_about_a_byte_and_a_bit_a_number():
    assert sum(map(len, ENCODED.head.values())) < 1_000
    searched = len(ENCODED.body["vectors.codes"]) + len(ENCODED.body["vectors.rows"])
    assert searched <= 1.1 * COUNT * (8 + row_bytes(DIMENSIONS))


@pytest.mark.parametrize(
    "vectors",
    [
        np.zeros(8, dtype=np.float32),
        np.zeros((3, 0), dtype=np.float32),
        np.full((2, 4), np.nan, dtype=np.float32),
        np.full((2, 4), np.inf, dtype=np.float32),
        np.full((2, 4), 1e6, dtype=np.float32),
    ],
)
def test_what_is_no_matrix_of_unit_rows_is_refused(vectors):
    with pytest.raises(ValueError, match="vectors"):
        encode_vectors(vectors)


@pytest.mark.parametrize(
    "encoded",
    [
        replace(ENCODED, meta={}),
        with_meta(format=2),
        with_meta(clusters=None),
        with_meta(clusters=-1),
        with_meta(clusters=0),
        with_meta(clusters=True),
        with_meta(clusters=1.5),
        with_meta(clusters=10**9),
        with_meta(clusters=2),
    ],
)
def test_a_damaged_header_is_refused(encoded):
    with pytest.raises(IndexCorrupt):
        opened(encoded)


OFFSETS = np.frombuffer(ENCODED.head["vectors.offsets"], dtype="<u4")


@pytest.mark.parametrize(
    "offsets",
    [
        OFFSETS[::-1],
        OFFSETS + 1,
        np.where(OFFSETS == COUNT, COUNT + 1, OFFSETS),
        np.where(OFFSETS == COUNT, 2**32 - 1, OFFSETS),
        np.array([0, *[OFFSETS[1]] * (len(OFFSETS) - 2), COUNT]),
        OFFSETS[:-1],
    ],
)
def test_clusters_that_do_not_cover_the_rows_are_refused(offsets):
    with pytest.raises(IndexCorrupt):
        opened(with_head("vectors.offsets", np.asarray(offsets, dtype="<u4").tobytes()))


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e30])
def test_spreads_that_are_no_lengths_are_refused(value):
    spreads = np.full(len(OFFSETS) - 1, value, dtype="<f4")
    with pytest.raises(IndexCorrupt):
        opened(with_head("vectors.spreads", spreads.tobytes()))


def test_centroids_that_are_not_finite_are_refused():
    size = len(ENCODED.head["vectors.centroids"]) // 2
    with pytest.raises(IndexCorrupt):
        opened(with_head("vectors.centroids", np.full(size, np.inf, dtype="<f2").tobytes()))


@pytest.mark.parametrize("name", ["vectors.codes", "vectors.rows", "vectors.exact"])
def test_a_section_of_another_size_is_refused(name):
    shorter = replace(ENCODED, body={**ENCODED.body, name: ENCODED.body[name][:-1]})
    with pytest.raises(IndexCorrupt, match=name):
        opened(shorter)


@pytest.mark.parametrize(("count", "dimensions"), [(COUNT + 1, 24), (COUNT, 25), (-1, 24), (COUNT, 0), (COUNT, 10**6)])
def test_sections_of_another_segment_are_refused(count, dimensions):
    with pytest.raises(IndexCorrupt):
        opened(ENCODED, count, dimensions)


def test_a_row_with_a_scale_that_is_no_number_is_not_ranked():
    rows = np.frombuffer(ENCODED.body["vectors.rows"], dtype=np.uint8).reshape(COUNT, -1).copy()
    rows[7, DIMENSIONS:] = 0xFF
    damaged = opened(replace(ENCODED, body={**ENCODED.body, "vectors.rows": rows.tobytes()}))
    with pytest.raises(IndexCorrupt):
        search_vectors([damaged], VECTORS[0], [None], COUNT, gather_resident)


@given(name=st.sampled_from(sorted(ENCODED.head)), data=st.data())
@settings(max_examples=60)
def test_a_head_with_any_bytes_is_refused_or_searched_without_a_crash(name, data):
    head = bytearray(ENCODED.head[name])
    for _ in range(data.draw(st.integers(1, 4))):
        head[data.draw(st.integers(0, len(head) - 1))] = data.draw(st.integers(0, 255))
    try:
        part = opened(with_head(name, bytes(head)))
        hits = search_vectors([part], VECTORS[0], [None], 10, gather_resident)
    except IndexCorrupt:
        return
    assert len(hits.row) == 10
    assert ((hits.row >= 0) & (hits.row < COUNT)).all()
