"""Columns: fields to filter by, through writing, reading, merging and leaving rows out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.errors import CorpusInvalid, IndexCorrupt
from cicada.index.columns import MAX_FIELDS, ColumnPart, columns_of, concat_columns, decode_columns, encode_columns
from cicada.index.segment_format import Encoded
from tests.support.passages import make_passage, make_passages
from tests.support.sections import MemorySections, gather_resident

FIELDS = ("episode", "speaker", "metadata.mood")


def with_metadata(number: int, **metadata: str):
    return make_passage(number).model_copy(update={"metadata": metadata})


def part_of(columns, order) -> ColumnPart:
    return ColumnPart(MemorySections({"columns": encode_columns(columns, order)}), len(order))


def values(columns, field) -> list[str | None]:
    column = columns[field]
    return [column.values[code - 1] if code else None for code in column.codes.tolist()]


def matching(part: ColumnPart, where) -> list[int]:
    part.decode(where, gather_resident(part.spans(where)))
    mask = part.matching(where)
    return list(range(part._count)) if mask is None else np.flatnonzero(mask).tolist()


def test_a_field_of_every_passage_comes_back_in_the_order_of_rows():
    passages = make_passages(40)
    order = np.random.default_rng(1).permutation(40)
    columns = decode_columns(part_of(columns_of(passages), order), gather_resident)
    assert values(columns, "episode") == [passages[at].locator.episode_id for at in order]
    assert values(columns, "speaker") == [passages[at].locator.speaker for at in order]


def test_rows_pass_that_have_one_of_the_values_in_every_field():
    part = part_of(columns_of(make_passages(30)), np.arange(30))
    wanted = {"speaker": ["Jon", "Ada"], "episode": ["ep2", "ep9"]}
    assert matching(part, wanted) == [row for row in range(10, 20) if row % 3]


@pytest.mark.parametrize("where", [{}, {"speaker": ()}, {"metadata.none": []}])
def test_a_filter_without_values_lets_all_rows_pass(where):
    assert matching(part_of(columns_of(make_passages(4)), np.arange(4)), where) == [0, 1, 2, 3]


@pytest.mark.parametrize("where", [{"speaker": ["Nobody"]}, {"metadata.none": ["x"]}, {"metadata.mood": [""]}])
def test_a_value_that_no_passage_has_lets_none_pass(where):
    passages = [with_metadata(0, mood="glad"), with_metadata(1)]
    assert matching(part_of(columns_of(passages), np.arange(2)), where) == []


def test_passages_without_a_field_do_not_pass_its_filter():
    passages = [with_metadata(0, mood="glad"), with_metadata(1), with_metadata(2, mood="grim")]
    part = part_of(columns_of(passages), np.arange(3))
    assert matching(part, {"metadata.mood": ["glad", "grim"]}) == [0, 2]


@pytest.mark.parametrize("distinct", [1, 254, 255, 256, 257, 65_535, 65_536])
def test_any_number_of_values_is_told_apart(distinct):
    base = make_passage(0)
    columns = columns_of([base])
    many = columns["speaker"].__class__(tuple(map(str, range(distinct))), np.arange(1, distinct + 1).astype(np.uint32))
    read = decode_columns(part_of({"speaker": many}, np.arange(distinct)), gather_resident)
    assert values(read, "speaker") == list(map(str, range(distinct)))


moods = st.lists(st.sampled_from(["glad", "grim", "日本", "", None]), min_size=1, max_size=12)


@given(st.lists(moods, min_size=1, max_size=4))
def test_merging_is_the_same_as_writing_together(parts):
    passages = [[with_metadata(0, **({} if m is None else {"mood": m})) for m in part] for part in parts]
    together = columns_of([passage for part in passages for passage in part])
    merged = concat_columns([(columns_of(part), len(part)) for part in passages])
    assert list(merged) == list(together)
    for field in merged:
        assert values(merged, field) == values(together, field)


@given(moods, st.data())
def test_leaving_rows_out_leaves_only_their_values(part, data):
    columns = columns_of([with_metadata(0, mood=m) if m is not None else with_metadata(0) for m in part])
    rows = np.array(data.draw(st.lists(st.integers(0, len(part) - 1), min_size=1)), dtype=np.intp)
    if "metadata.mood" in columns:
        taken = columns["metadata.mood"].take(rows)
        assert values({"x": taken}, "x") == [part[row] for row in rows]
        assert set(taken.values) == {part[row] for row in rows} - {None}


def test_too_many_fields_are_refused():
    with pytest.raises(CorpusInvalid, match=str(MAX_FIELDS)):
        columns_of([with_metadata(0, **{f"k{number}": "v" for number in range(MAX_FIELDS)})])


@pytest.mark.parametrize(
    ("meta", "values_json", "codes"),
    [
        ({"fields": "speaker"}, b'["a"]', b"\1\1"),
        ({"fields": [1]}, b'["a"]', b"\1\1"),
        ({"fields": ["speaker"]}, b'{"a": 1}', b"\1\1"),
        ({"fields": ["speaker"]}, b"[1]", b"\1\1"),
        ({"fields": ["speaker"]}, b'["a', b"\1\1"),
        ({"fields": ["speaker"]}, b'["a"]', b"\1\2"),
        ({"fields": ["speaker"]}, b'["a"]', b"\1"),
    ],
)
def test_columns_that_were_written_wrongly_are_refused(meta, values_json, codes):
    body = {"columns.0.values": values_json, "columns.0.codes": codes}
    with pytest.raises(IndexCorrupt):
        decode_columns(ColumnPart(MemorySections({"columns": Encoded(meta, {}, body)}), 2), gather_resident)
