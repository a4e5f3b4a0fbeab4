"""The Hybrid strategy, for complex questions: passages of a search and of an earlier answer together.

If collections declare what they serve, the search goes by intentions and names; see :mod:`cicada.retrieval.knowledge`.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from cicada.answering.grounding import answer_from, degradations, fitting_prompt
from cicada.answering.knowledge import KnowledgeGathering, chosen_sources
from cicada.answering.prompt import number_sources
from cicada.answering.rag import RagStrategy
from cicada.answering.reuse import ParallelLookup, contexts, merged, replayed, reused
from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AskedQuestion, Retrieved, Step
from cicada.protocol.events import Source, StrategyName
from cicada.retrieval.knowledge.search import Gathered
from cicada.retrieval.ports import SearchResult
from cicada.semantic_cache.ports import Looked


@dataclass(frozen=True)
class _Found:
    """The result of the search."""

    sources: tuple[Source, ...]
    result: SearchResult | Gathered

    @property
    def chosen(self) -> bool:
        """Whether the passages were chosen one by one: then their order is their rank, whatever their scores."""
        return isinstance(self.result, Gathered)

    @property
    def count(self) -> int:
        """How many passages there were to choose from."""
        return self.result.found if isinstance(self.result, Gathered) else len(self.sources)


@dataclass(frozen=True)
class HybridStrategy(RagStrategy):
    """:class:`RagStrategy` that also uses the passages of an answer to a near question, and contexts of collections.

    If collections cannot be chosen or names not resolved, the strategy fails: the next one works without them.
    """

    name: ClassVar[StrategyName] = "hybrid"

    _: KW_ONLY
    cache_passages: int = 5
    """The most passages of an earlier answer to consider."""
    knowledge: KnowledgeGathering | None = None
    """Gathers contexts from collections that declare what they serve; without it every search is plain. All passages of
    a context go into the prompt, also beyond ``prompt_passages``."""

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """See the port."""
        lookup = ParallelLookup(self.retriever, self.cache, self.concurrency)
        both = lookup.search(lambda: self._found(asked, attempt_budget), asked, attempt_budget)
        found, result = both.found, both.found.result
        version = result.index_version
        again = both.to_replay(version)
        if again is not None:
            yield from replayed(again, engine=result.engine, cache_ms=both.cache_ms, retrieval_ms=both.retrieval_ms)
            return
        # Passages of another version may be deleted by now, so they are not used.
        looked = both.looked if both.looked and both.looked.index_version == version else None
        cached = self._passages_of(looked) if looked else ()
        together = merged(found.sources, cached, in_order=found.chosen)
        most = max(self.prompt_passages, len(found.sources)) if found.chosen else self.prompt_passages
        sources, prompt = fitting_prompt(asked.query, together[:most], self.model, attempt_budget, in_parts=True)
        contributed = any(source.origin == "cache" for source in sources)
        retrieved = Retrieved(
            sources,
            found=len(together) + found.count - len(found.sources),
            index_version=version,
            searched=result.searched,
            engine=result.engine,
            degraded=(*degradations(result), *both.degraded),
            retrieval_ms=both.retrieval_ms,
            cache_ms=both.cache_ms,
            reused=reused(looked, "contexts") if looked and contributed else None,
        )
        yield from answer_from(retrieved, prompt, self.model, attempt_budget, self.judge)

    def _passages_of(self, looked: Looked) -> tuple[Source, ...]:
        passages = tuple(source for source in contexts(looked) if source.score >= self.min_score)
        return passages[: self.cache_passages]

    def _found(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> _Found:
        if self.knowledge is not None:
            gathered = self.knowledge.gather(self.search_query(asked, attempt_budget))
            if gathered is not None:
                return _Found(chosen_sources(gathered), gathered)
        result = self.search(asked, attempt_budget)
        return _Found(number_sources(result.hits), result)
