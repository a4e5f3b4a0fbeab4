"""The environments of the ingest workflow's functions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, Json

from cicada.ingest.contracts import LoadingPlan, Recipe
from cicada.models.endpoints import Endpoints
from cicada.settings import Environment


class IngestStartSettings(Environment):
    """The function's that is told of uploads."""

    ingest_machine_arn: str
    quiet_s: Annotated[int, Field(ge=1, le=3600)] = 30
    """Seconds in which uploads to one collection are gathered into one run."""


class IngestSettings(Environment):
    """What the steps of the ingest workflow need."""

    index_bucket: str
    embedding_model_id: str
    embedding_dimensions: Annotated[int, Field(ge=1, le=4096)]
    loading: Json[LoadingPlan] = Field(default_factory=LoadingPlan)
    """How each collection's documents are cut and enriched, as JSON."""
    model_endpoints: Json[Endpoints] = Field(default_factory=Endpoints.none)
    """The deployment's own endpoints of models, by name, without their keys."""

    def recipe(self, collection: str) -> Recipe:
        """What a collection's documents are prepared by."""
        rules = self.loading.collections.get(collection, self.loading.others)
        return Recipe(
            embedding_model_id=self.embedding_model_id,
            dimensions=self.embedding_dimensions,
            chunks=rules.chunks,
            enrichment=rules.enrichment,
        )


class IngestPlanSettings(IngestSettings):
    """What planning needs beside."""

    ingest_machine_arn: str
