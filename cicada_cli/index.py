"""The deployment's index: its store, embedding model and enrichment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cicada_cli.actor import actor_of
from cicada_cli.deployment import Deployment
from cicada_cli.endpoints import models_at

if TYPE_CHECKING:  # numpy and boto3 are loaded by the commands that need them
    from cicada.index.ports import ObjectStore
    from cicada.index.s3 import S3Store
    from cicada.ingest.contracts import EnrichmentOptions
    from cicada.ingest.enrichment.enricher import Enricher
    from cicada.ingest.recorded_store import RecordedStore
    from cicada.models.bedrock_embeddings import BedrockEmbedder
    from cicada.models.embedding_models import Purpose

EMBEDDING_CONNECTIONS = 16
"""Two batches of texts are embedded at a time, with eight calls each."""
PIECES = {
    "preparing": "documents",
    "reading": "files",
    "embedding": "passages",
    "writing": "segments",
    "publishing": "version",
    "compacting": "segments",
    "collecting": "objects",
    "checking": "segments",
}
"""The unit of each stage's progress."""


def store_of(deployment: Deployment) -> S3Store:
    """The bucket of the index."""
    from cicada.index.s3 import CLIENT_CONFIG, S3Store

    return S3Store(deployment.aws.client("s3", CLIENT_CONFIG), deployment.bucket)


def recorded_store_of(
    deployment: Deployment,
    *,
    publishing: Literal["version_published", "version_rolled_back"] = "version_published",
    command: str,
) -> RecordedStore:
    """The bucket of the index, for a command that changes it: audit records name the command and the actor."""
    from cicada.ingest.recorded_store import RecordedStore

    details = {"command": command}
    return RecordedStore(store_of(deployment), actor_of(deployment.aws), publishing=publishing, details=details)


def enricher_of(deployment: Deployment, options: EnrichmentOptions, store: ObjectStore) -> Enricher:
    """Adds summaries, entities and codes to passages, by rules and by the model of the options."""
    from cicada.ingest.wiring import enricher

    return enricher(options, store, models_at(deployment.aws))


def embedder_of(deployment: Deployment, purpose: Purpose = "document") -> BedrockEmbedder:
    """The embedding model of the index."""
    from cicada.models.bedrock import bedrock_client_config
    from cicada.models.bedrock_embeddings import BedrockEmbedder

    client = deployment.aws.client("bedrock-runtime", bedrock_client_config(max_connections=EMBEDDING_CONNECTIONS))
    return BedrockEmbedder(client, deployment.embedding_model_id, deployment.embedding_dimensions, purpose=purpose)
