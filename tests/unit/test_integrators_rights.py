"""Through every function, a user sees what an index without the collections that they may not read would show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.passages import DocumentLocator, Passage, ScriptLocator
from cicada.errors import IndexUnavailable
from cicada.index.access_rules import ACCESS_KEY, AccessRulesStore, StoredAccessRules, declare_readers
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from cicada.ingest.enrichment.describing import DocumentAbstract
from cicada.ingest.enrichment.summaries import DocumentSummaries
from cicada.integrators.calling import for_groups, reading, respond
from cicada.integrators.documents import SummaryRequest, document_summary
from cicada.integrators.entities import FacetsRequest, GraphRequest, count_facets, graph_query
from cicada.integrators.schema_explaining import ExplainedTable, SchemaExplainer
from cicada.integrators.sql_schema import SchemaRequest
from cicada.retrieval.documents import DocumentReader
from cicada.retrieval.facets import ShardFacets
from cicada.retrieval.graph import EntityGraph
from cicada.retrieval.names import NameChecker, NameCheckingRetriever
from cicada.retrieval.pipelines.api import RetrieveRequest, parse_retrieve_request
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import AccessRules, ConfiguredAccess
from tests.support import entities
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore, WatchedStore
from tests.support.passages import indexable
from tests.support.pipelines import ScriptedModel, ScriptedReranker, pipelines_over, writing

COLLECTIONS = ("attic", "barn", "cellar")
GROUPS = ("red", "blue")
NAMES = (*COLLECTIONS, "nowhere")


def passages_of(collection: str) -> list[Passage]:
    """Documents and a script that name common things, and some of the collection's own."""
    texts = [f"The lamp of the {collection} burns oil.", f"Mira keeps {collection}key in the {collection}."]
    documents = [
        Passage(
            id=f"{collection}-{number}",
            collection=collection,
            text=text,
            context=text,
            locator=DocumentLocator(source=f"{source}.pdf", title=f"About {source}", page=number + 1),
            metadata={"source": f"{source}.pdf", "workflow_id": "w1", f"kind-{collection}": "x"},
            entities=("Mira", "Jon", f"{collection}key"),
            codes=("L-01", f"K-{collection}"),
        )
        for source in ("lamp", f"only-{collection}")
        for number, text in enumerate(texts)
    ]
    locator = ScriptLocator(
        episode_id=f"ep-{collection}",
        episode_name="The Lamp",
        chapter_id="c1",
        message_id="m1",
        speaker=f"Keeper of {collection}",
    )
    said = f"Who trims the lamp of the {collection}?"
    spoken = Passage(id=f"{collection}-m1", collection=collection, text=said, context=said, locator=locator)
    unique = [one.model_copy(update={"id": f"{one.id}-{at}"}) for at, one in enumerate(documents)]
    return [*unique, spoken]


def stored(collections: frozenset[str]) -> InMemoryStore:
    store = InMemoryStore()
    writer = IndexWriter(store, WordEmbedder(), segment_rows=3)
    for collection in COLLECTIONS:
        if collection in collections:
            writer.replace(collection, indexable(passages_of(collection)))
    if not collections:  # a version of nothing
        writer.replace("attic", indexable(passages_of("attic")))
        writer.delete("attic", [passage.id for passage in passages_of("attic")])
    return store


class Rules:
    """Rules that the test sets."""

    def __init__(self) -> None:
        self.now = AccessRules()

    def rules(self) -> AccessRules:
        return self.now


