"""The lexical part's sections: coded and decoded, compacted, read by range in two rounds, and never trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.indexable import WeightedText
from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.lexical.analysis import analyse
from cicada.index.lexical.codec import TermRows, concat, decode_lexical, encode_lexical, take
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.postings import decode_varints, encode_varints
from cicada.index.lexical.search import LexicalQuery
from cicada.index.segment_format import Encoded, Span
from tests.support.lexical import search_lexical
from tests.support.sections import MemorySections, gather_resident

TEXTS = (
    "the pressure gauge P0700 leaks",
    "Les élèves au café, l'été",
    "全文検索エンジンと犬",
    "gauge gauge gauge",
    "",
    "pipes and valves, version 1.2.3",
)
QUERIES = ("gauge", '"pressure gauge"', "pip* élève", "検索 犬", "P0700 1.2.3", "nothing of this", "")


def analysed(texts: Sequence[str], neighbour: str = "valve") -> TermRows:
    return analyse([[WeightedText(text, 1.0), WeightedText(neighbour, 0.5)] for text in texts], [None] * len(texts))


def encoded(rows: TermRows, order: Sequence[int] | None = None) -> Encoded:
    return encode_lexical(rows, np.array(range(len(rows)) if order is None else order, np.intp))


def opened(section: Encoded, count: int) -> LexicalPart:
    return LexicalPart(MemorySections({"lexical": section}), count)


class ColdSections(MemorySections):
    """Sections of which only the head is in memory."""

    def resident(self, name: str) -> memoryview | None:  # type: ignore[override]
        return None


class CountingGather:
    """Reads cold sections, and counts rounds and bytes."""

    def __init__(self) -> None:
        self.rounds: list[list[Span]] = []

    def __call__(self, spans: Sequence[Span]) -> list[memoryview]:
        self.rounds.append(list(spans))
        return [
            MemorySections.resident(span.sections, span.name)[span.start : span.start + span.length]  # type: ignore[arg-type]
            for span in spans
        ]


# --- coding, and compaction ---


def test_what_was_encoded_is_decoded_in_the_order_of_rows():
    rows = analysed(TEXTS)
    order = [3, 0, 5, 1, 4, 2]
    section = encoded(rows, order)
    decoded = decode_lexical(MemorySections({"lexical": section}), len(TEXTS), gather_resident)
    assert encoded(decoded) == section
    back = encoded(decoded, np.argsort(order).tolist())
    assert back == encoded(rows)


def test_encoding_is_the_same_each_time():
    assert encoded(analysed(TEXTS)) == encoded(analysed(TEXTS))


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_encoding_in_small_pieces_gives_the_same_bytes(monkeypatch, at_once):
    rows = analysed(TEXTS)
    whole = encoded(rows)
    monkeypatch.setattr("cicada.index.lexical.codec.POSTINGS_AT_ONCE", at_once)
    assert encoded(rows) == whole


def test_the_forward_form_tells_weights_positions_and_lengths():
    rows = analyse([[WeightedText("gauge pipe gauge", 1.0), WeightedText("pipe valve", 0.25)]], ["en"])
    assert list(rows.vocabulary) == ["gaug\ten", "pipe\ten", "valv\ten"]
    assert (rows.weights / 64).tolist() == [2.0, 1.25, 0.25]
    assert rows.occurrences.tolist() == [2, 1, 0]
    assert rows.positions.tolist() == [0, 2, 1]
    assert (rows.lengths / 64).tolist() == [3.5]
    assert rows.language_names == ("eng",)


def test_parts_that_weigh_nothing_do_not_count():
    assert analyse([[WeightedText("gauge", 1.0), WeightedText("pipe", 0.0)]], ["eng"]).vocabulary[0] == "gaug\ten"
    assert not search_lexical(
        [opened(encoded(analyse([[WeightedText("gauge", 1.0), WeightedText("pipe", 0.0)]], ["eng"])), 1)],
        "pipe", [None], [None], 3, gather_resident,
    ).row.size  # fmt: skip


@settings(max_examples=25)
@given(st.data())
def test_compaction_without_the_texts_gives_the_segment_that_the_texts_would(data):
    texts = data.draw(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8))
    cut = data.draw(st.integers(0, len(texts)))
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))))
    halves = [
        decode_lexical(MemorySections({"lexical": encoded(analysed(half))}), len(half), gather_resident)
        for half in (texts[:cut], texts[cut:])
    ]
    compacted = encoded(
        concat([take(half, np.flatnonzero(mask)) for half, mask in zip(halves, (keep[:cut], keep[cut:]), strict=True)])
    )
    fresh = encoded(analysed([text for text, kept in zip(texts, keep, strict=True) if kept]))
    assert (compacted.head, {**compacted.body, "lexical.languages": b""}) == (
        fresh.head,
        {**fresh.body, "lexical.languages": b""},
    )
    spoken = {name: rows for name, rows in compacted.meta["languages"].items() if rows}
    assert {**compacted.meta, "languages": spoken} == fresh.meta


def test_many_different_weights_are_kept_exactly():
    texts = [
        [WeightedText("gauge", 1.0), *(WeightedText("gauge", 1 / 64) for _ in range(extra))] for extra in range(300)
    ]
    rows = analyse(texts, ["eng"] * 300)
    section = encoded(rows)
    assert section.meta["code_width"] == 2
    decoded = decode_lexical(MemorySections({"lexical": section}), 300, gather_resident)
    assert decoded.weights.tolist() == list(range(64, 364))
    assert search_lexical([opened(section, 300)], "gauge", [None], [None], 300, gather_resident).row.size == 300


def test_a_segment_takes_only_an_order_of_its_own_passages():
    with pytest.raises(ValueError, match="order"):
        encode_lexical(analysed(TEXTS), np.arange(3))


@given(st.lists(st.integers(0, 2**35 - 1)))
def test_numbers_of_any_length_come_back(values):
    assert decode_varints(memoryview(encode_varints(np.array(values, np.int64)))).tolist() == values


@pytest.mark.parametrize("data", [b"\x80", b"\x01\xff", b"\xff" * 9 + b"\x01"])
def test_bytes_that_are_no_numbers_are_refused(data):
    with pytest.raises(ValueError, match="number"):
        decode_varints(memoryview(data))


# --- cold ---


def cold(texts: Sequence[str], parts: int = 3) -> list[LexicalPart]:
    section = encoded(analysed(texts))
    return [LexicalPart(ColdSections({"lexical": section}), len(texts)) for _ in range(parts)]


@pytest.mark.parametrize("query", QUERIES)
def test_a_cold_search_finds_what_a_warm_one_does_in_two_rounds(query):
    parts = cold(TEXTS)
    warm = [opened(encoded(analysed(TEXTS)), len(TEXTS)) for _ in parts]
    gather = CountingGather()
    prepared = LexicalQuery(parts, query, [None] * 3, gather)
    expected = LexicalQuery(warm, query, [None] * 3, gather_resident)
    hits, others = prepared.search([None] * 3, 9), expected.search([None] * 3, 9)
    assert hits.row.tolist() == others.row.tolist()
    assert hits.score.tobytes() == others.score.tobytes()
    assert prepared.scores(others.segment, others.row).tobytes() == others.score.tobytes()
    assert len(gather.rounds) <= 2
    assert {span.name for span in gather.rounds[0]} <= {"lexical.dictionary", "lexical.lengths"}
    assert all(
        {span.name for span in spans} <= {"lexical.postings", "lexical.positions"} for spans in gather.rounds[1:]
    )


def test_dictionary_entries_that_a_cold_search_learnt_are_not_read_again():
    parts = cold(TEXTS)
    for _ in range(2):
        gather = CountingGather()
        search_lexical(parts, "gauge", [None] * 3, [None] * 3, 9, gather)
    names = {span.name for spans in gather.rounds for span in spans}
    assert names == {"lexical.lengths", "lexical.postings"}


def cold_search(parts):
    return search_lexical(parts, "gauge", [None] * len(parts), [None] * len(parts), 9, CountingGather())


def test_cold_searches_of_different_parts_at_once_do_not_meet():
    parts = cold(TEXTS)
    expected = {count: cold_search(parts[:count]) for count in (1, 2, 3)}

    def search(number: int) -> None:
        count = number % 3 + 1
        assert cold_search(parts[:count]).score.tobytes() == expected[count].score.tobytes()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(search, range(200)))


def test_other_tombstones_are_counted_again():
    parts = cold(TEXTS, 2)
    search_lexical(parts, "gauge", [None] * 2, [None] * 2, 9, CountingGather())
    alive = np.arange(len(TEXTS)) != 3
    gather = CountingGather()
    hits = search_lexical(parts, "gauge", [None, alive], [None] * 2, 9, gather)
    assert list(zip(hits.segment.tolist(), hits.row.tolist(), strict=True)) == [(0, 3), (0, 0), (1, 0)]
    assert [span.name for span in gather.rounds[0]] == ["lexical.lengths"] * 2


def test_a_cold_search_reads_a_small_share_of_a_large_dictionary():
    texts = [f"q{number} x{number} gauge" for number in range(3000)]
    parts = cold(texts, 1)
    gather = CountingGather()
    search_lexical(parts, "q1234 gauge", [None], [None], 3, gather)
    dictionary = sum(span.length for span in gather.rounds[0] if span.name == "lexical.dictionary")
    assert dictionary < parts[0].sections.size("lexical.dictionary") / 10


def test_parts_that_are_cold_and_parts_that_are_warm_are_searched_together():
    section = encoded(analysed(TEXTS))
    mixed = [opened(section, len(TEXTS)), LexicalPart(ColdSections({"lexical": section}), len(TEXTS))]
    hits = search_lexical(mixed, '"pressure gauge" leaks', [None] * 2, [None] * 2, 9, CountingGather())
    assert hits.segment.tolist() == [0, 1, 0, 1]
    assert hits.score[0] == hits.score[1]


# --- damage ---


def damaged(meta: Mapping[str, Any] | None = None, **sections: bytes) -> Encoded:
    section = encoded(analysed(TEXTS))
    return replace(
        section,
        meta={**section.meta, **(meta or {})},
        head={name: sections.get(name.partition(".")[2], data) for name, data in section.head.items()},
        body={name: sections.get(name.partition(".")[2], data) for name, data in section.body.items()},
    )


@pytest.mark.parametrize(
    "meta",
    [
        {"terms": -1},
        {"postings": 10_000},
        {"postings": "many"},
        {"code_width": 3},
        {"length_width": 4},
        {"total_length": None},
        {"languages": {"eng": 1}},
        {"languages": ["eng"]},
        {"languages": {"eng": 5, "fra": "1"}},
    ],
)
def test_a_head_that_does_not_fit_is_refused(meta):
    with pytest.raises(IndexCorrupt):
        opened(damaged(meta), len(TEXTS))


@pytest.mark.parametrize("name", ["lengths", "postings", "dictionary", "languages", "blocks"])
def test_sections_of_another_size_are_refused(name):
    section = encoded(analysed(TEXTS))
    data = {**section.body, **section.head}[f"lexical.{name}"]
    changed: dict[str, Any] = {name: data[: len(data) // 2]}
    with pytest.raises(IndexCorrupt):
        opened(damaged(**changed), len(TEXTS))


def test_a_segment_without_a_lexical_part_is_refused():
    with pytest.raises(IndexCorrupt):
        LexicalPart(MemorySections({}), 3)


@pytest.mark.parametrize("meta", [{"analyzer": 0}, {"format": 2}])
def test_another_analysers_segment_is_told_apart(meta):
    with pytest.raises(IndexMismatch):
        opened(damaged(meta), len(TEXTS))


@settings(max_examples=100)
@given(st.data())
def test_damaged_bytes_are_an_error_of_the_index_or_harmless(data):
    section = WHOLE
    name = data.draw(st.sampled_from(sorted({**section.body, **section.head})))
    written = bytearray({**section.body, **section.head}[name])
    for _ in range(data.draw(st.integers(1, 3))):
        if written:
            written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    changed: dict[str, Any] = {name.partition(".")[2]: bytes(written)}
    broken = damaged(**changed)
    alive = np.arange(len(TEXTS)) != 2
    try:
        part = opened(broken, len(TEXTS))
        for query in QUERIES:
            for mask in (None, alive):
                hits = search_lexical([part], query, [mask], [None], 9, gather_resident)
                assert (hits.row < len(TEXTS)).all()
        decode_lexical(MemorySections({"lexical": broken}), len(TEXTS), gather_resident)
    except (IndexCorrupt, IndexMismatch):
        pass


WHOLE = encoded(analysed(TEXTS))
