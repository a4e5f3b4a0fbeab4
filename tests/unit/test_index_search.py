"""Exact search: every row, filters first, order that depends on nothing but the vectors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.index.search import rank
from cicada.index.segment import Segment, decode, encode
from tests.support.passages import indexable, make_passages, unit_rows

DIMENSIONS = 24
COUNT = 90
PASSAGES = make_passages(COUNT)
VECTORS = unit_rows(COUNT, DIMENSIONS)
QUERY = unit_rows(1, DIMENSIONS, seed=1)[0]


def segment(passages, vectors, collection="script") -> Segment:
    written = encode(collection, "test.model", indexable(passages), vectors)
    return decode(written.data, head_bytes=written.head_bytes, sha256=written.sha256)


def split(vectors, *cuts: int) -> list[Segment]:
    edges = [0, *sorted(set(cuts) - {0, COUNT}), COUNT]
    return [segment(PASSAGES[a:b], vectors[a:b]) for a, b in pairwise(edges)]


def ids(ranking) -> list[str]:
    return [ranked.segment.passage(ranked.row).id for ranked in ranking.rows]


def expected(vectors, keep=lambda passage: True) -> list[str]:
    """The same, in the plainest way: sorted by the exact cosine, ties in order."""
    cosines = vectors.astype(np.float64) @ QUERY.astype(np.float64)
    rows = [row for row in range(COUNT) if keep(PASSAGES[row])]
    return [PASSAGES[row].id for row in sorted(rows, key=lambda row: (-cosines[row].round(12), row))]


def test_every_row_is_ranked():
    ranking = rank(split(VECTORS), QUERY, {}, COUNT)
    assert ids(ranking) == expected(VECTORS)
    assert ranking.searched == COUNT


def test_cosines_are_exact():
    for ranked in rank(split(VECTORS, 40), QUERY, {}, COUNT).rows:
        own = ranked.segment.vectors[ranked.row].astype(np.float64)
        assert ranked.cosine == pytest.approx(float(own @ QUERY.astype(np.float64)), abs=1e-12)


@given(cuts=st.lists(st.integers(0, COUNT), max_size=6), limit=st.integers(1, COUNT + 5))
def test_how_rows_are_spread_over_segments_changes_nothing(cuts, limit):
    whole = rank(split(VECTORS), QUERY, {}, limit)
    spread = rank(split(VECTORS, *cuts), QUERY, {}, limit)
    assert ids(spread) == ids(whole) == expected(VECTORS)[:limit]
    assert [ranked.cosine for ranked in spread.rows] == [ranked.cosine for ranked in whole.rows]


@given(
    episodes=st.sets(st.sampled_from([f"ep{n}" for n in range(1, 11)])),
    speakers=st.sets(st.sampled_from(["Mira", "Jon", "Ada", "Nobody"])),
    limit=st.integers(1, 20),
)
def test_filters_apply_before_ranking(episodes, speakers, limit):
    ranking = rank(split(VECTORS, 30), QUERY, {"episode": episodes, "speaker": speakers}, limit)
    wanted = expected(
        VECTORS,
        lambda passage: (
            (not episodes or passage.locator.episode_id in episodes)
            and (not speakers or passage.locator.speaker in speakers)
        ),
    )
    assert ids(ranking) == wanted[:limit]
    assert ranking.searched == len(wanted)


def test_a_collection_is_a_filter_too():
    other = segment(make_passages(5, collection="notes"), VECTORS[:5], "notes")
    ranking = rank([*split(VECTORS), other], QUERY, {"collection": ["notes"]}, 20)
    assert ranking.searched == 5
    assert {ranked.segment.collection for ranked in ranking.rows} == {"notes"}


def test_passages_without_a_field_have_none_of_its_values():
    assert rank(split(VECTORS), QUERY, {"source": ["x"]}, 5).rows == ()


def test_nothing_to_search_finds_nothing():
    assert rank([], QUERY, {}, 5).searched == 0


@given(groups=st.lists(st.integers(0, 4), min_size=COUNT, max_size=COUNT), cut=st.integers(0, COUNT))
def test_ties_stand_in_order_wherever_the_rows_lie(groups, cut):
    tied = VECTORS[:5][groups]
    assert ids(rank(split(tied, cut), QUERY, {}, 30)) == expected(tied)[:30]


@given(seed=st.integers(0, 50), limit=st.integers(1, 30))
def test_rows_nearer_to_each_other_than_float32_can_tell_are_in_their_true_order(seed, limit):
    noise = np.random.default_rng(seed).normal(size=VECTORS.shape) * 3e-8
    near = (VECTORS[:1] + noise).astype(np.float32)
    assert ids(rank(split(near, 41), QUERY, {}, limit)) == expected(near)[:limit]
