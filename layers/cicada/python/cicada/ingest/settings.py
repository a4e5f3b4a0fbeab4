"""The environments of the ingest workflow's functions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, Json

from cicada.ingest.contracts import LoadingPlan, Recipe
from cicada.models.endpoints import Endpoints
from cicada.settings import Environment


class IngestStartSettings(Environment):
    """For the function that receives upload events."""

    ingest_machine_arn: str
    quiet_s: Annotated[int, Field(ge=1, le=3600)] = 30
    """Seconds: uploads to one collection within them share one run."""


class IngestSettings(Environment):
    """For every step of the ingest workflow."""

    index_bucket: str
    embedding_model_id: str
    embedding_dimensions: Annotated[int, Field(ge=1, le=4096)]
    loading: Json[LoadingPlan] = Field(default_factory=LoadingPlan)
    """How each collection's documents are cut and enriched, as JSON."""
    model_endpoints: Json[Endpoints] = Field(default_factory=Endpoints.none)
    """The deployment's own endpoints of models, by name, without their keys."""

    def recipe(self, collection: str) -> Recipe:
        """The recipe of a collection's documents."""
        rules = self.loading.collections.get(collection, self.loading.others)
        return Recipe(
            embedding_model_id=self.embedding_model_id,
            dimensions=self.embedding_dimensions,
            chunks=rules.chunks,
            enrichment=rules.enrichment,
        )


class IngestPlanSettings(IngestSettings):
    """For planning."""

    ingest_machine_arn: str
