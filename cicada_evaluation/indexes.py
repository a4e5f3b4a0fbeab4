"""The index that a set is searched in: one of its own in a folder, or a deployment's that holds its corpus already."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.ports import ObjectStore
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter, WriteResult
from cicada.models.ports import Embedder
from cicada.retrieval.engine import EngineSettings, managed_engine
from cicada.retrieval.pipelines.pipeline import Pipelines
from cicada.retrieval.pipelines.retriever import PipelineRetriever, RankingPipeline
from cicada.retrieval.ports import Retriever
from cicada.retrieval.shards import ShardRetriever
from cicada_evaluation.embedding import MeteredClient, QueryEmbedder
from cicada_evaluation.errors import EvaluationRefused
from cicada_evaluation.folder_store import FolderStore
from cicada_evaluation.judged import JudgedSet
from cicada_evaluation.modes import MANAGED_MODES, PIPELINES
from cicada_evaluation.pipelines import TIME_BUDGET_S, EvaluatedPipeline
from cicada_evaluation.report import Indexing
from cicada_evaluation.running import EvaluationListener, Searched
from cicada_evaluation.sets import collection_of

ENGINE_BUDGET_S = 30.0
"""Seconds for a search by a managed engine: a slow one is to be measured, not given up."""


@dataclass(frozen=True)
class Engines:
    """What is searched with beside the shards: where the managed engines are, empty where there is none; pipelines."""

    client: Callable[..., Any]  # makes boto3's client of a service, as ``boto3.client`` does
    s3_vectors_index_arn: str = ""
    kendra_index_id: str = ""
    pipelines: Callable[[Retriever, Embedder], Pipelines] = Pipelines
    """Makes the pipelines over a retriever, with its embedding model."""
    for_answers: bool = False  # pipelines search as the strategies use them: without captions


@contextmanager
def own_index(
    judged: JudgedSet,
    modes: Sequence[str],
    work: Path,
    embedder: Embedder,
    queries: QueryEmbedder,
    meter: MeteredClient,
    engines: Engines,
    told: EvaluationListener,
) -> Iterator[Searched]:
    """Index a set's corpus in a folder, which keeps it for the next time: what is in it already is not embedded again.

    For Kendra alone nothing is indexed: it has its own documents.

    Raises:
        EvaluationRefused: the set has no corpus.
        CicadaError: it could not be indexed.
    """
    if not judged.corpus:
        raise EvaluationRefused(
            f"{judged.path}: the set has questions only: name the --collection that holds their script"
        )
    store = FolderStore(work / _folder_name(judged, embedder))
    indexing = None if set(modes) == {"kendra"} else _indexed(judged, store, embedder, meter, told)
    with _reader(store, embedder) as reader:

        def retriever_of(mode: str) -> Retriever:
            if mode == "s3vectors":
                _load_s3_vectors(store, engines, told)
            return _retriever(mode, reader, store, queries, engines)

        yield Searched(retriever_of, (), indexing)


@contextmanager
def deployed_index(
    store: ObjectStore, collection: str, embedder: Embedder, queries: QueryEmbedder, engines: Engines
) -> Iterator[Searched]:
    """Search a collection of a deployment's index, as it is."""
    with _reader(store, embedder) as reader:
        yield Searched(lambda mode: _retriever(mode, reader, store, queries, engines), (collection,), None)


@contextmanager
def _reader(store: ObjectStore, embedder: Embedder) -> Iterator[IndexReader]:
    reader = IndexReader(store, embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    try:
        yield reader
    finally:
        reader.close()


def _indexed(
    judged: JudgedSet, store: ObjectStore, embedder: Embedder, meter: MeteredClient, told: EvaluationListener
) -> Indexing:
    before = meter.tokens
    written = _written(judged, store, embedder, told)
    tokens = meter.tokens - before
    usd = meter.usd(embedder.model_id, tokens)
    return Indexing(passages=written.passages, embedded=written.embedded, tokens=tokens, usd=usd)


def _written(judged: JudgedSet, store: ObjectStore, embedder: Embedder, told: EvaluationListener) -> WriteResult:
    writer = IndexWriter(store, embedder, progress=told)
    collection = collection_of(judged.path)
    try:
        return writer.replace(collection, judged.corpus)
    except (IndexCorrupt, IndexMismatch):  # left by another release: it can all be made again
        return writer.start_over(collection, judged.corpus)


def _retriever(
    mode: str, reader: IndexReader, store: ObjectStore, queries: QueryEmbedder, engines: Engines
) -> Retriever:
    if mode not in MANAGED_MODES:
        reader.warm_up()
        shards = ShardRetriever(reader, queries)
        if mode not in PIPELINES:
            return shards
        semantic = mode == "semantic"
        name: RankingPipeline = "advanced" if mode == "advanced" else "rerank" if mode == "rerank" else "standard"
        pipelines = engines.pipelines(shards, queries)
        if engines.for_answers:
            return PipelineRetriever(pipelines, name, time_budget_s=TIME_BUDGET_S)
        return EvaluatedPipeline(pipelines, name, semantic=semantic)
    settings = EngineSettings(
        retrieval_engine="kendra" if mode == "kendra" else "s3vectors",
        s3_vectors_index_arn=engines.s3_vectors_index_arn,
        kendra_index_id=engines.kendra_index_id,
        engine_budget_s=ENGINE_BUDGET_S,
    )
    engine, _ = managed_engine(settings, embedder=queries, store=store, client=engines.client)
    return engine


def _load_s3_vectors(store: ObjectStore, engines: Engines, told: EvaluationListener) -> None:
    from cicada.retrieval.s3vectors.load import CurrentVersion, Loader
    from cicada.retrieval.s3vectors.setup import LOAD_CONFIG, IndexCalls

    calls = IndexCalls(engines.client("s3vectors", config=LOAD_CONFIG), engines.s3_vectors_index_arn)
    Loader(calls, store).load(CurrentVersion(store), lambda done, total: told("loading", done, total))


def _folder_name(judged: JudgedSet, embedder: Embedder) -> str:
    """A folder a set and model: two models' vectors are never in one index."""
    model = re.sub(r"[^\w.-]", "-", embedder.model_id)
    return f"{collection_of(judged.path)}-{model}-{embedder.dimensions}"
