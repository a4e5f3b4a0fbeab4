"""BM25 over several parts: exact, whatever the cut, the tombstones and the filters; phrases, prefixes, any query."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.indexable import WeightedText
from cicada.index.lexical.analysis import analyse
from cicada.index.lexical.codec import encode_lexical
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.search import LexicalQuery
from tests.support.lexical import search_lexical
from tests.support.sections import MemorySections, gather_resident

Document = tuple[tuple[str, float], ...]
"""A passage's parts: texts and weights."""

WORDS = ("gauge", "leak", "pipe", "valve", "pump", "seal", "crank", "bolt")
documents = st.lists(
    st.lists(
        st.tuples(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), st.sampled_from([1.0, 0.5, 0.25])),
        min_size=1,
        max_size=3,
    ).map(tuple),
    min_size=1,
    max_size=25,
)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


def part_of(texts: Sequence[Document], order: Sequence[int] | None = None, language: str | None = "eng") -> LexicalPart:
    rows = analyse([[WeightedText(*part) for part in text] for text in texts], [language] * len(texts))
    ordered = np.array(range(len(texts)) if order is None else order, np.intp)
    return LexicalPart(MemorySections({"lexical": encode_lexical(rows, ordered)}), len(texts))


def plain(*texts: str) -> list[Document]:
    return [((text, 1.0),) for text in texts]


def found(parts: Sequence[LexicalPart], query: str, limit: int = 10) -> list[int]:
    """The rows of a single part that are found, best first."""
    nothing = [None] * len(parts)
    rows: list[int] = search_lexical(parts, query, nothing, nothing, limit, gather_resident).row.tolist()
    return rows


def reference(texts: Sequence[Document], query: str) -> list[float]:
    """BM25 by the formula, in plain Python."""
    counts = []
    for text in texts:
        tf: defaultdict[str, float] = defaultdict(float)
        for words, weight in text:
            for word in words.split():
                tf[word] += weight
        counts.append(tf)
    lengths = [sum(tf.values()) for tf in counts]
    average = sum(lengths) / len(texts) or 1.0
    scores = [0.0] * len(texts)
    for word, times in Counter(query.split()).items():
        df = sum(1 for tf in counts if tf[word])
        idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
        for at, tf in enumerate(counts):
            norm = 1.2 * (1 - 0.75 + 0.75 * lengths[at] / average)
            scores[at] += times * idf * 2.2 * tf[word] / (tf[word] + norm)
    return scores


@settings(max_examples=50)
@given(documents, queries, st.integers(1, 12))
def test_scores_are_the_formulas_and_the_best_are_found(texts, query, limit):
    part = part_of(texts)
    hits = search_lexical([part], query, [None], [None], limit, gather_resident)
    expected = reference(texts, query)
    best = sorted((score for score in expected if score > 0), reverse=True)[:limit]
    assert hits.score.tolist() == pytest.approx(best, rel=1e-5)
    assert [expected[row] for row in hits.row] == pytest.approx(hits.score.tolist(), rel=1e-5)
    assert len(set(hits.row.tolist())) == len(hits.row)


@settings(max_examples=40)
@given(documents, queries, st.data())
def test_scores_do_not_depend_on_how_the_corpus_is_cut_nor_on_the_order_of_rows(texts, query, data):
    whole = part_of(texts)
    one = LexicalQuery([whole], query, [None], gather_resident)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(texts)), max_size=3)))
    pieces = [texts[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(texts)], strict=True)]
    orders = [data.draw(st.permutations(range(len(piece)))) for piece in pieces]
    parts = [part_of(piece, order) for piece, order in zip(pieces, orders, strict=True)]
    nothing = [None] * len(parts)
    several = LexicalQuery(parts, query, nothing, gather_resident)
    hits = several.search(nothing, len(texts))
    starts = [0, *cuts]
    documents_found = [starts[s] + orders[s][r] for s, r in zip(hits.segment, hits.row, strict=True)]
    again = one.scores(np.zeros(len(hits.row), np.intp), np.array(documents_found, np.intp))
    assert hits.score.tobytes() == again.tobytes()
    assert several.ideal == one.ideal
    assert len(hits.row) == len(one.search([None], len(texts)).row)


