"""Every query is searched in every mode; what is found, how long it took and what it cost is measured."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cicada.corpus.passages import DocumentLocator, Passage, ScriptLocator
from cicada.errors import IndexUnavailable
from cicada.retrieval.pipelines.pipeline import Pipelines
from cicada.retrieval.ports import Degradation, Hit, SearchQuery, SearchResult
from cicada_evaluation.embedding import MeteredClient, QueryEmbedder
from cicada_evaluation.fees import Fees, read_fees
from cicada_evaluation.judged import judged_id
from cicada_evaluation.pipelines import EvaluatedPipeline
from cicada_evaluation.report import Indexing, SetResult
from cicada_evaluation.running import EvaluationPlan, Searched, evaluate_set
from cicada_evaluation.sets import read_set
from tests.support.embedding import WordEmbedder
from tests.support.judged_sets import write_beir
from tests.support.pipelines import ScriptedReranker
from tests.support.pipelines import ScriptedRetriever as Finds

pytest.importorskip("ir_measures")

FEES = read_fees()


class ScriptedRetriever:
    """Finds the documents that it is told to, by the query's text."""

    def __init__(self, found: dict[str, list[str]], engine: str = "shards", degraded: str | None = None) -> None:
        self.found = found
        self.engine = engine
        self.degraded = () if degraded is None else (Degradation(degraded, "less than all"),)
        self.asked: list[SearchQuery] = []

    def search(self, query: SearchQuery) -> SearchResult:
        self.asked.append(query)
        hits = tuple(Hit(passage(name, self.engine), 0.9) for name in self.found.get(query.text, []))
        return SearchResult(hits, "v7", 4, {"embed": 0.0}, self.engine, self.degraded)


def passage(name: str, engine: str = "shards") -> Passage:
    found = f"{name}#0f0f" if engine == "kendra" else name
    return Passage(id=found, collection="fog", text=name, context=name, locator=DocumentLocator(source=name, title=""))


class CountingBedrock:
    """Bedrock as far as an embedding needs it: a token a word."""

    def invoke_model(self, **request: Any) -> dict[str, Any]:
        words = json.loads(request["body"])["inputText"].split()
        return {"body": io.BytesIO(json.dumps({"embedding": [1.0], "inputTextTokenCount": len(words)}).encode())}


class CallingEmbedder(WordEmbedder):
    """Calls the model's service for each text, as Bedrock's adapter does."""

    def __init__(self, client: MeteredClient, model_id: str) -> None:
        super().__init__(model_id)
        self._client = client

    def embed(self, texts: Any, *, time_budget_s: float) -> list[list[float]]:
        for text in texts:
            self._client.invoke_model(body=json.dumps({"inputText": text}))["body"].read()
        return super().embed(texts, time_budget_s=time_budget_s)


def evaluate(
    folder: Path,
    retriever_of: Callable[[str], Any],
    modes: tuple[str, ...] = ("hybrid",),
    *,
    model_id: str = "amazon.titan-embed-text-v2:0",
    collections: tuple[str, ...] = (),
    fees: Fees = FEES,
) -> SetResult:
    meter = MeteredClient(CountingBedrock())
    embedder = QueryEmbedder(CallingEmbedder(meter, model_id))
    searched = Searched(retriever_of, collections, Indexing(passages=1_000, embedded=0, tokens=0, usd=0.0))
    judged = read_set(write_beir(folder / "fog"))
    return evaluate_set(judged, EvaluationPlan(modes, (1, 10), 0, fees), searched, embedder, meter, lambda *_: None)


GOOD = {"fog bell": ["d1", "d4"], "green ledger": ["d2", "d3"], "when did the clock stop": []}


def test_measures_are_means_over_queries_with_their_intervals(tmp_path: Path) -> None:
    result = evaluate(tmp_path, lambda mode: ScriptedRetriever(GOOD))
    mode = result.mode("hybrid")
    assert mode is not None
    assert mode.estimates["mrr@10"].mean == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert mode.estimates["recall@1"].mean == pytest.approx((1 / 2 + 0 + 0) / 3)
    assert mode.estimates["mrr@10"].low < mode.estimates["mrr@10"].mean < mode.estimates["mrr@10"].high
    assert [query.id for query in mode.queries] == ["q1", "q2", "q3"]
    assert mode.queries[1].values["mrr@10"] == 0.5
    assert mode.queries[1].top == ("d2", "d3")
    assert (mode.engine, mode.index_version, result.left_out) == ("shards", "v7", 1)


