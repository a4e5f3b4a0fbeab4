"""The environments of the ingest workflow's functions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Json

from cicada.ingest.contracts import LoadingPlan, Recipe
from cicada.ingest.uploads.limits import UploadLimits
from cicada.models.endpoints import Endpoints
from cicada.rights import ConfiguredAccess, Uploaders
from cicada.settings import Environment


class IngestStartSettings(Environment):
    """For the function that receives upload events."""

    ingest_machine_arn: str
    quiet_s: Annotated[int, Field(ge=1, le=3600)] = 30
    """Seconds: uploads to one collection within them share one run."""


class UploadSettings(Environment):
    """For the function that serves uploads by users."""

    index_bucket: str
    upload_url: str
    """Of the bucket, for browsers: the page's policy and the bucket's CORS rule are about this one."""
    ingest_machine_arn: str
    requests_table: str
    """Holds whose tokens were revoked."""
    uploaders: Json[Uploaders] = Uploaders()
    access: Json[ConfiguredAccess] = ConfiguredAccess()
    """Who may read which collections, as far as the deployment's settings say it."""
    upload_limits: Json[UploadLimits] = UploadLimits()
    auth: Literal["jwt", "none"] = "jwt"
    """``none`` is for the local cloud only; the stacks reject it elsewhere."""


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
