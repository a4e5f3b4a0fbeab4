"""A segment as a whole: what is written comes back, merges and splits keep it, and nothing altered passes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import IndexCorrupt
from cicada.index.manifest import SegmentEntry
from cicada.index.segment import SegmentContents, SegmentFile, content_digest, encode_segment, id_digest
from tests.support.entities import naming
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages, unit_rows

KEY = "index/segments/one.segment"


def contents_of(count: int, start: int = 0) -> SegmentContents:
    return SegmentContents.of("script", indexable(make_passages(count, start=start)), unit_rows(count, 16, seed=start))


def stored(contents: SegmentContents) -> tuple[InMemoryStore, SegmentEntry]:
    written = encode_segment(contents, "test.model")
    store = InMemoryStore()
    store.objects[KEY] = written.data
    entry = SegmentEntry(
        key=KEY,
        collection="script",
        count=written.count,
        live=written.count,
        bytes=len(written.data),
        head_bytes=written.head_bytes,
        sha256=written.sha256,
        tombstones=None,
    )
    return store, entry


def read_back(contents: SegmentContents) -> SegmentContents:
    return SegmentFile.open(*stored(contents)).contents()


def same(one: SegmentContents, other: SegmentContents) -> None:
    """Both hold the same, but for what float16 rounds."""
    assert (one.collection, one.lines) == (other.collection, other.lines)
    np.testing.assert_array_equal(one.id_digests, other.id_digests)
    np.testing.assert_array_equal(one.content_digests, other.content_digests)
    np.testing.assert_array_equal(one.recipes, other.recipes)
    np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-3)
    for field in (*one.columns, *other.columns):
        first, second = one.columns[field], other.columns[field]
        assert [first.values[code - 1] for code in first.codes] == [second.values[code - 1] for code in second.codes]
    assert lists(one) == lists(other)
    assert [terms(one, passage) for passage in range(one.count)] == [
        terms(other, passage) for passage in range(other.count)
    ]


def lists(contents: SegmentContents) -> dict[str, list[list[str]]]:
    return {
        name: [[column.values[code] for code in codes] for codes in np.split(column.codes, column.starts[1:-1])]
        for name, column in contents.lists.items()
    }


def terms(contents: SegmentContents, passage: int) -> dict[str, int]:
    found = contents.terms
    pairs = range(found.starts[passage], found.starts[passage + 1])
    return {found.vocabulary[found.terms[pair]]: int(found.weights[pair]) for pair in pairs}


@pytest.mark.parametrize("count", [1, 2, 33, 70])
def test_what_is_written_comes_back(count):
    same(read_back(contents_of(count)), contents_of(count))


def test_equal_contents_give_equal_bytes():
    assert encode_segment(contents_of(40), "m") == encode_segment(contents_of(40), "m")


def test_rows_tell_where_each_passage_stands():
    contents = contents_of(50)
    file = SegmentFile.open(*stored(contents))
    rows = file.contents().rows
    items = indexable(make_passages(50))
    assert file.id_digests()[rows].tolist() == [id_digest(item.passage.id) for item in items]
    assert [digest.tobytes() for digest in file.content_digests()[rows]] == [content_digest(item) for item in items]
    assert [recipe.tobytes() for recipe in file.recipes()[rows]] == [item.recipe() for item in items]
    np.testing.assert_allclose(file.vectors(rows), contents.vectors, atol=1e-3)


@settings(max_examples=15)
@given(st.lists(st.booleans(), min_size=20, max_size=20).filter(any))
def test_leaving_passages_out_is_the_same_as_never_having_had_them(keep):
    chosen = [item for item, kept in zip(indexable(make_passages(20)), keep, strict=True) if kept]
    vectors = unit_rows(20, 16, seed=0)[np.array(keep)]
    selected = read_back(contents_of(20)).select(np.array(keep))
    same(read_back(selected), SegmentContents.of("script", chosen, vectors))


def test_merging_segments_again_and_again_loses_nothing():
    parts = [contents_of(9), contents_of(5, start=9), contents_of(30, start=14)]
    together = SegmentContents.concat(parts)
    merged = parts[0]
    for part in parts[1:]:
        merged = read_back(SegmentContents.concat([read_back(merged), read_back(part)]))
    same(merged, together)
    once = read_back(together)
    np.testing.assert_array_equal(merged.vectors, once.vectors)


@settings(max_examples=60)
@given(st.data())
def test_no_altered_byte_goes_unnoticed(data):
    store, entry = WRITTEN
    altered = bytearray(store.objects[KEY])
    at = data.draw(st.integers(0, len(altered) - 1))
    altered[at] ^= data.draw(st.integers(1, 255))
    tampered = InMemoryStore()
    tampered.objects[KEY] = bytes(altered)
    padding = store.objects[KEY][at] == 0  # between sections is not content: the only bytes that may go unnoticed
    assert noticed(tampered, entry) or padding


def noticed(store: InMemoryStore, entry: SegmentEntry) -> bool:
    try:
        SegmentFile.open(store, entry).verify()
    except IndexCorrupt:
        return True
    return False


def naming_contents(count: int) -> SegmentContents:
    passages = [naming(number, f"name {number % 5}", "Mira", codes=[f"P{number}"]) for number in range(count)]
    return SegmentContents.of("script", indexable(passages), unit_rows(count, 16))


WRITTEN = stored(naming_contents(12))


def test_several_values_of_a_passage_come_back_and_merge():
    one, other = naming_contents(40), contents_of(5, start=50)
    same(read_back(one), one)
    same(read_back(SegmentContents.concat([read_back(other), read_back(one)])), SegmentContents.concat([other, one]))


def test_another_segment_under_its_key_is_refused():
    store, entry = stored(contents_of(12))
    store.objects[KEY] = stored(contents_of(12, start=3))[0].objects[KEY]
    with pytest.raises(IndexCorrupt):
        SegmentFile.open(store, entry)
