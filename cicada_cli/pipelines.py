"""Retrieval pipelines in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cicada_cli.aws import Aws
from cicada_cli.endpoints import models_at

if TYPE_CHECKING:  # numpy and boto3 are loaded by the commands that need them
    from cicada.models.ports import Embedder
    from cicada.retrieval.pipelines.pipeline import FacetCounter, Pipelines
    from cicada.retrieval.ports import Retriever


def pipelines_with(
    aws: Aws,
    retriever: Retriever,
    embedder: Embedder,
    *,
    reranker: str,
    writer: str,
    facets: FacetCounter | None = None,
) -> Pipelines:
    """Pipelines over a retriever.

    Args:
        aws: where models are called.
        retriever: searches.
        embedder: the embedding model of the index.
        reranker: the id of the re-ranking model; empty for none.
        writer: the id of the model that expands queries; empty for none.
        facets: counts values of fields.

    Raises:
        UsageError: the endpoints of the environment are invalid.
        SettingsInvalid: no endpoint has the model.
    """
    from cicada.models.bedrock import bedrock_client_config
    from cicada.retrieval.pipelines.wiring import PipelineModels, build_pipelines

    def bedrock() -> Any:
        return aws.client("bedrock-runtime", bedrock_client_config())

    return build_pipelines(
        PipelineModels(reranker, writer),
        retriever=retriever,
        embedder=embedder,
        models=models_at(aws),
        bedrock=bedrock,
        facets=facets,
    )