@settings(max_examples=40)
@given(documents, queries, st.data())
def test_deleted_rows_count_for_nothing(texts, query, data):
    alive = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))))
    part = part_of(texts)
    hits = search_lexical([part], query, [alive], [None], len(texts), gather_resident)
    kept = [text for text, stays in zip(texts, alive, strict=True) if stays]
    if not kept:
        assert not len(hits.row)
        return
    compacted = search_lexical([part_of(kept)], query, [None], [None], len(texts), gather_resident)
    renumbered = np.cumsum(alive) - 1
    assert renumbered[hits.row].tolist() == compacted.row.tolist()
    assert hits.score.tobytes() == compacted.score.tobytes()


@settings(max_examples=30)
@given(documents, queries, st.data())
def test_filters_rank_among_what_they_allow_with_the_scores_of_the_whole(texts, query, data):
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))))
    limit = data.draw(st.integers(1, 5))
    prepared = LexicalQuery([part_of(texts)], query, [None], gather_resident)
    everything = prepared.search([None], len(texts))
    hits = prepared.search([allowed], limit)
    among = [row for row in everything.row.tolist() if allowed[row]]
    assert hits.row.tolist() == among[:limit]
    assert set(hits.score.tolist()) <= set(everything.score.tolist())


def test_many_rows_and_common_words_are_ranked_as_the_formula_does():
    generator = np.random.default_rng(5)
    shares = np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.03, 0.015, 0.005])
    texts = plain(*(" ".join(generator.choice(WORDS, generator.integers(1, 60), p=shares)) for _ in range(4000)))
    parts = [part_of(texts[:2500]), part_of(texts[2500:])]
    nothing = [None, None]
    for query in ("gauge bolt crank", "gauge leak pipe valve pump seal crank bolt", "gauge", "bolt leak"):
        hits = search_lexical(parts, query, nothing, nothing, 10, gather_resident)
        expected = reference(texts, query)
        assert hits.score.tolist() == pytest.approx(sorted(expected, reverse=True)[:10], rel=1e-5)


def test_rows_beyond_the_first_65536_are_found_and_scored():
    texts = plain(*["gauge"] * 3, *["pipe"] * 65_600, "gauge leak", *["pipe gauge"] * 800, "leak")
    part = part_of(texts)
    assert part.row_blocks == 2
    assert found([part], "leak") == [66_404, 65_603]
    assert found([part], "leak gauge", 2) == [65_603, 66_404]
    rows = [65_604, 0, 66_404, 65_603]
    scores = LexicalQuery([part], "pipe gauge", [None], gather_resident).scores(np.zeros(4, np.intp), np.array(rows))
    expected = reference(texts, "pipe gauge")
    assert scores.tolist() == pytest.approx([expected[row] for row in rows], rel=1e-5)


def test_given_rows_are_scored_in_any_order_and_without_a_match_score_nothing():
    part = part_of(plain("gauge leak", "pipe", "leak leak"))
    query = LexicalQuery([part, part], "leak", [None, None], gather_resident)
    scores = query.scores(np.array([1, 0, 0, 1]), np.array([2, 1, 0, 0]))
    assert scores[1] == 0
    assert scores[2] == scores[3]
    assert scores[0] > scores[2] > 0


def test_what_fusion_needs_is_told():
    query = LexicalQuery([part_of(plain("gauge leak", "pipe"))], "gauge flux leak", [None], gather_resident)
    assert (query.asked, query.found) == (3, 2)
    assert 0 < query.search([None], 1).score[0] < query.ideal < query.asked_ideal


def test_neighbours_words_count_by_their_weight():
    texts: list[Document] = [(("no", 1.0), ("gauge", 0.5)), (("gauge", 1.0), ("no", 0.5)), (("no", 1.0), ("no", 0.5))]
    assert found([part_of(texts)], "gauge") == [1, 0]


# --- phrases and prefixes ---


def test_a_phrase_is_found_where_its_words_stand_in_order():
    part = part_of(plain("the pressure gauge leaks", "gauge pressure", "pressure of a gauge", "a Pressure-Gauge"))
    assert sorted(found([part], '"pressure gauge"')) == [0, 3]
    assert found([part], '"gauge pressure"') == [1]
    assert found([part], '"gauge of pressure"') == []
    assert sorted(found([part], 'leak "pressure gauge"')) == [0, 1, 2, 3]


