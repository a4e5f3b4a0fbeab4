"""The deployment's index, as the commands reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clients.cli.deployment import Deployment

if TYPE_CHECKING:  # numpy and boto3 are loaded by the commands that need them
    from cicada.index.s3 import S3Store
    from cicada.models.bedrock_embeddings import BedrockEmbedder

PIECES = {
    "reading": "files",
    "embedding": "passages",
    "writing": "segments",
    "publishing": "version",
    "compacting": "segments",
    "collecting": "objects",
    "checking": "segments",
}
"""What the numbers of each stage's progress count."""


def store_of(deployment: Deployment) -> S3Store:
    """The bucket that holds the index."""
    from cicada.index.s3 import CLIENT_CONFIG, S3Store

    return S3Store(deployment.aws.client("s3", CLIENT_CONFIG), deployment.bucket)


def embedder_of(deployment: Deployment) -> BedrockEmbedder:
    """The model that the index is embedded with."""
    from cicada.models.bedrock import bedrock_client_config
    from cicada.models.bedrock_embeddings import BedrockEmbedder

    client = deployment.aws.client("bedrock-runtime", bedrock_client_config())
    return BedrockEmbedder(client, deployment.embedding_model_id, deployment.embedding_dimensions)
