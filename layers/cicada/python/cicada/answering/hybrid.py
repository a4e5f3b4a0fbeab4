"""The Hybrid strategy, for complex questions: passages of a search and of an earlier answer, gathered at once.

Where collections declare what they serve, the search is the one by intentions and names; see
:mod:`cicada.retrieval.knowledge`.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from cicada.answering.grounding import answer_from, degradations, fitting_prompt
from cicada.answering.judge import CitationJudge
from cicada.answering.knowledge import KnowledgeGathering, chosen_sources
from cicada.answering.prompt import number_sources
from cicada.answering.rag import RagStrategy
from cicada.answering.reuse import contexts, given_again, merged, reused
from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AskedQuestion, Retrieved, Step
from cicada.concurrency import THREADS, Concurrency
from cicada.models.ports import TextModel
from cicada.protocol.events import Source, StrategyName
from cicada.retrieval.knowledge.search import Gathered
from cicada.retrieval.ports import Retriever, SearchResult
from cicada.semantic_cache.ports import EarlierAnswers, Looked

CACHE_PASSAGES = 5
"""Passages of an earlier answer that are considered beside those of the search."""


@dataclass(frozen=True)
class _Found:
    """What the search brought."""

    sources: tuple[Source, ...]
    came_from: SearchResult | Gathered

    @property
    def chosen(self) -> bool:
        """Whether the passages were chosen one by one, and their order says what each of them weighs."""
        return isinstance(self.came_from, Gathered)

    @property
    def count(self) -> int:
        """How many passages there were to choose from."""
        return self.came_from.found if isinstance(self.came_from, Gathered) else len(self.sources)


class HybridStrategy(RagStrategy):
    """:class:`RagStrategy` that also uses the passages of an answer to a near question, and contexts of collections.

    A failure to choose collections, or to find what is named, fails the strategy: the next one does without.
    """

    name: StrategyName = "hybrid"

    def __init__(
        self,
        retriever: Retriever,
        cache: EarlierAnswers,
        model: TextModel,
        *,
        top_k: int,
        min_score: float,
        prompt_passages: int,
        cache_passages: int = CACHE_PASSAGES,
        knowledge: KnowledgeGathering | None = None,
        judge: CitationJudge | None = None,
        concurrency: Concurrency = THREADS,
    ) -> None:
        """Wire the strategy.

        Args:
            retriever, cache, model, top_k, judge, concurrency: see :class:`RagStrategy`.
            min_score: passages below it, in [0, 1], are left out, whoever brings them.
            prompt_passages: how many passages the prompt takes at most; of a context that ``knowledge`` chose, all.
            cache_passages: how many of an earlier answer's passages are considered.
            knowledge: gathers contexts where collections declare what they serve; without it every search is plain.
        """
        super().__init__(
            retriever,
            cache,
            model,
            top_k=top_k,
            min_score=min_score,
            prompt_passages=prompt_passages,
            judge=judge,
            concurrency=concurrency,
        )
        self._min_score = min_score
        self._cache_passages = cache_passages
        self._knowledge = knowledge

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """See the port."""
        both = self._earlier.search(lambda: self._found(asked, attempt_budget), asked, attempt_budget)
        found = both.found
        version = found.came_from.index_version
        again = both.to_give_again(version)
        if again is not None:
            yield from given_again(
                again, engine=found.came_from.engine, cache_ms=both.cache_ms, retrieval_ms=both.retrieval_ms
            )
            return
        # Passages of another version may not be there any more: then the search alone decides.
        looked = both.looked if both.looked and both.looked.index_version == version else None
        cached = self._passages_of(looked) if looked else ()
        together = merged(found.sources, cached, in_order=found.chosen)
        most = max(self._prompt_passages, len(found.sources)) if found.chosen else self._prompt_passages
        sources, prompt = fitting_prompt(asked.query, together[:most], self._model, attempt_budget, in_parts=True)
        contributed = any(source.origin == "cache" for source in sources)
        retrieved = Retrieved(
            sources,
            found=len(together) + found.count - len(found.sources),
            index_version=version,
            searched=found.came_from.searched,
            engine=found.came_from.engine,
            degraded=(*degradations(found.came_from), *both.degraded),
            retrieval_ms=both.retrieval_ms,
            cache_ms=both.cache_ms,
            reused=reused(looked, "contexts") if looked and contributed else None,
        )
        yield from answer_from(retrieved, prompt, self._model, attempt_budget, self._judge)

    def _passages_of(self, looked: Looked) -> tuple[Source, ...]:
        passages = tuple(source for source in contexts(looked) if source.score >= self._min_score)
        return passages[: self._cache_passages]

    def _found(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> _Found:
        if self._knowledge is not None:
            gathered = self._knowledge.gather(self._search.query(asked, attempt_budget))
            if gathered is not None:
                return _Found(chosen_sources(gathered), gathered)
        result = self._search(asked, attempt_budget)
        return _Found(number_sources(result.hits), result)