def test_frequent_words_stand_in_phrases():
    part = part_of(plain("to be or not to be", "not to be", "be to or be not"))
    assert found([part], '"to be or not to be"') == [0]
    assert sorted(found([part], '"not to be"')) == [0, 1]


def test_only_a_passages_own_text_has_phrases():
    part = part_of([(("pressure", 1.0), ("pressure gauge", 0.5)), (("pressure gauge", 1.0),)])
    assert found([part], '"pressure gauge"') == [1]


def test_phrases_of_scripts_without_spaces_and_of_codes():
    part = part_of(plain("全文検索エンジン", "検索の全文", "see AWS::S3::Bucket now"), language=None)
    assert found([part], '"全文検索"') == [0]
    assert found([part], '"s3 bucket"') == [2]
    assert found([part], '"see AWS::S3::Bucket"') == [2]
    assert sorted(found([part], "文")) == [0, 1]


@settings(max_examples=30)
@given(documents, st.lists(st.sampled_from(WORDS), min_size=2, max_size=3))
def test_phrases_are_found_where_plain_reading_finds_them(texts, phrase):
    def has(words: list[str]) -> bool:
        return any(words[at : at + len(phrase)] == phrase for at in range(len(words)))

    expected = [at for at, text in enumerate(texts) if has(text[0][0].split())]
    assert sorted(found([part_of(texts)], f'"{" ".join(phrase)}"', 100)) == expected


def test_a_prefix_finds_every_word_that_begins_with_it():
    part = part_of(plain("gauges", "gaugeable", "gaunt", "relational", "P0700", "ep2-0029", "Gauß"), language="eng")
    assert sorted(found([part], "gau*")) == [0, 1, 2, 6]
    assert sorted(found([part], "gauge*")) == [0, 1]
    assert found([part], "relation*") == [3]
    assert found([part], "P07*") == [4]
    assert found([part], "ep2-00*") == [5]
    assert found([part], "zzz*") == []


def test_a_prefix_of_very_many_words_stands_for_the_first_of_them():
    part = part_of(plain(*(f"q{number:04}" for number in range(1000))))
    assert sorted(found([part], "q*", 1000)) == list(range(256))
    assert len(found([part], "q09*", 1000)) == 100


# --- languages ---


def test_each_passage_is_found_by_its_own_languages_forms():
    german = part_of(plain("Die Häuser sind groß", "Das Haus"), language="deu")
    english = part_of(plain("The houses are large", "no notes"), language="eng")
    french = part_of(plain("l'avion noté"), language="fra")
    parts = [german, english, french]
    nothing = [None] * 3

    def segments(query: str) -> list[tuple[int, int]]:
        hits = search_lexical(parts, query, nothing, nothing, 10, gather_resident)
        return sorted(zip(hits.segment.tolist(), hits.row.tolist(), strict=True))

    assert segments("Haus") == [(0, 0), (0, 1)]
    assert segments("house") == [(1, 0)]
    assert segments("avions") == [(2, 0)]
    assert segments("notes") == [(1, 1), (2, 0)]


# --- anything goes ---


@settings(max_examples=150)
@given(st.text() | st.text(alphabet="\"*“”«» gaugepi.:-'全犬"))
def test_no_query_is_an_error(query):
    hits = LexicalQuery([ANYTHING], query, [None], gather_resident).search([None], 3)
    assert len(hits.row) <= 3
    assert (np.diff(hits.score) <= 0).all()


ANYTHING = part_of(plain("gauge pipe", "全文検索 犬", "l'été P0700", ""), language=None)


def test_very_long_queries_are_answered():
    assert found([ANYTHING], "pipe " * 100_000) == [0]
    assert found([ANYTHING], '"' + "pipe " * 3000 + '"') == []
    assert 1 in found([ANYTHING], "検索" * 20_000)


def test_nothing_is_found_in_nothing():
    empty = part_of([])
    assert found([], "gauge") == []
    assert found([empty], 'gauge "pressure gauge" ga*') == []
    assert found([empty, ANYTHING], "pipe") == [0]
    assert found([ANYTHING], "pipe", 0) == []
