"""Builds the functions for integrators from settings: the one place that chooses implementations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import boto3

from cicada.index.access_rules import AccessRulesStore, StoredAccessRules
from cicada.index.ports import ObjectStore
from cicada.index.reader import EAGER_BYTES, IndexReader
from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.index.s3_direct import RULES_PATIENCE, store_for_answers
from cicada.ingest.contracts import IngestReport, Owner, Prepared
from cicada.integrators.settings import (
    IndexDocumentSettings,
    IndexSettings,
    ModelSettings,
    RetrieveSettings,
    SearchSettings,
)
from cicada.models.bedrock import QUERY_READ_TIMEOUT_S, bedrock_client_config
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.models.embedding_cache import CachingEmbedder
from cicada.models.factory import ModelFactory
from cicada.models.ports import Embedder
from cicada.models.retries import QUERY
from cicada.retrieval.engine import EngineSettings, build_retriever
from cicada.retrieval.facets import ShardFacets
from cicada.retrieval.names import NameChecker, NameCheckingRetriever
from cicada.retrieval.pipelines.pipeline import Pipelines
from cicada.retrieval.pipelines.wiring import PipelineModels, build_pipelines
from cicada.retrieval.ports import Retriever
from cicada.retrieval.shards import ShardRetriever

LOOK_PATIENCE_S = 2.0  # longest wait for a new version: between calls of milliseconds, no background look finishes


def index_reader(settings: IndexSettings) -> IndexReader:
    """The index, loaded while the rest of the function starts. Calls wait for a version check that is due."""
    reader = IndexReader(
        store_for_answers(settings.index_bucket),
        embedding_model_id=settings.embedding_model_id,
        dimensions=settings.embedding_dimensions,
        swap_bytes=EAGER_BYTES,
        patience_s=LOOK_PATIENCE_S,
    )
    reader.refresh_soon()
    return reader


def access_of(settings: IndexSettings) -> AccessRulesStore:
    """Who may read which collections."""
    return StoredAccessRules(store_for_answers(settings.index_bucket, patience=RULES_PATIENCE), settings.access)


def bucket(settings: IndexSettings | IndexDocumentSettings) -> S3Store:
    """The index's bucket, for reading and writing."""
    return S3Store(boto3.client("s3", config=CLIENT_CONFIG), settings.index_bucket)


def models_of(settings: ModelSettings) -> ModelFactory:
    """Makes the settings' models."""
    return ModelFactory(
        bedrock=_bedrock,
        secrets=_secrets,
        endpoints=settings.model_endpoints,
    )


def _bedrock() -> Any:
    return boto3.client("bedrock-runtime", config=bedrock_client_config())


def _secrets() -> Any:
    from cicada.models.endpoint_keys import SECRETS_CONFIG

    return boto3.client("secretsmanager", config=SECRETS_CONFIG)


def search_of(settings: SearchSettings, reader: IndexReader) -> tuple[Retriever, Embedder]:
    """The retriever and the embedder of queries."""
    client = boto3.client("bedrock-runtime", config=bedrock_client_config(read_timeout_s=QUERY_READ_TIMEOUT_S))
    model = BedrockEmbedder(
        client, settings.embedding_model_id, settings.embedding_dimensions, purpose="query", retry=QUERY
    )
    embedder = CachingEmbedder(model)
    retriever = build_retriever(
        EngineSettings(
            settings.retrieval_engine,
            settings.s3_vectors_index_arn,
            settings.kendra_index_id,
            settings.engine_budget_s,
        ),
        shards=lambda one: ShardRetriever(reader, one),
        embedder=embedder,
        store=store_for_answers(settings.index_bucket),
        client=boto3.client,
    )
    return retriever, embedder


def checked_search_of(settings: SearchSettings, reader: IndexReader) -> tuple[Retriever, Embedder]:
    """As :func:`search_of`; the retriever also tells unknown names. Kendra may have names that the index has not."""
    retriever, embedder = search_of(settings, reader)
    if settings.retrieval_engine == "kendra":
        return retriever, embedder
    return NameCheckingRetriever(retriever, NameChecker(reader)), embedder


def pipelines_of(settings: RetrieveSettings) -> Pipelines:
    """The retrieval pipelines with all of their stages."""
    reader = index_reader(settings)
    retriever, embedder = checked_search_of(settings, reader)
    return build_pipelines(
        PipelineModels(
            settings.reranker_model_id or settings.writing_model_id,
            settings.expansion_model_id or settings.writing_model_id,
        ),
        retriever=retriever,
        embedder=embedder,
        models=models_of(settings),
        bedrock=_bedrock,
        facets=ShardFacets(reader),
    )


def committer(
    settings: IndexDocumentSettings, store: ObjectStore
) -> Callable[[str, Sequence[Prepared], Collection[str], Owner], IngestReport]:
    """Publishes prepared documents with the deployment's embedding model, limited to those of their owner."""
    from cicada.audit.records import function_actor
    from cicada.ingest.committing import commit
    from cicada.ingest.recorded_store import RecordedStore

    recorded = RecordedStore(store, function_actor())
    embedder = BedrockEmbedder(_bedrock(), settings.embedding_model_id, settings.embedding_dimensions)

    def publish(collection: str, prepared: Sequence[Prepared], gone: Collection[str], owner: Owner) -> IngestReport:
        return commit(recorded, embedder, collection, prepared, gone=gone, owner=owner)

    return publish
