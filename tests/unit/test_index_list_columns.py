"""List columns: several values a passage, through writing, reading, merging, leaving out, filtering and damage."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.passages import Passage
from cicada.errors import IndexCorrupt
from cicada.index.compaction import compact
from cicada.index.list_columns import (
    ListColumn,
    ListPart,
    concat_lists,
    decode_lists,
    encode_lists,
    lists_of,
    row_type,
    take_lists,
)
from cicada.index.segment import SegmentContents, content_digest, encode_segment
from cicada.index.segment_format import ENRICHED_FORMAT_VERSION, FORMAT_VERSION, Encoded
from cicada.index.writer import IndexWriter
from cicada.retrieval.ports import Filters, SearchQuery
from cicada.retrieval.shards import ShardRetriever, row_filter
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder
from tests.support.entities import naming, reading, stored
from tests.support.object_stores import WatchedStore
from tests.support.passages import indexable, make_passage, unit_rows
from tests.support.sections import MemorySections, gather_resident

NAMES = st.lists(st.sampled_from(["Mira", "Jon", "mira", "日本", "", "Ada's boat"]), max_size=5)
ROWS = st.lists(NAMES, min_size=1, max_size=8)


def passages_of(rows: list[list[str]]) -> list[Passage]:
    return [naming(number, *names) for number, names in enumerate(rows)]


def as_sets(columns, count: int, field: str = "entities") -> list[set[str]]:
    if field not in columns:
        return [set()] * count
    column = columns[field]
    return [{column.values[code] for code in codes} for codes in np.split(column.codes, column.starts[1:-1])]


def part_of(columns, order) -> ListPart:
    return ListPart(MemorySections({"lists": encode_lists(columns, np.asarray(order))}), len(order))


def matching(part: ListPart, count: int, where) -> list[int]:
    part.open(list(where), gather_resident(part.spans(list(where))))
    mask = part.matching(where, gather_resident(part.row_spans(where)))
    return list(range(count)) if mask is None else np.flatnonzero(mask).tolist()


@given(ROWS, st.randoms())
def test_what_is_written_comes_back_in_the_order_of_rows(rows, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    read = decode_lists(part_of(lists_of(passages_of(rows)), order), len(rows), gather_resident)
    assert as_sets(read, len(rows)) == [set(rows[at]) for at in order]


@given(ROWS, NAMES)
def test_rows_pass_that_have_any_of_the_values(rows, wanted):
    part = part_of(lists_of(passages_of(rows)), range(len(rows)))
    passing = [at for at, names in enumerate(rows) if not wanted or set(names) & set(wanted)]
    assert matching(part, len(rows), {"entities": wanted}) == passing


def test_filters_of_both_fields_add_up():
    rows = [naming(0, "Mira", codes=["P1"]), naming(1, "Mira"), naming(2, codes=["P1", "P2"]), naming(3, "Jon")]
    part = part_of(lists_of(rows), range(4))
    assert matching(part, 4, {"entities": ["Mira", "Jon"], "entity_codes": ["P1", "none"]}) == [0]
    assert matching(part, 4, {"entities": ["Mira", "\udc80"]}) == [0, 1]
    assert matching(part, 4, {"entity_codes": ["P3"]}) == []


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_merging_is_the_same_as_writing_together(parts):
    together = lists_of(passages_of([names for part in parts for names in part]))
    merged = concat_lists([(lists_of(passages_of(part)), len(part)) for part in parts])
    assert list(merged) == list(together)
    for name, column in merged.items():
        assert column.values == together[name].values
        np.testing.assert_array_equal(column.starts, together[name].starts)
        np.testing.assert_array_equal(column.codes, together[name].codes)


@given(ROWS, st.data())
def test_leaving_rows_out_leaves_only_their_values(rows, data):
    keep = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1)), dtype=np.intp)
    taken = take_lists(lists_of(passages_of(rows)), keep)
    assert as_sets(taken, len(keep)) == [set(rows[at]) for at in keep]
    assert {value for column in taken.values() for value in column.values} == {n for at in keep for n in rows[at]}


@pytest.mark.parametrize("count", [65_536, 65_537])
def test_rows_of_any_number_are_told_apart(count):
    last = ListColumn(("a",), np.array([0] * count + [1]), np.array([0], dtype=np.int32))
    part = part_of({"entities": last}, np.arange(count))
    assert matching(part, count, {"entities": ["a"]}) == [count - 1]
    assert row_type(count).itemsize == (2 if count == 65_536 else 4)


def u4(*numbers: int) -> bytes:
    return np.array(numbers, dtype="<u4").tobytes()


def u2(*numbers: int) -> bytes:
    return np.array(numbers, dtype="<u2").tobytes()


GOOD = (b"ab", u4(0, 1, 2, 0, 1, 3), u2(1, 0, 1))  # a: row 1; b: rows 0 and 1


@pytest.mark.parametrize(
    ("meta", "values", "offsets", "rows"),
    [
        ({"fields": "entities"}, *GOOD),
        ({"fields": [1]}, *GOOD),
        ({"fields": ["entities"]}, b"ab", b"", GOOD[2]),
        ({"fields": ["entities"]}, b"ab", u4(0, 1, 2, 0, 1), GOOD[2]),
        ({"fields": ["entities"]}, b"ab", u4(1, 1, 2, 0, 1, 3), GOOD[2]),
        ({"fields": ["entities"]}, b"ab", u4(0, 2, 1, 0, 1, 3), GOOD[2]),
        ({"fields": ["entities"]}, b"ab", u4(0, 1, 3, 0, 1, 3), GOOD[2]),
        ({"fields": ["entities"]}, b"ab", u4(0, 1, 2, 1, 1, 3), GOOD[2]),
        ({"fields": ["entities"]}, b"ab", u4(0, 1, 2, 0, 3, 3), GOOD[2]),
        ({"fields": ["entities"]}, b"ab", u4(0, 1, 2, 0, 1, 4), GOOD[2]),
        ({"fields": ["entities"]}, b"ba", GOOD[1], GOOD[2]),
        ({"fields": ["entities"]}, b"aa", GOOD[1], GOOD[2]),
        ({"fields": ["entities"]}, b"a\xff", GOOD[1], GOOD[2]),
        ({"fields": ["entities"]}, b"ab", GOOD[1], u2(1, 0, 2)),
        ({"fields": ["entities"]}, b"ab", GOOD[1], u2(1, 1, 0)),
        ({"fields": ["entities"]}, b"ab", GOOD[1], u2(1, 1, 1)),
        ({"fields": ["entities"]}, b"ab", GOOD[1], GOOD[2] + b"\0"),
    ],
)
def test_lists_that_were_written_wrongly_are_refused(meta, values, offsets, rows):
    body = {"lists.0.values": values, "lists.0.offsets": offsets, "lists.0.rows": rows}
    with pytest.raises(IndexCorrupt):
        decode_lists(ListPart(MemorySections({"lists": Encoded(meta, {}, body)}), 2), 2, gather_resident)


def test_lists_that_were_written_well_are_not():
    body = dict(zip(("lists.0.values", "lists.0.offsets", "lists.0.rows"), GOOD, strict=True))
    part = ListPart(MemorySections({"lists": Encoded({"fields": ["entities"]}, {}, body)}), 2)
    assert as_sets(decode_lists(part, 2, gather_resident), 2) == [{"b"}, {"a", "b"}]


# --- what passages are written as ---


def test_a_passage_that_nobody_enriched_is_written_as_ever():
    line = make_passage(3).model_dump_json(by_alias=True)
    assert json.loads(line).keys() == {"id", "collection", "text", "context", "locator", "metadata"}
    assert Passage.model_validate_json(line) == make_passage(3)


def test_what_enrichment_adds_is_written_where_there_is_some():
    passage = naming(3, "Mira", codes=["P1"]).model_copy(update={"summary": ""})
    read = Passage.model_validate_json(passage.model_dump_json(by_alias=True))
    assert (read.entities, read.codes, read.summary) == (("Mira",), ("P1",), "")


def contents_of(*passages: Passage) -> SegmentContents:
    return SegmentContents.of("script", indexable(passages), unit_rows(len(passages), 16))


def test_indexes_from_before_enrichment_are_still_what_a_load_would_write():
    (item,) = indexable([make_passage(3)])
    assert content_digest(item).hex() == DIGEST_BEFORE
    assert encode_segment(contents_of(make_passage(3)), "m").data.find(b"lists") == -1


DIGEST_BEFORE = "2c4701b8ee24b9f99c6ec962589a7b58"
"""Of that passage, as it was computed before passages had summaries, entities and codes."""


@pytest.mark.parametrize(
    ("passage", "version"),
    [
        (make_passage(0), FORMAT_VERSION),
        (naming(0, mood="}]"), FORMAT_VERSION),
        (naming(0, "Mira"), ENRICHED_FORMAT_VERSION),
        (naming(0, codes=["P1"]), ENRICHED_FORMAT_VERSION),
        (make_passage(0).model_copy(update={"summary": "It is so."}), ENRICHED_FORMAT_VERSION),
    ],
)
def test_only_segments_with_enriched_passages_have_the_later_format(passage, version):
    assert encode_segment(contents_of(make_passage(1), passage), "test.model").data[8] == version


# --- in an index ---

TOLD = [
    naming(0, "Mira", "Jon", codes=["P0700"]),
    naming(1, "Mira", "the bell"),
    naming(2),
    naming(3, "Jon", codes=["P0700", "A-1"]),
    naming(4, "Ada", "Mira"),
    naming(5, "ada"),
    naming(6, codes=["A-1"]),
]


def passing(reader, **filters) -> set[str]:
    index = reader.current()
    scope = index.scope(row_filter(Filters(**filters)))
    rows = [
        (number, row)
        for number, (segment, mask) in enumerate(zip(scope.segments, scope.allowed, strict=True))
        for row in (range(segment.entry.count) if mask is None else np.flatnonzero(mask).tolist())
    ]
    assert scope.count == len(rows)
    return {passage.id for passage in index.passages(scope, rows)}


FILTERS = [
    ({"entities": ("Mira",)}, {"m0", "m1", "m4"}),
    ({"entities": ("Ada", "the bell")}, {"m1", "m4"}),
    ({"codes": ("A-1",)}, {"m3", "m6"}),
    ({"entities": ("Jon",), "codes": ("A-1",)}, {"m3"}),
    ({"entities": ("Mira",), "speakers": ("Mira",)}, {"m0"}),
    ({"entities": ("Nobody",)}, set()),
]


@pytest.mark.parametrize("eager_bytes", [0, 10**9])
@pytest.mark.parametrize(("filters", "found"), FILTERS)
def test_filters_by_lists_hold_in_every_segment_cold_and_warm(filters, found, eager_bytes):
    with reading(stored(*TOLD), eager_bytes=eager_bytes) as reader:
        assert passing(reader, **filters) == found
        reader.warm_up()
        reader.current().scopes.clear()
        assert passing(reader, **filters) == found


@pytest.mark.parametrize("mode", ["hybrid", "dense", "keyword"])
def test_a_search_ranks_only_what_names_the_entities(mode):
    with reading(stored(*TOLD)) as reader:
        retriever = ShardRetriever(reader, WordEmbedder())
        result = retriever.search(
            SearchQuery("Line of script", Filters(entities=("Mira", "Jon")), 20, 0.0, mode, readable=EVERYTHING)
        )
    assert ({hit.passage.id for hit in result.hits}, result.searched) == ({"m0", "m1", "m3", "m4"}, 4)
    assert next(hit.passage for hit in result.hits if hit.passage.id == "m3") == TOLD[3]


def test_a_warm_filter_reads_nothing():
    watched = WatchedStore(stored(*TOLD))
    with reading(watched) as reader:
        reader.warm_up()
        calls = len(watched.calls)
        assert reader.current().scope(row_filter(Filters(entities=("Mira",), codes=("P0700",)))).count == 1
        assert len(watched.calls) == calls


def test_a_filter_needs_the_rows_of_its_own_values_alone():
    crowd = [naming(number, f"name {number}", "everybody") for number in range(300)]
    part = part_of(lists_of(crowd), np.arange(300))
    part.open(["entities"], gather_resident(part.spans(["entities"])))
    spans = part.row_spans({"entities": ["name 123", "name 7", "nobody"]})
    assert [span.length for span in spans] == [2, 2]


def test_lists_live_through_deletion_and_compaction():
    store = stored(*TOLD)
    IndexWriter(store, WordEmbedder()).add("script", indexable([naming(9, "Mira", "Ben")]))
    IndexWriter(store, WordEmbedder()).delete("script", ["m1"])
    with reading(store) as reader:
        before = passing(reader, entities=("Mira", "the bell"))
        for number in range(20, 29):
            IndexWriter(store, WordEmbedder()).add("script", indexable([naming(number, "Cy", str(number))]))
        assert compact(store) is not None
        reader.refresh()
        assert before == {"m0", "m4", "m9"}
        assert len(reader.current().segments) < 9
        assert passing(reader, entities=("Mira", "the bell")) == before
        assert passing(reader, entities=("21", "28", "Ben")) == {"m21", "m28", "m9"}


@settings(max_examples=10)
@given(st.lists(st.booleans(), min_size=7, max_size=7).filter(any))
def test_any_selection_keeps_each_passages_own_lists(keep):
    contents = contents_of(*TOLD).select(np.array(keep))
    expected = [set(passage.entities) for passage, kept in zip(TOLD, keep, strict=True) if kept]
    assert as_sets(contents.lists, sum(keep)) == expected
