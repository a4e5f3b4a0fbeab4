"""Pipelines in the caller's own process, as the commands wire them."""

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
        embedder: the model that the index is embedded with.
        reranker: the id of what judges passages; empty for nothing.
        writer: the id of what writes other wordings; empty for nothing.
        facets: counts.

    Raises:
        UsageError: the environment's endpoints cannot be read.
        SettingsInvalid: no endpoint has such a model.
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
