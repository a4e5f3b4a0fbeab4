"""Builds what the actions about the corpus are answered with."""

from __future__ import annotations

import time
from typing import NamedTuple

import boto3

from cicada.answering.corpus_api import CorpusApi
from cicada.answering.question_gate import SearchGate
from cicada.answering.time_left import TimeLeft
from cicada.delivery.dynamodb import STORE_CONFIG
from cicada.delivery.ports import StoreFault
from cicada.dynamodb import read_items
from cicada.index.access_rules import StoredAccessRules
from cicada.index.reader import EAGER_BYTES, IndexReader
from cicada.index.s3_direct import RULES_PATIENCE, store_for_answers
from cicada.ingest.incoming.originals import LINK_CONFIG, S3Originals
from cicada.metrics import LIMITS_REACHED
from cicada.models.bedrock import QUERY_READ_TIMEOUT_S, bedrock_client_config
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.models.embedding_cache import CachingEmbedder
from cicada.models.retries import QUERY
from cicada.retrieval.engine import EngineSettings, build_retriever
from cicada.retrieval.names import NameChecker, NameCheckingRetriever
from cicada.retrieval.ports import Retriever
from cicada.retrieval.shards import ShardRetriever
from cicada.revocation import DynamoDbRevocations, Revocations
from cicada.settings import CorpusSettings
from cicada.telemetry import report

LOOK_PATIENCE_S = 2.0
"""Longest wait for a new version: between calls of milliseconds, no background look finishes."""


class Corpus(NamedTuple):
    """What answers frames."""

    api: CorpusApi
    revocations: Revocations | None
    """None where nobody has a token."""


def build(settings: CorpusSettings, time_left: TimeLeft) -> Corpus:
    """Wire the function. No call to the table outlasts ``time_left``."""
    store = store_for_answers(settings.index_bucket)
    reader = IndexReader(
        store,
        embedding_model_id=settings.embedding_model_id,
        dimensions=settings.embedding_dimensions,
        swap_bytes=EAGER_BYTES,
        patience_s=LOOK_PATIENCE_S,
    )
    reader.refresh_soon()  # the index is read while the rest of this function starts
    table = time_left.hold(boto3.client("dynamodb", config=STORE_CONFIG))
    names = NameChecker(reader)
    gate = SearchGate(
        lambda keys: read_items(table, StoreFault, settings.requests_table, keys, sleep=time.sleep),
        limits=settings.usage_limits,
        revocable=settings.auth != "none",
        on_reached=lambda _: report({LIMITS_REACHED: 1}),
    )
    api = CorpusApi(
        reader,
        _retriever(settings, reader, names),
        names,
        StoredAccessRules(store_for_answers(settings.index_bucket, patience=RULES_PATIENCE), settings.access),
        S3Originals(boto3.client("s3", config=LINK_CONFIG), settings.index_bucket),
        top_k=settings.top_k,
        min_score=settings.min_score,
        admit=gate.admit,
        uploads=settings.uploaders,
        time_left_s=time_left.seconds,
    )
    revocations = None if settings.auth == "none" else DynamoDbRevocations(table, settings.requests_table)
    return Corpus(api, revocations)


def _retriever(settings: CorpusSettings, reader: IndexReader, names: NameChecker) -> Retriever:
    """The plain search: pipelines would call text models. Kendra may have names that the index has not."""
    client = boto3.client("bedrock-runtime", config=bedrock_client_config(read_timeout_s=QUERY_READ_TIMEOUT_S))
    model = BedrockEmbedder(
        client, settings.embedding_model_id, settings.embedding_dimensions, purpose="query", retry=QUERY
    )
    searches = build_retriever(
        EngineSettings(
            settings.retrieval_engine,
            settings.s3_vectors_index_arn,
            settings.kendra_index_id,
            settings.engine_budget_s,
        ),
        shards=lambda embedder: ShardRetriever(reader, embedder),
        embedder=CachingEmbedder(model),
        store=store_for_answers(settings.index_bucket),
        client=boto3.client,
    )
    return searches if settings.retrieval_engine == "kendra" else NameCheckingRetriever(searches, names)
