"""The RAG strategy: search, numbered passages, a grounded answer with checked citations.

The semantic cache is looked up during the search; an earlier answer to the same question is replayed.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from cicada.answering.grounding import AttemptLimits, answer_from, degradations, fitting_prompt
from cicada.answering.judge import CitationJudge
from cicada.answering.prompt import number_sources
from cicada.answering.reuse import ParallelLookup, replayed
from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AskedQuestion, Retrieved, Step
from cicada.breakers.dependencies import INDEX, model_breaker
from cicada.concurrency import THREADS, Concurrency
from cicada.models.ports import TextModel
from cicada.protocol.events import StrategyName
from cicada.retrieval.ports import Retriever, SearchQuery, SearchResult, filters_of
from cicada.semantic_cache.ports import EarlierAnswers


@dataclass(frozen=True)
class RagStrategy:
    """:class:`cicada.attempts.strategy.Strategy` over a retriever, the semantic cache and a model."""

    name: ClassVar[StrategyName] = "rag"

    retriever: Retriever
    cache: EarlierAnswers
    model: TextModel
    _: KW_ONLY
    top_k: int
    """Passages to search for, unless the question sets a number of its own."""
    min_score: float
    """Passages with a lower score, in [0, 1], are left out."""
    prompt_passages: int
    """The most passages in the prompt."""
    judge: CitationJudge | None = None
    """Checks the citations that code cannot check; without it they stay unchecked."""
    concurrency: Concurrency = THREADS

    @property
    def needs(self) -> tuple[str, ...]:
        """See the port. The cache is optional."""
        return (INDEX, model_breaker(self.model.model_id))

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """See the port."""
        lookup = ParallelLookup(self.retriever, self.cache, self.concurrency)
        both = lookup.search(lambda: self.search(asked, attempt_budget), asked, attempt_budget)
        found = both.found
        again = both.to_replay(found.index_version)
        if again is not None:
            yield from replayed(again, engine=found.engine, cache_ms=both.cache_ms, retrieval_ms=both.retrieval_ms)
            return
        numbered = number_sources(found.hits[: self.prompt_passages])
        sources, prompt = fitting_prompt(asked.query, numbered, self.model, attempt_budget)
        retrieved = Retrieved(
            sources,
            found=len(found.hits),
            index_version=found.index_version,
            searched=found.searched,
            engine=found.engine,
            degraded=(*degradations(found), *both.degraded),
            retrieval_ms=both.retrieval_ms,
            cache_ms=both.cache_ms,
        )
        yield from answer_from(retrieved, prompt, self.model, attempt_budget, self.judge)

    def search(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> SearchResult:
        """Search for a question within the attempt's budget."""
        return self.retriever.search(self.search_query(asked, attempt_budget))

    def search_query(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> SearchQuery:
        """The search for a question within the attempt's budget."""
        question = asked.question
        return SearchQuery(
            text=asked.query,
            filters=filters_of(question),
            top_k=question.top_k or self.top_k,
            min_score=self.min_score,
            limits=AttemptLimits(attempt_budget),
            readable=asked.readable(),
        )