def test_each_mode_asks_its_own_way_for_all_that_the_measures_look_at(tmp_path: Path) -> None:
    retrievers = {mode: ScriptedRetriever(GOOD) for mode in ("hybrid", "dense", "keyword", "s3vectors", "kendra")}
    evaluate(tmp_path, retrievers.__getitem__, tuple(retrievers), collections=("shelf",))
    assert {name: retriever.asked[-1].mode for name, retriever in retrievers.items()} == {
        "hybrid": "hybrid",
        "dense": "dense",
        "keyword": "keyword",
        "s3vectors": "hybrid",
        "kendra": "hybrid",
    }
    last = retrievers["dense"].asked[-1]
    assert (last.top_k, last.min_score, last.filters.collections) == (10, 0.0, ("shelf",))


def test_a_pipeline_costs_what_its_models_take_and_what_it_embeds_on_the_way(tmp_path: Path) -> None:
    found = {query: [passage(name) for name in names] for query, names in GOOD.items()}
    meter = MeteredClient(CountingBedrock())
    embedder = QueryEmbedder(CallingEmbedder(meter, "amazon.titan-embed-text-v2:0"))
    reranker = ScriptedReranker(lambda text: 1.0 if text in ("d3", "d1") else 0.0)
    made = Pipelines(Finds(found), embedder, reranker=reranker)
    searched = Searched(
        lambda mode: EvaluatedPipeline(made, "rerank" if mode == "rerank" else "standard"),
        (),
        Indexing(passages=4, embedded=0, tokens=0, usd=0.0),
    )
    judged = read_set(write_beir(tmp_path / "fog"))
    result = evaluate_set(
        judged, EvaluationPlan(("standard", "rerank"), (10,), 0, FEES), searched, embedder, meter, lambda *_: None
    )
    standard, rerank = result.modes
    assert (standard.queries[1].values["mrr@10"], rerank.queries[1].values["mrr@10"]) == (0.5, 1.0)
    assert standard.cost.models_usd == 0.0
    assert rerank.cost.models_usd == pytest.approx(2 * 0.001)
    # Each query that finds something has its two documents' captions embedded with it, beside its own vector.
    queries, captions = 2 + 2 + 5, (2 + 1 + 1) + (2 + 1 + 1)
    assert standard.cost.embedding_usd == pytest.approx((queries + captions) * 0.02e-6)
    assert rerank.cost.usd_per_1000_queries == pytest.approx((0.002 + (queries + captions) * 0.02e-6) / 3 * 1000)


def test_what_a_pipeline_did_without_is_counted_by_stage_and_code(tmp_path: Path) -> None:
    found = {query: [passage(name) for name in names] for query, names in GOOD.items()}
    made = Pipelines(Finds(found), WordEmbedder())
    mode = evaluate(tmp_path, lambda _: EvaluatedPipeline(made, "rerank"), ("rerank",)).modes[0]
    assert mode.degraded == {"rerank_not_configured": 2}  # the third query finds nothing to be re-ranked


def test_a_document_that_is_found_twice_counts_once(tmp_path: Path) -> None:
    found = {"green ledger": ["d2", "d2", "d2", "d3"]}
    mode = evaluate(tmp_path, lambda mode: ScriptedRetriever(found)).modes[0]
    assert mode.queries[1].values["mrr@10"] == 0.5


def test_kendras_passages_are_judged_by_their_document(tmp_path: Path) -> None:
    result = evaluate(tmp_path, lambda mode: ScriptedRetriever(GOOD, "kendra"), ("kendra",))
    assert result.modes[0].queries[0].top == ("d1", "d4")


def test_a_message_is_judged_as_one_in_whatever_language() -> None:
    locator = ScriptLocator(episode_id="e", episode_name="E", chapter_id="c", message_id="m1", speaker="S")
    found = Passage(id="m1#jpn", collection="script", text="x", context="x", locator=locator)
    assert judged_id(found, "shards") == judged_id(found, "s3vectors") == "m1"


def test_a_query_is_embedded_once_for_all_modes_and_never_for_words(tmp_path: Path) -> None:
    both = evaluate(tmp_path, lambda mode: ScriptedRetriever(GOOD), ("hybrid", "dense", "keyword"))
    tokens = len("fog bell green ledger when did the clock stop".split())
    usd = tokens * 0.02 / 1e6  # Titan Text Embeddings v2, a million tokens
    assert [mode.cost.embedding_usd for mode in both.modes] == pytest.approx([usd, usd, 0.0])
    assert both.modes[0].cost.usd_per_1000_queries == pytest.approx(usd / 3 * 1000)
    words = evaluate(tmp_path, lambda mode: ScriptedRetriever(GOOD), ("keyword",))
    assert words.embedding is None


