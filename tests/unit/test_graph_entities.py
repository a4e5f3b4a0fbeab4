"""The entity graph: what occurs together, neighbours, paths, and the passages that show them."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import IndexMissing, RetrievalInvalid
from cicada.index.mentions import Mentions, ScopedMentions, frequent_pairs
from cicada.index.writer import IndexWriter
from cicada.retrieval import entity_paths
from cicada.retrieval.entity_paths import closest_names
from cicada.retrieval.graph import GRAPHS_HELD, MAX_NAMED, EntityGraph
from cicada.retrieval.ports import Filters
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder
from tests.support.entities import naming, reading, stored
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable

ALL = Filters()
CORPUS = [
    naming(0, "Mira Oake", "Jon", "the bell"),
    naming(1, "MIRA OAKE", "Jon"),
    naming(2, "Mira Oake", "the bell", "Mira  oake"),
    naming(3, "Jon", "Ada", workflow_id="w1"),
    naming(4, "Ada", "Ben", workflow_id="w1"),
    naming(5, "Ben", "Cy"),
    naming(6, "Cy", "the bell", "Dot"),
    naming(7),
    naming(8, "Alone"),
    naming(9, "Ben", "Eve", collection="notes"),
]


@pytest.fixture(scope="module")
def graph():
    with reading(stored(*CORPUS, segment_rows=2)) as reader:
        yield EntityGraph(reader)


def named(ties) -> list[tuple[str, str, int]]:
    return [(tie.first.name, tie.second.name, tie.passages) for tie in ties]


def shown(tie) -> set[str]:
    return {passage.id for passage in tie.shown_by}


# --- together ---


def test_names_are_one_however_they_are_spelt_and_shown_as_most_passages_spell_them(graph):
    found = graph.neighbours("mira OAKE", ALL, readable=EVERYTHING, limit=10)
    assert (found.entity.name, found.entity.passages) == ("Mira Oake", 3)
    assert named(found.ties) == [("Mira Oake", "Jon", 2), ("Mira Oake", "the bell", 2)]
    assert (found.unique, found.total, found.unknown, found.degraded) == (2, 10, (), ())


def test_a_tie_tells_how_much_more_often_than_by_chance_and_which_passages_show_it(graph):
    (tie,) = graph.cooccurring(["the bell", "Mira Oake"], ALL, readable=EVERYTHING, limit=10).ties
    assert tie.lift == pytest.approx(2 * 10 / (3 * 3))
    assert tie.npmi == pytest.approx(math.log(2 * 10 / 9) / -math.log(2 / 10))
    assert [passage.id for passage in tie.shown_by] == ["m2", "m0"]
    assert tie.shown_by[0] == CORPUS[2]


def test_what_is_asked_for_together_is_counted_together(graph):
    found = graph.cooccurring(["Mira Oake", "jon", "The Bell", "JON"], ALL, readable=EVERYTHING, limit=10, show=1)
    assert [entity.name for entity in found.entities] == ["Mira Oake", "Jon", "the bell"]
    assert (found.together, [passage.id for passage in found.shown_by]) == (1, ["m0"])
    assert sorted(tie.passages for tie in found.ties) == [1, 2, 2]
    assert all(len(tie.shown_by) == 1 for tie in found.ties)
    assert graph.cooccurring(["Mira Oake", "Ada"], ALL, readable=EVERYTHING, limit=10).ties == ()


def test_one_name_is_asked_for_its_pairs_and_none_for_the_pairs_of_all(graph):
    assert (
        graph.cooccurring(["Ben"], ALL, readable=EVERYTHING, limit=9).ties
        == graph.neighbours("Ben", ALL, readable=EVERYTHING, limit=9).ties
    )
    every = graph.cooccurring([], ALL, readable=EVERYTHING, limit=100)
    assert every.complete
    assert Counter(frozenset((a.casefold(), b.casefold())) for a, b, _ in named(every.ties)) == Counter(
        dict.fromkeys(pairs_of(CORPUS), 1)
    )
    assert [tie.passages for tie in every.ties[:3]] == [2, 2, 1]


def pairs_of(passages) -> Counter[frozenset[str]]:
    return Counter(
        frozenset(pair)
        for passage in passages
        for pair in combinations(sorted({" ".join(name.casefold().split()) for name in passage.entities}), 2)
    )


def test_a_filter_hides_passages_ties_and_names(graph):
    only = Filters(metadata={"workflow_id": ("w1",)})
    found = graph.neighbours("Ada", only, readable=EVERYTHING, limit=9)
    assert sorted(named(found.ties)) == [("Ada", "Ben", 1), ("Ada", "Jon", 1)]
    assert found.total == 2
    hidden = graph.neighbours("Mira Oak", only, readable=EVERYTHING, limit=9)
    assert hidden.entity is None
    assert not {"Mira Oake", "the bell"} & {name for one in hidden.unknown for name in one.closest}


def test_a_filter_by_collection_looks_at_its_segments_alone(graph):
    found = graph.neighbours("Ben", Filters(collections=("notes",)), readable=EVERYTHING, limit=9)
    assert named(found.ties) == [("Ben", "Eve", 1)]
    assert found.total == 1


# --- names that are not known ---


def test_an_unknown_name_is_told_with_the_closest_that_are_known(graph):
    found = graph.neighbours("Mira Oke", ALL, readable=EVERYTHING, limit=9)
    assert (found.entity, found.ties, found.unique) == (None, (), 0)
    assert [(one.name, one.closest[0]) for one in found.unknown] == [("Mira Oke", "Mira Oake")]


def test_of_several_names_the_unknown_are_told_and_nothing_is_named_by_all(graph):
    found = graph.cooccurring(["Jon", "Nobody", "Ada"], ALL, readable=EVERYTHING, limit=9)
    assert [one.name for one in found.unknown] == ["Nobody"]
    assert (named(found.ties), found.together, found.shown_by) == ([("Jon", "Ada", 1)], 0, ())


def test_ways_from_or_to_a_name_that_is_not_known_are_none(graph):
    found = graph.paths("Jonn", "Zzz", ALL, readable=EVERYTHING, max_hops=3, limit=3)
    assert (found.start, found.end, found.paths) == (None, None, ())
    assert {one.name: one.closest for one in found.unknown} == {"Jonn": ("Jon",), "Zzz": ()}


def test_a_name_with_all_the_words_is_close():
    assert closest_names("oake", ["mira oake", "oakham", "jon"], 5) == ["mira oake", "oakham"]
    assert closest_names("mira oake junior", ["mira oake", "ada"], 5) == ["mira oake"]
    assert closest_names("", ["ada"], 5) == []


# --- paths ---


def ways(found) -> list[list[str]]:
    return [[path[0].first.name, *(tie.second.name for tie in path)] for path in found.paths]


def test_the_shortest_way_comes_first_and_each_tie_has_its_passages(graph):
    found = graph.paths("mira oake", "BEN", ALL, readable=EVERYTHING, max_hops=4, limit=9)
    assert ways(found)[:2] == [["Mira Oake", "Jon", "Ada", "Ben"], ["Mira Oake", "the bell", "Cy", "Ben"]]
    assert [shown(tie) for tie in found.paths[0]] == [{"m0", "m1"}, {"m3"}, {"m4"}]
    assert (found.start.name, found.end.name, found.complete) == ("Mira Oake", "Ben", True)
    assert all(len(set(way)) == len(way) <= 5 for way in ways(found))


def test_there_is_no_way_beyond_the_hops_nor_to_what_stands_alone_nor_to_itself(graph):
    assert graph.paths("Mira Oake", "Ben", ALL, readable=EVERYTHING, max_hops=2, limit=9).paths == ()
    assert graph.paths("Mira Oake", "Alone", ALL, readable=EVERYTHING, max_hops=6, limit=9).paths == ()
    assert graph.paths("Jon", "jon", ALL, readable=EVERYTHING, max_hops=6, limit=9).paths == ()
    assert (
        graph.paths(
            "Mira Oake", "Ben", Filters(metadata={"workflow_id": ("w1",)}), readable=EVERYTHING, max_hops=6, limit=9
        ).paths
        == ()
    )


NAMES = st.lists(st.sampled_from("abcdef"), max_size=4, unique=True)
CORPORA = st.lists(NAMES, min_size=2, max_size=9)


@settings(max_examples=15)
@given(CORPORA, st.integers(1, 4))
def test_all_simple_paths_are_found(rows, max_hops):
    ties = pairs_of([naming(0, *names) for names in rows])
    with reading(stored(*(naming(n, *names) for n, names in enumerate(rows)))) as reader:
        found = EntityGraph(reader).paths("a", "b", ALL, max_hops=max_hops, limit=1000, show=0, readable=EVERYTHING)
    expected = [
        ("a", *inner, "b")
        for count in range(max_hops)
        for inner in permutations("cdef", count)
        if all(ties[frozenset(pair)] for pair in zip(("a", *inner), (*inner, "b"), strict=True))
    ]
    assert found.complete
    assert sorted(map(tuple, ways(found))) == sorted(expected)
    keys = [(len(path), -min(tie.passages for tie in path)) for path in found.paths]
    assert keys == sorted(keys)


def test_a_way_is_found_however_few_beginnings_are_followed(monkeypatch):
    monkeypatch.setattr(entity_paths, "KEPT", 1)
    crowd = [naming(n, "start", f"s{n}") for n in range(30)] + [
        naming(99, "start", "s40"),
        naming(100, "s40", "x", "y"),
    ]
    corpus = [*crowd, naming(101, "x", "end"), naming(102, "y", "end")]
    with reading(stored(*corpus, segment_rows=200)) as reader:
        found = EntityGraph(reader).paths("start", "end", ALL, max_hops=3, limit=5, readable=EVERYTHING)
    assert ways(found) == [["start", "s40", "x", "end"]]
    assert not found.complete


# --- counts against plain Python ---


@settings(max_examples=15)
@given(CORPORA, st.integers(1, 6))
def test_ties_are_those_of_a_plain_count(rows, limit):
    plain = pairs_of([naming(0, *names) for names in rows])
    with reading(stored(*(naming(n, *names) for n, names in enumerate(rows)))) as reader:
        graph = EntityGraph(reader)
        best = graph.cooccurring([], ALL, readable=EVERYTHING, limit=limit, show=0).ties
        of_a = graph.neighbours("a", ALL, readable=EVERYTHING, limit=100, show=0)
    assert [tie.passages for tie in best] == sorted(plain.values(), reverse=True)[:limit]
    assert all(plain[frozenset((tie.first.name, tie.second.name))] == tie.passages for tie in best)
    assert {tie.second.name: tie.passages for tie in of_a.ties} == {
        next(iter(pair - {"a"})): count for pair, count in plain.items() if "a" in pair
    }


def test_pairs_beyond_what_may_be_looked_at_are_told():
    with reading(stored(*CORPUS)) as reader:
        graph = EntityGraph(reader)
        view = graph._view(reader.current(), ALL, 0, ())
        assert frequent_pairs(view.mentions, 100).complete
        assert not frequent_pairs(view.mentions, 100, max_pairs=0).complete


def test_a_graph_of_no_entities_answers_with_nothing():
    with reading(stored(naming(0))) as reader:
        graph = EntityGraph(reader)
        assert graph.cooccurring([], ALL, readable=EVERYTHING, limit=5).ties == ()
        assert graph.neighbours("Mira", ALL, readable=EVERYTHING, limit=5).unknown[0].closest == ()
    empty = ScopedMentions(Mentions.of([]), [], [], 0)
    assert np.array_equal(empty.counts, [])


# --- what is kept ---


def test_a_graph_is_made_once_for_its_segments_and_follows_the_index():
    store = stored(*CORPUS)
    with reading(store) as reader:
        graph = EntityGraph(reader)
        graph.neighbours("Ada", ALL, readable=EVERYTHING, limit=5)
        (made,) = graph._held.values()
        IndexWriter(store, WordEmbedder()).delete("script", ["m3"])
        reader.refresh()
        assert named(graph.neighbours("Ada", ALL, readable=EVERYTHING, limit=5).ties) == [("Ada", "Ben", 1)]
        assert list(graph._held.values()) == [made]
        IndexWriter(store, WordEmbedder()).add("script", indexable([naming(30, "Ada", "Zoe")]))
        reader.refresh()
        assert {tie.second.name for tie in graph.neighbours("Ada", ALL, readable=EVERYTHING, limit=5).ties} == {
            "Ben",
            "Zoe",
        }


def test_few_graphs_are_held_and_too_large_ones_are_refused():
    collections = [f"c{number}" for number in range(GRAPHS_HELD + 3)]
    store = stored(*(naming(0, "Ada", "Ben", collection=name) for name in collections))
    with reading(store) as reader:
        graph = EntityGraph(reader, max_mentions=6)
        for name in collections:
            assert graph.neighbours("Ada", Filters(collections=(name,)), readable=EVERYTHING, limit=1).unique == 1
        assert len(graph._held) == 3
        with pytest.raises(RetrievalInvalid, match="choose fewer, or smaller, collections") as refused:
            graph.neighbours("Ada", ALL, readable=EVERYTHING, limit=1)
        assert "14" not in str(refused.value)  # of them some are of passages that the caller may not know of


def test_a_filter_is_not_refused_for_what_is_in_segments_without_its_passages():
    others = [naming(number, "Ada", "Ben", workflow_id="large") for number in range(8)]
    store = stored(*others, naming(8, "Ada", "Cy", workflow_id="small"), segment_rows=4)
    with reading(store) as reader:
        graph = EntityGraph(reader, max_mentions=6)
        found = graph.neighbours("Ada", Filters(metadata={"workflow_id": ("small",)}), readable=EVERYTHING, limit=5)
        assert named(found.ties) == [("Ada", "Cy", 1)]
        with pytest.raises(RetrievalInvalid):
            graph.neighbours("Ada", Filters(metadata={"workflow_id": ("large",)}), readable=EVERYTHING, limit=5)


@pytest.mark.parametrize(
    "question",
    [
        lambda graph: graph.cooccurring([], ALL, readable=EVERYTHING, limit=0),
        lambda graph: graph.cooccurring(["x"] * (MAX_NAMED + 1), ALL, readable=EVERYTHING, limit=1),
        lambda graph: graph.neighbours("Ada", ALL, readable=EVERYTHING, limit=10**6),
        lambda graph: graph.neighbours("Ada", ALL, readable=EVERYTHING, limit=1, show=99),
        lambda graph: graph.paths("Ada", "Ben", ALL, readable=EVERYTHING, max_hops=0, limit=1),
        lambda graph: graph.paths("Ada", "Ben", ALL, readable=EVERYTHING, max_hops=7, limit=1),
    ],
)
def test_questions_beyond_the_limits_are_refused(graph, question):
    with pytest.raises(RetrievalInvalid):
        question(graph)


def test_an_index_that_is_not_there_is_told():
    with reading(InMemoryStore()) as reader, pytest.raises(IndexMissing):
        EntityGraph(reader).neighbours("Ada", ALL, limit=1, readable=EVERYTHING)
