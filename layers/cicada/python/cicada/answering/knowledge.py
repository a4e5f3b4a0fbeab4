"""Contexts that are chosen by what collections declare, for the strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cicada.answering.prompt import number_sources, passage_tokens
from cicada.breakers.dependencies import INDEX
from cicada.breakers.guards import GuardedForms
from cicada.breakers.registry import BreakerRegistry
from cicada.protocol.events import Source
from cicada.retrieval.knowledge.search import Gathered
from cicada.retrieval.ports import Retriever, SearchQuery

if TYPE_CHECKING:
    from cicada.index.reader import IndexReader
    from cicada.models.factory import ModelFactory
    from cicada.settings import AnswerSettings


class KnowledgeGathering(Protocol):
    """Gathers contexts: :class:`cicada.retrieval.knowledge.search.KnowledgeSearch`."""

    def gather(self, asked: SearchQuery) -> Gathered | None:
        """The context of a question; None if no collection that it may search declares anything.

        Raises CicadaError if a step fails, and Stopped.
        """
        ...


class GuardedKnowledge:
    """:class:`KnowledgeGathering` that also raises DependencyDown while the index's breaker is open.

    One permit covers all searches of a question: parallel searches would compete for the probe.
    """

    def __init__(self, knowledge: KnowledgeGathering, breakers: BreakerRegistry) -> None:
        self._knowledge = knowledge
        self._breakers = breakers

    def gather(self, asked: SearchQuery) -> Gathered | None:
        """See the port."""
        with self._breakers.admit(INDEX) as call:
            gathered = self._knowledge.gather(asked)
            if gathered is not None:
                call.succeeded()
        return gathered


def chosen_sources(gathered: Gathered) -> tuple[Source, ...]:
    """The passages of a context as numbered sources, each with the reasons for its choice."""
    numbered = number_sources([one.hit for one in gathered.chosen])
    return tuple(
        source.model_copy(update={"why": one.why}) for source, one in zip(numbered, gathered.chosen, strict=True)
    )


def build_knowledge_of(
    settings: AnswerSettings, reader: IndexReader, shards: Retriever, models: ModelFactory, breakers: BreakerRegistry
) -> KnowledgeGathering | None:
    """Gathers contexts as the settings say; None if they disable it.

    ``shards`` makes plain searches of the index that holds the declarations, names and sections.
    """
    if not settings.knowledge_enabled:
        return None
    from cicada.retrieval.knowledge.wiring import (
        KnowledgeOptions,
        build_knowledge,
    )  # loads what only this needs

    options = KnowledgeOptions(
        selector_model_id=settings.selector_model_id or settings.direct_model_id,
        extractor_model_id=settings.extractor_model_id or settings.direct_model_id,
        extractor=settings.knowledge_extractor,
        min_intention_confidence=settings.min_intention_confidence,
        min_entity_confidence=settings.min_entity_confidence,
        context_tokens=settings.context_tokens,
        passages_per_collection=settings.passages_per_collection,
        min_score=settings.min_score,
        budget_s=settings.knowledge_budget_s,
    )
    knowledge = build_knowledge(
        options,
        reader=reader,
        retriever=shards,
        models=models,
        tokens_of=passage_tokens,
        guard_model=lambda model: GuardedForms(model, breakers),
    )
    return GuardedKnowledge(knowledge, breakers)


def knowledge_shape(settings: AnswerSettings) -> tuple[object, ...]:
    """The settings that shape answers from contexts; empty if they are disabled."""
    if not settings.knowledge_enabled:
        return ()
    return (
        "knowledge",
        settings.selector_model_id or settings.direct_model_id,
        settings.extractor_model_id or settings.direct_model_id,
        settings.knowledge_extractor,
        settings.min_intention_confidence,
        settings.min_entity_confidence,
        settings.context_tokens,
        settings.passages_per_collection,
    )