@dataclass
class Functions:
    """All functions that read, over one index."""

    reader: IndexReader
    access: AccessRulesStore
    graph: EntityGraph = field(init=False)

    def __post_init__(self) -> None:
        self.graph = EntityGraph(self.reader)
        self.retriever = NameCheckingRetriever(ShardRetriever(self.reader, WordEmbedder()), NameChecker(self.reader))

    def call(self, function: str, event: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """The response, and all that models were shown."""
        models = (
            writing("lamp oil", passage="The lamp burns oil."),
            ScriptedModel({DocumentAbstract: DocumentAbstract(summary="A summary.")}),
            ScriptedModel({ExplainedTable: ExplainedTable(meaning="A lamp.", passages=[1, 2, 3], columns=[])}),
        )
        reranker = ScriptedReranker(len)
        facets = ShardFacets(self.reader)
        pipelines = pipelines_over(self.retriever, facets=facets, model=models[0], reranker=reranker)
        summaries = DocumentSummaries(InMemoryStore(), models[1])
        documents = DocumentReader(self.reader)
        explainer = SchemaExplainer(self.retriever, models[2])
        parse: Any
        run: Any
        parse, run = {
            "retrieve": (parse_retrieve_request, pipelines.run),
            "facets": (reading(FacetsRequest), partial(count_facets, facets=facets)),
            "graph": (reading(GraphRequest), partial(graph_query, graph=self.graph)),
            "summary": (reading(SummaryRequest), partial(document_summary, reader=documents, summaries=summaries)),
            "schema": (reading(SchemaRequest), explainer.explain),
        }[function]
        response = respond(event, parse, for_groups(run, self.access))
        response.pop("index_version", None)
        if "timings_ms" in response:
            response["timings_ms"] = sorted(response["timings_ms"])
        return response, [*(prompt for model in models for prompt in model.prompts), *sorted(reranker.asked)]


@dataclass
class Worlds:
    """The whole corpus under rules, and indexes of each subset of its collections, which everybody may read."""

    opened: ExitStack
    rules: Rules = field(default_factory=Rules)
    subsets: dict[frozenset[str], Functions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.whole = self.over(frozenset(COLLECTIONS), self.rules)

    def over(self, collections: frozenset[str], access: AccessRulesStore) -> Functions:
        return Functions(self.opened.enter_context(entities.reading(stored(collections))), access)

    def of_only(self, collections: frozenset[str]) -> Functions:
        if collections not in self.subsets:
            self.subsets[collections] = self.over(collections, Rules())
        return self.subsets[collections]


@pytest.fixture(scope="module")
def worlds() -> Iterator[Worlds]:
    with ExitStack() as opened:
        yield Worlds(opened)


some_groups = st.lists(st.sampled_from(GROUPS), unique=True).map(tuple)
some_rules = st.builds(
    AccessRules, st.sampled_from(["everybody", "nobody"]), st.dictionaries(st.sampled_from(NAMES), some_groups)
)
filters = st.fixed_dictionaries(
    {},
    optional={
        "collections": st.lists(st.sampled_from(NAMES), max_size=2),
        "episodes": st.lists(st.sampled_from([f"ep-{name}" for name in NAMES]), max_size=2),
        "entities": st.just(["Mira", "barnkey"]),
    },
)
things = st.sampled_from(["Mira", "Jon", "barnkey", "cellarkey", "celarkey"])
calls = st.one_of(
    st.tuples(
        st.just("retrieve"),
        st.fixed_dictionaries(
            {
                "query": st.sampled_from(["who trims the lamp?", "cellarkey", "oil of the barn"]),
                "pipeline": st.sampled_from(["standard", "rerank", "advanced"]),
                "search_type": st.sampled_from(["vector", "keyword", "hybrid", "semantic"]),
                "filters": filters,
                "top_k": st.sampled_from([1, 50]),
            }
        ),
    ),
    st.tuples(
        st.just("retrieve"),
        st.fixed_dictionaries({"pipeline": st.just("facets"), "facets": st.just(["collection", "source"])}),
    ),
    st.tuples(
        st.just("facets"),
        st.fixed_dictionaries(
            {
                "fields": st.just(["collection", "episode", "speaker", "source", "entities", "kind-barn"]),
                "filters": filters,
            }
        ),
    ),
    st.tuples(
        st.just("graph"),
        st.one_of(
            st.fixed_dictionaries({"operation": st.just("cooccurring"), "filters": filters}),
            st.fixed_dictionaries({"operation": st.just("neighbours"), "entity": things, "filters": filters}),
            st.fixed_dictionaries({"operation": st.just("paths"), "start": things, "end": things}),
        ),
    ),
    st.tuples(
        st.just("summary"),
        st.fixed_dictionaries(
            {
                "collection": st.sampled_from(NAMES),
                "source": st.sampled_from(["lamp.pdf", "only-barn.pdf", "none.pdf"]),
            }
        ),
    ),
    st.tuples(
        st.just("schema"),
        st.fixed_dictionaries(
            {"tables": st.just([{"name": "lamp oil", "columns": [{"name": "barn"}]}]), "filters": filters}
        ),
    ),
)


@settings(max_examples=100, deadline=None)
@given(rules=some_rules, groups=some_groups, call=calls)
def test_a_user_sees_what_an_index_without_the_forbidden_collections_shows(worlds, rules, groups, call):
    worlds.rules.now = rules
    readable = rules.readable(groups)
    seen = frozenset(filter(readable.allows, COLLECTIONS))
    function, request = call
    found = worlds.whole.call(function, {**request, "groups": groups})
    assert found == worlds.of_only(seen).call(function, {**request, "groups": groups})
    asked_for = json.dumps(request)
    told = json.dumps(found, default=str)
    for name in set(COLLECTIONS) - seen:
        assert name in asked_for or name not in told


def test_without_groups_only_what_everybody_may_read_is_seen(worlds):
    worlds.rules.now = AccessRules("everybody", {"cellar": ("red",)})
    values = worlds.whole.call("facets", {"fields": ["collection"]})[0]["facets"][0]["values"]
    assert [one["value"] for one in values] == ["attic", "barn"]
    worlds.rules.now = AccessRules("nobody", {"cellar": ("red",)})
    assert worlds.whole.call("facets", {"fields": ["collection"]})[0]["total"] == 0
    assert worlds.whole.call("facets", {"groups": ["red"]})[0]["total"] == 5


def test_rights_are_those_of_the_call_and_nothing_is_read_without_them():
    store = stored(frozenset(COLLECTIONS))
    watched = WatchedStore(store)
    access = StoredAccessRules(watched, ConfiguredAccess(collections={"barn": ("blue",)}))
    with entities.reading(store) as reader:
        functions = Functions(reader, access)

        def collections(*groups: str) -> list[str]:
            told = functions.call("facets", {"fields": ["collection"], "groups": groups})[0]
            return [one["value"] for one in told["facets"][0]["values"]]

        assert collections("red") == ["attic", "cellar"]
        declare_readers(store, "attic", ("blue",))
        assert collections("red") == ["cellar"]
        assert collections("blue") == ["attic", "barn", "cellar"]
        watched.before[len(watched.calls) + 1] = IndexUnavailable("down")
        refused = functions.call("facets", {"groups": ["blue"]})[0]
        assert (refused["success"], refused["error"]["code"]) == (False, "index_unavailable")
        store.objects[ACCESS_KEY] = b"{"
        assert functions.call("facets", {"groups": ["blue"]})[0]["error"]["code"] == "index_corrupt"


@pytest.mark.parametrize("groups", ["red", [""], ["a,b"], ["x"] * 101, [1]])
def test_groups_are_a_list_of_names(groups):
    told = respond({"query": "x", "groups": groups}, parse_retrieve_request, lambda request: request)
    assert told["error"]["code"] == "invalid_request"
    assert RetrieveRequest(query="x").groups == ()
