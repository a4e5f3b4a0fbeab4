"""Wires the search of declared collections with the models that a deployment's settings name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cicada.defaults import (
    DEFAULT_CONTEXT_TOKENS,
    DEFAULT_KNOWLEDGE_BUDGET_S,
    DEFAULT_MIN_SCORE,
    DEFAULT_PASSAGES_PER_COLLECTION,
    MIN_ENTITY_CONFIDENCE,
    MIN_INTENTION_CONFIDENCE,
)
from cicada.index.reader import IndexReader
from cicada.models.ports import StructuredModel
from cicada.retrieval.knowledge.assembling import ContextAssembler
from cicada.retrieval.knowledge.contracts import Catalogue, Extractor, catalogue_of
from cicada.retrieval.knowledge.extracting import BothExtractors, ModelExtractor
from cicada.retrieval.knowledge.gazetteer import Gazetteer, IndexNames
from cicada.retrieval.knowledge.resolving import IndexResolver
from cicada.retrieval.knowledge.search import KnowledgeSearch
from cicada.retrieval.knowledge.selecting import ModelSelector
from cicada.retrieval.knowledge.structured_calls import FILLING_MAX_TOKENS
from cicada.retrieval.ports import Hit, Retriever
from cicada.rights import Readable

if TYPE_CHECKING:
    from cicada.models.factory import ModelFactory

ExtractorName = Literal["model", "gazetteer", "both"]


@dataclass(frozen=True)
class KnowledgeOptions:
    """The deployment's settings."""

    selector_model_id: str
    """Chooses collections and intentions."""
    extractor_model_id: str
    """Finds names; unused by the extractor ``gazetteer``."""
    extractor: ExtractorName = "both"
    min_intention_confidence: float = MIN_INTENTION_CONFIDENCE
    min_entity_confidence: float = MIN_ENTITY_CONFIDENCE
    context_tokens: int = DEFAULT_CONTEXT_TOKENS
    """Of all chosen passages together."""
    passages_per_collection: int = DEFAULT_PASSAGES_PER_COLLECTION
    min_score: float = DEFAULT_MIN_SCORE
    """For passages without a named entity or an intention."""
    budget_s: float = DEFAULT_KNOWLEDGE_BUDGET_S


def build_knowledge(
    options: KnowledgeOptions,
    *,
    reader: IndexReader,
    retriever: Retriever,
    models: ModelFactory,
    tokens_of: Callable[[Hit], int],
    guard_model: Callable[[StructuredModel], StructuredModel] = lambda model: model,
) -> KnowledgeSearch:
    """Wire selecting, extracting, resolving, searching and assembling.

    ``retriever`` makes plain searches: a pipeline would call its models for each of them. ``guard_model`` wraps a
    model, such as in its circuit breaker. Raises SettingsInvalid if no endpoint has such a model.
    """

    def model(model_id: str) -> StructuredModel:
        return guard_model(models.structured(model_id, max_tokens=FILLING_MAX_TOKENS))

    def declarations(readable: Readable) -> Catalogue:
        reader.refresh_soon()
        return catalogue_of(reader.current().manifest, readable)

    return KnowledgeSearch(
        declarations,
        ModelSelector(model(options.selector_model_id), min_confidence=options.min_intention_confidence),
        extractor_of(options, reader, model),
        IndexResolver(reader, catalogue_of=lambda index, readable: catalogue_of(index.manifest, readable)),
        retriever,
        ContextAssembler(options.context_tokens, tokens_of, min_score=options.min_score),
        passages_per_collection=options.passages_per_collection,
        budget_s=options.budget_s,
    )


def extractor_of(options: KnowledgeOptions, reader: IndexReader, model: Callable[[str], StructuredModel]) -> Extractor:
    """The extractor that the options name; ``model`` makes one of a model's id."""
    names = IndexNames(reader)
    gazetteer = Gazetteer(names, min_confidence=options.min_entity_confidence)
    if options.extractor == "gazetteer":
        return gazetteer
    by_model = ModelExtractor(
        model(options.extractor_model_id), names=names, min_confidence=options.min_entity_confidence
    )
    return by_model if options.extractor == "model" else BothExtractors(gazetteer, by_model)
