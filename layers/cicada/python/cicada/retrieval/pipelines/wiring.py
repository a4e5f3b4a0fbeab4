"""Pipelines with the models that a deployment's settings name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cicada.models.model_ids import read_endpoint_id, read_model_id
from cicada.models.ports import Embedder, Reranker, StructuredModel
from cicada.retrieval.pipelines.pipeline import FacetCounter, Pipelines
from cicada.retrieval.ports import Retriever

if TYPE_CHECKING:
    from cicada.models.factory import ModelFactory

MARKING_MAX_TOKENS = 1_024
"""The longest answer of a model that marks a batch of passages."""
WRITING_MAX_TOKENS = 512
"""The longest answer of a model that writes other wordings, or a made-up passage."""


@dataclass(frozen=True)
class PipelineModels:
    """Model ids; the stages of an empty one are skipped."""

    reranker_model_id: str = ""
    """A re-ranking model on Bedrock, or any other model, which then marks passages."""
    expansion_model_id: str = ""
    """Writes other wordings of a query, and made-up passages."""


def build_pipelines(
    chosen: PipelineModels,
    *,
    retriever: Retriever,
    embedder: Embedder,
    models: ModelFactory,
    bedrock: Callable[[], Any],
    facets: FacetCounter | None = None,
    guard_reranker: Callable[[Reranker], Reranker] = lambda reranker: reranker,
    guard_model: Callable[[StructuredModel], StructuredModel] = lambda model: model,
) -> Pipelines:
    """The guards wrap the re-ranker and the writing model, such as in circuit breakers.

    Raises SettingsInvalid if no endpoint has such a model.
    """
    reranker = reranker_of(chosen.reranker_model_id, models, bedrock) if chosen.reranker_model_id else None
    model = None
    if chosen.expansion_model_id:
        model = guard_model(models.structured(chosen.expansion_model_id, max_tokens=WRITING_MAX_TOKENS))
    return Pipelines(
        retriever, embedder, facets=facets, reranker=None if reranker is None else guard_reranker(reranker), model=model
    )


def is_reranking_model(model_id: str) -> bool:
    """Whether a model is one for re-ranking alone: Amazon's and Cohere's on Bedrock, and the local cloud's."""
    if read_endpoint_id(model_id) is not None:
        return False
    _, _, name = read_model_id(model_id).base.partition(".")
    return name.startswith("rerank")


def reranker_of(model_id: str, models: ModelFactory, bedrock: Callable[[], Any]) -> Reranker:
    """A re-ranker: a re-ranking model on Bedrock, or any other model, which marks passages."""
    if is_reranking_model(model_id):
        from cicada.models.bedrock_rerank import BedrockReranker

        return BedrockReranker(bedrock(), model_id)
    from cicada.retrieval.pipelines.model_reranker import ModelReranker

    return ModelReranker(models.structured(model_id, max_tokens=MARKING_MAX_TOKENS))
