"""Settings of the functions for integrators, read from the environment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Json

from cicada.defaults import DEFAULT_ENGINE_BUDGET_S
from cicada.ingest.settings import IngestSettings
from cicada.models.endpoints import Endpoints
from cicada.rights import ConfiguredAccess
from cicada.settings import Environment


class IndexSettings(Environment):
    """Settings of every function that reads the index."""

    index_bucket: str
    embedding_model_id: str
    embedding_dimensions: Annotated[int, Field(ge=1, le=4096)]
    access: Json[ConfiguredAccess] = ConfiguredAccess()
    """Who may read which collections, as far as the deployment's settings say it."""


class SearchSettings(IndexSettings):
    """Settings of functions that search."""

    retrieval_engine: Literal["shards", "s3vectors", "kendra"] = "shards"
    s3_vectors_index_arn: str = ""
    kendra_index_id: str = ""
    engine_budget_s: Annotated[float, Field(gt=0, le=60)] = DEFAULT_ENGINE_BUDGET_S
    """Seconds that a managed engine may take before the shards are searched instead."""


class ModelSettings(Environment):
    """Models other than the embedding model."""

    writing_model_id: str
    """Writes summaries, meanings and query expansions; ranks passages if no re-ranker is configured."""
    reranker_model_id: str = ""
    expansion_model_id: str = ""
    model_endpoints: Json[Endpoints] = Field(default_factory=Endpoints.none)
    """OpenAI-compatible endpoints by name, without their keys."""


class RetrieveSettings(SearchSettings, ModelSettings):
    """Settings of ``retrieve`` and ``enrich_schema``."""


class SummarySettings(IndexSettings, ModelSettings):
    """Settings of ``get_document_summary``."""


class IndexDocumentSettings(IngestSettings, ModelSettings):
    """Settings of ``index_document``."""
