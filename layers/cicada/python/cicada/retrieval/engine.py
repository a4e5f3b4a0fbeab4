"""Chooses the retrieval engine that the deployment's settings name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from cicada.defaults import DEFAULT_ENGINE_BUDGET_S
from cicada.errors import ModelBusy, ModelUnavailable, SettingsInvalid
from cicada.index.ports import ObjectStore
from cicada.models.ports import Embedder
from cicada.retrieval.fallback import FallbackRetriever, ManagedEngine, PrefetchingEmbedder
from cicada.retrieval.ports import Retriever, SearchQuery
from cicada.retrieval.query_vectors import embedding_time_s

EngineName = Literal["shards", "s3vectors", "kendra"]


@dataclass(frozen=True)
class EngineSettings:
    """Which engine searches, and where it is."""

    retrieval_engine: EngineName = "shards"
    s3_vectors_index_arn: str = ""
    kendra_index_id: str = ""
    engine_budget_s: float = DEFAULT_ENGINE_BUDGET_S
    """Seconds for a managed engine before the shards are searched instead."""


def build_retriever(
    settings: EngineSettings,
    *,
    shards: Callable[[Embedder], Retriever],
    embedder: Embedder,
    store: ObjectStore,
    client: Callable[..., Any],
) -> Retriever:
    """The shards, or a managed engine with the shards as its fallback.

    ``client`` is ``boto3.client`` or alike. Raises SettingsInvalid if the chosen engine's index is not named.
    """
    if settings.retrieval_engine == "shards":
        return shards(embedder)
    prefetching = PrefetchingEmbedder(embedder)
    needs_vectors = settings.retrieval_engine == "s3vectors"  # Kendra takes the query's words

    def prepare(query: SearchQuery) -> None:
        if needs_vectors and query.mode != "keyword":
            try:
                prefetching.prefetch(query.text, time_budget_s=embedding_time_s(query))
            except (ModelBusy, ModelUnavailable):
                if query.mode == "dense":
                    raise  # a hybrid search goes on by words alone

    engine, name = managed_engine(settings, embedder=prefetching, store=store, client=client)
    return FallbackRetriever(engine, shards(prefetching), settings.engine_budget_s, name=name, prepare=prepare)


def managed_engine(
    settings: EngineSettings, *, embedder: Embedder, store: ObjectStore, client: Callable[..., Any]
) -> tuple[ManagedEngine, str]:
    """The managed engine without a fallback, and its display name.

    Raises SettingsInvalid if its index is not named, or the engine is not a managed one.
    """
    # Functions with the shards alone do not load these modules.
    from cicada.retrieval.managed import query_config

    config = query_config(settings.engine_budget_s)
    match settings.retrieval_engine:
        case "s3vectors":
            from cicada.retrieval.s3vectors import S3VectorsRetriever
            from cicada.retrieval.s3vectors.setup import NAME as S3_VECTORS

            arn = _named("S3_VECTORS_INDEX_ARN", settings.s3_vectors_index_arn)
            return S3VectorsRetriever(client("s3vectors", config=config), arn, embedder, store), S3_VECTORS
        case "kendra":
            from cicada.retrieval import kendra

            index_id = _named("KENDRA_INDEX_ID", settings.kendra_index_id)
            return kendra.KendraRetriever(client("kendra", config=config), index_id), kendra.NAME
        case "shards":
            raise SettingsInvalid("RETRIEVAL_ENGINE: shards is not a managed engine")


def _named(variable: str, value: str) -> str:
    if not value:
        raise SettingsInvalid(f"{variable}: required by the selected retrieval engine")
    return value
