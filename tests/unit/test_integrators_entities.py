"""``graph_query`` and ``facets``: what of the library's answers callers are told."""

from __future__ import annotations

from typing import cast

import pytest

from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import RetrievalInvalid
from cicada.integrators.entities import FacetsRequest, GraphRequest, GraphResponse, count_facets, graph_query
from cicada.retrieval.entity_paths import Cooccurring, Entity, Tie
from cicada.retrieval.facets import ShardFacets
from cicada.retrieval.graph import EntityGraph
from cicada.retrieval.ports import Degradation
from cicada.rights import EVERYTHING
from tests.support.entities import naming, reading, stored

MANUAL = Passage(
    id="m1",
    collection="shelf",
    text="Mira Oake winds the bell.",
    context="Mira Oake winds the bell.",
    locator=DocumentLocator(source="manual.pdf", title="Manual", page=7),
    metadata={"source": "manual.pdf", "workflow_id": "w1"},
    entities=("Mira Oake", "the bell"),
    codes=("V-12",),
)
CORPUS = (
    MANUAL,
    naming(1, "MIRA OAKE", "Jon", codes=("V-12", "PX-1"), workflow_id="w1"),
    naming(2, "Mira Oake", "Jon", workflow_id="w2"),
    naming(3, "Jon", "Ada", workflow_id="w2"),
)


@pytest.fixture(scope="module")
def index():
    with reading(stored(*CORPUS)) as reader:
        yield reader


@pytest.fixture(scope="module")
def graph(index):
    return EntityGraph(index)


def asked(graph: EntityGraph, **request: object) -> GraphResponse:
    return graph_query(GraphRequest.model_validate(request), EVERYTHING, graph)


def test_neighbours_are_told_with_the_passages_that_show_them(graph):
    found = asked(graph, operation="neighbours", entity="mira oake")
    assert (found.success, found.operation, found.unique, found.total) == (True, "neighbours", 2, 4)
    assert [(one.name, one.passages) for one in found.entities] == [("Mira Oake", 3)]
    ties = {(tie.second if tie.first.name == "Mira Oake" else tie.first).name: tie for tie in found.ties}
    assert (ties["Jon"].passages, ties["the bell"].passages) == (2, 1)
    (shown,) = ties["the bell"].shown_by
    assert (shown.id, shown.collection, shown.source, shown.page) == ("m1", "shelf", "manual.pdf", 7)
    assert (shown.content, shown.label) == (MANUAL.text, MANUAL.locator.label())
    assert found.index_version


def test_a_message_of_a_script_is_told_by_its_collection_and_has_no_page(graph):
    found = asked(graph, operation="neighbours", entity="Ada")
    (shown,) = found.ties[0].shown_by
    assert (shown.collection, shown.source, shown.page) == ("script", "script", None)


def test_only_a_workflows_own_passages_are_counted_and_shown(graph):
    found = asked(graph, operation="neighbours", entity="Mira Oake", workflow_id="w1")
    assert found.total == 2
    assert {shown.id for tie in found.ties for shown in tie.shown_by} == {"m1", CORPUS[1].id}
    assert asked(graph, operation="neighbours", entity="Ada", workflow_id="w1").unknown[0].name == "Ada"


def test_paths_lead_from_start_to_end(graph):
    found = asked(graph, operation="paths", start="the bell", end="Ada")
    (path, *_) = found.paths
    assert [(tie.first.name, tie.second.name) for tie in path] == [
        ("the bell", "Mira Oake"),
        ("Mira Oake", "Jon"),
        ("Jon", "Ada"),
    ]
    assert [entity.name for entity in found.entities] == ["the bell", "Ada"]
    assert asked(graph, operation="paths", start="the bell", end="Ada", max_hops=2).paths == ()


def test_what_occurs_together_is_told_with_its_passages_and_nothing_shown_when_none_is_wanted(graph):
    found = asked(graph, operation="cooccurring", entities=["Mira Oake", "Jon"], passages=0)
    assert found.together == 2
    assert found.shown_by == found.ties[0].shown_by == ()
    every = asked(graph, operation="cooccurring", limit=1)
    assert len(every.ties) == 1


def test_an_unknown_name_comes_with_the_closest_that_are_known(graph):
    found = asked(graph, operation="neighbours", entity="Mira Oakes")
    assert (found.success, found.entities, found.ties) == (True, (), ())
    assert [(one.name, one.closest[0]) for one in found.unknown] == [("Mira Oakes", "Mira Oake")]


def test_figures_are_rounded_and_degradations_are_named():
    class Graph:
        def cooccurring(self, entities, filters, *, readable, limit, show):
            tie = Tie(Entity("a", 3), Entity("b", 2), 2, 1.23456789, -0.98765432, ())
            return Cooccurring(
                index_version="v1",
                total=9,
                unknown=(),
                degraded=(Degradation("partial_index", "Less than all."),),
                entities=(),
                ties=(tie,),
                together=2,
                shown_by=(),
                complete=False,
            )

    found = graph_query(GraphRequest(operation="cooccurring"), EVERYTHING, cast(EntityGraph, Graph()))
    assert (found.ties[0].lift, found.ties[0].npmi, found.complete) == (1.2346, -0.9877, False)
    assert [(one.stage, one.code) for one in found.degraded] == [("graph", "partial_index")]


def test_values_are_counted_over_all_that_pass_the_filters(index):
    request = FacetsRequest(fields=("entity_codes", "workflow_id", "source"))
    found = count_facets(request, EVERYTHING, ShardFacets(index))
    codes, workflows, sources = found.facets
    assert [(one.value, one.count) for one in codes.values] == [("V-12", 2), ("PX-1", 1)]
    assert (codes.unique, workflows.unique, found.total, found.success) == (2, 2, 4, True)
    assert ("manual.pdf", 1) in [(one.value, one.count) for one in sources.values]


def test_facets_of_a_workflow_are_its_own_and_values_can_be_left_out(index):
    found = count_facets(FacetsRequest(workflow_id="w1", limit=0), EVERYTHING, ShardFacets(index))
    assert (found.total, found.facets[0].unique, found.facets[0].values) == (2, 2, ())


def test_filters_that_contradict_the_workflow_are_refused(index, graph):
    clash = {"workflow_id": "w1", "filters": {"metadata": {"workflow_id": ["w2"]}}}
    with pytest.raises(RetrievalInvalid, match="workflow_id"):
        count_facets(FacetsRequest.model_validate(clash), EVERYTHING, ShardFacets(index))
    with pytest.raises(RetrievalInvalid, match="workflow_id"):
        asked(graph, operation="cooccurring", **clash)