def test_a_model_without_a_price_leaves_the_cost_open(tmp_path: Path) -> None:
    cost = evaluate(tmp_path, lambda mode: ScriptedRetriever(GOOD), model_id="example.embed").modes[0].cost
    assert (cost.embedding_usd, cost.usd_per_1000_queries) == (None, None)


def test_managed_engines_take_fees(tmp_path: Path) -> None:
    modes = ("s3vectors", "kendra")
    result = evaluate(tmp_path, lambda mode: ScriptedRetriever(GOOD, mode), modes, model_id="local.words")
    per_call = FEES.s3vectors.usd_per_million_queries / 1e6
    scanned = 1_000 * (4 * 64 + FEES.s3vectors.bytes_per_vector_besides) / 1e12 * FEES.s3vectors.usd_per_tb_processed
    assert result.modes[0].cost.engine_usd == pytest.approx(3 * (per_call + scanned))
    hourly = FEES.kendra.usd_per_hour
    assert result.modes[1].cost.engine_usd == pytest.approx(3 * hourly * 24 / FEES.kendra.queries_per_day)


def test_searches_that_did_without_something_are_counted(tmp_path: Path) -> None:
    mode = evaluate(tmp_path, lambda mode: ScriptedRetriever(GOOD, degraded="partial_index")).modes[0]
    assert mode.degraded == {"partial_index": 3}


def test_a_search_that_fails_ends_the_evaluation(tmp_path: Path) -> None:
    class Failing(ScriptedRetriever):
        def search(self, query: SearchQuery) -> SearchResult:
            raise IndexUnavailable("no answer")

    with pytest.raises(IndexUnavailable):
        evaluate(tmp_path, lambda mode: Failing(GOOD))


def test_prepared_queries_are_at_hand_and_others_are_asked_for() -> None:
    model = WordEmbedder()
    ticks = iter([1.0, 1.5, 2.0, 2.1])
    embedder = QueryEmbedder(model, clock=lambda: next(ticks))
    assert embedder.prepare(["one", "two", "one"], lambda done, total: None) == pytest.approx([500, 100])
    assert embedder.embed(["two"], time_budget_s=1) == model.embed(["two"], time_budget_s=1)
    model.asked.clear()
    embedder.embed(["one"], time_budget_s=1)
    assert model.asked == []
    embedder.embed(["three"], time_budget_s=1)
    assert model.asked == ["three"]


def test_a_response_in_another_format_passes_through_uncounted() -> None:
    class Other:
        def invoke_model(self, **request: Any) -> dict[str, Any]:
            return {"body": io.BytesIO(b"not json"), "contentType": "text/plain"}

    meter = MeteredClient(Other())
    response = meter.invoke_model(body="{}")
    assert response["body"].read() == b"not json"
    assert response["contentType"] == "text/plain"
    assert (meter.tokens, meter.reported, meter.usd("cohere.embed-v4:0", 0)) == (0, False, None)


def test_tokens_are_counted_by_bedrocks_header_where_a_body_has_no_count() -> None:
    class Counted:
        def invoke_model(self, **request: Any) -> dict[str, Any]:
            headers = {"x-amzn-bedrock-input-token-count": "1000000"}
            return {"body": io.BytesIO(b'{"embeddings": []}'), "ResponseMetadata": {"HTTPHeaders": headers}}

    meter = MeteredClient(Counted())
    meter.invoke_model(body="{}")
    assert meter.usd("amazon.nova-2-multimodal-embeddings-v1:0", meter.tokens) == pytest.approx(0.135)


def test_fees_can_be_given(tmp_path: Path) -> None:
    own = json.loads(FEES.model_dump_json(by_alias=True)) | {"kendra": {"usdPerHour": 1.4, "queriesPerDay": 8000}}
    file = tmp_path / "fees.json"
    file.write_text(json.dumps(own))
    assert read_fees(file).usd_per_query("kendra", vectors=0, dimensions=0) == pytest.approx(1.4 * 24 / 8000)
    assert read_fees(file).usd_per_query("shards", vectors=10**6, dimensions=1024) == 0
