"""Facets: unique values and counts over everything that passes a filter, in all segments."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import IndexMissing, RetrievalInvalid
from cicada.index.manifest import CURRENT_KEY, parse_manifest
from cicada.index.versions import set_allow_partial
from cicada.index.writer import IndexWriter
from cicada.retrieval.facets import ShardFacets
from cicada.retrieval.ports import Filters
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder
from tests.support.entities import naming, reading, stored
from tests.support.object_stores import InMemoryStore, WatchedStore

CORPUS = [
    naming(0, "Mira", "Jon", codes=["P0700"], workflow_id="w1", doc_type="pdf", source="b.pdf"),
    naming(1, "Mira", codes=["P0700", "A-1"], workflow_id="w1", doc_type="csv", source="a.csv"),
    naming(2, "mira", workflow_id="w2", doc_type="pdf", source="b.pdf"),
    naming(13, "Ada", "Mira", codes=["A-1"], workflow_id="w2"),
    naming(4),
    naming(5, "Ben", codes=["Z9"], collection="notes", workflow_id="w1"),
]


def counted(store, *fields: str, limit: int = 10, **filters):
    with reading(store) as reader:
        return ShardFacets(reader).count(fields, Filters(**filters), limit=limit, readable=EVERYTHING)


@pytest.fixture(scope="module")
def store():
    return stored(*CORPUS, segment_rows=2)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("entity_codes", [("A-1", 2), ("P0700", 2), ("Z9", 1)]),
        ("entities", [("Mira", 3), ("Ada", 1), ("Ben", 1), ("Jon", 1), ("mira", 1)]),
        ("workflow_id", [("w1", 3), ("w2", 2)]),
        ("doc_type", [("pdf", 2), ("csv", 1)]),
        ("source", [("b.pdf", 2), ("a.csv", 1)]),
        ("speaker", [("Ada", 2), ("Jon", 3), ("Mira", 1)]),
        ("episode", [("ep1", 5), ("ep2", 1)]),
        ("collection", [("script", 5), ("notes", 1)]),
        ("nothing", []),
        ("metadata.doc_type", []),
    ],
)
def test_values_come_with_their_passages_most_frequent_first(store, field, values):
    found = counted(store, field)
    expected = sorted(values, key=lambda pair: (-pair[1], pair[0]))
    assert (found.total, found.degraded) == (6, ())
    (one,) = found.fields
    assert (one.field, one.unique, list(one.values)) == (field, len(expected), expected)


def test_a_limit_hides_values_and_not_their_number(store):
    (codes, names) = counted(store, "entity_codes", "entities", limit=1).fields
    assert (codes.unique, codes.values) == (3, (("A-1", 2),))
    assert (names.unique, names.values) == (5, (("Mira", 3),))
    assert counted(store, "entity_codes", limit=0).fields[0].values == ()
    with pytest.raises(RetrievalInvalid, match="limit"):
        counted(store, "entities", limit=-1)


@pytest.mark.parametrize(
    ("filters", "total", "codes"),
    [
        ({"metadata": {"workflow_id": ("w1",)}}, 3, [("P0700", 2), ("A-1", 1), ("Z9", 1)]),
        ({"metadata": {"workflow_id": ("w1",)}, "collections": ("script",)}, 2, [("P0700", 2), ("A-1", 1)]),
        ({"entities": ("Mira",), "codes": ("A-1",)}, 2, [("A-1", 2), ("P0700", 1)]),
        ({"metadata": {"workflow_id": ("w3",)}}, 0, []),
    ],
)
def test_only_what_passes_the_filters_is_counted_and_named(store, filters, total, codes):
    found = counted(store, "entity_codes", **filters)
    assert (found.total, list(found.fields[0].values), found.fields[0].unique) == (total, codes, len(codes))


def test_what_is_deleted_is_not_counted_and_what_is_new_is():
    store = stored(*CORPUS)
    with reading(store) as reader:
        facets = ShardFacets(reader)
        first = facets.count(["entity_codes"], Filters(), readable=EVERYTHING, limit=9)
        IndexWriter(store, WordEmbedder()).delete("script", ["m1", "m13"])
        reader.refresh()
        second = facets.count(["entity_codes"], Filters(), readable=EVERYTHING, limit=9)
    assert first.index_version != second.index_version
    assert second.fields[0].values == (("P0700", 1), ("Z9", 1))
    assert (first.total, second.total) == (6, 4)


def test_a_cold_count_is_the_warm_one_and_the_next_reads_nothing(store):
    watched = WatchedStore(store)
    with reading(watched, eager_bytes=0) as reader:
        facets = ShardFacets(reader)
        fields = ["entities", "speaker", "collection"]
        cold = facets.count(fields, Filters(entities=("Mira",)), readable=EVERYTHING, limit=9)
        reader.warm_up()
        calls = len(watched.calls)
        assert facets.count(fields, Filters(entities=("Mira",)), readable=EVERYTHING, limit=9) == cold
        assert len(watched.calls) == calls


def test_a_version_in_part_says_what_was_not_counted():
    store = stored(*CORPUS)
    set_allow_partial(store, True)
    manifest = parse_manifest(store.read(CURRENT_KEY).data)
    del store.objects[manifest.of_collection("notes")[0].key]
    found = counted(store, "entity_codes")
    assert [one.code for one in found.degraded] == ["partial_index"]
    assert found.degraded[0].message == "1 of 6 passages cannot be read, and were not counted."
    assert (found.total, found.fields[0].unique) == (5, 2)


def test_an_index_that_is_not_there_is_told():
    with pytest.raises(IndexMissing):
        counted(InMemoryStore(), "entities")


NAMES = st.lists(st.sampled_from("abcdefg"), max_size=4, unique=True)


@settings(max_examples=12)
@given(st.lists(NAMES, min_size=1, max_size=12), st.integers(1, 5), st.integers(1, 8))
def test_counts_are_those_of_a_plain_counter(rows, segment_rows, limit):
    store = stored(*(naming(number, *names) for number, names in enumerate(rows)), segment_rows=segment_rows)
    (found,) = counted(store, "entities", limit=limit).fields
    expected = Counter(name for names in rows for name in names)
    assert found.unique == len(expected)
    assert list(found.values) == sorted(expected.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
