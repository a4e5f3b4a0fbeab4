"""The RAG strategy: search, numbered passages, a grounded answer with checked citations.

An earlier answer to the same question, looked up beside the search, is given again.
"""

from __future__ import annotations

from collections.abc import Generator

from cicada.answering.grounding import Search, answer_from, degradations, fitting_prompt
from cicada.answering.judge import CitationJudge
from cicada.answering.prompt import number_sources
from cicada.answering.reuse import EarlierBeside, given_again
from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AskedQuestion, Retrieved, Step
from cicada.breakers.dependencies import INDEX, model_breaker
from cicada.concurrency import THREADS, Concurrency
from cicada.models.ports import TextModel
from cicada.protocol.events import StrategyName
from cicada.retrieval.ports import Retriever
from cicada.semantic_cache.ports import EarlierAnswers


class RagStrategy:
    """:class:`cicada.attempts.strategy.Strategy` over a retriever, the semantic cache and a model."""

    name: StrategyName = "rag"

    def __init__(
        self,
        retriever: Retriever,
        cache: EarlierAnswers,
        model: TextModel,
        *,
        top_k: int,
        min_score: float,
        prompt_passages: int,
        judge: CitationJudge | None = None,
        concurrency: Concurrency = THREADS,
    ) -> None:
        """Wire the strategy.

        Args:
            retriever, cache, model: find passages, know earlier answers, write.
            top_k: passages searched for, unless the question says otherwise.
            min_score: hits below it, in [0, 1], are no hits.
            prompt_passages: of the hits, how many the prompt takes at most.
            judge: of the citations that code alone cannot check; without one they stay unchecked.
        """
        self._search = Search(retriever, top_k, min_score)
        self._earlier = EarlierBeside(retriever, cache, concurrency)
        self._model = model
        self._judge = judge
        self._prompt_passages = prompt_passages

    @property
    def needs(self) -> tuple[str, ...]:
        """See the port. It does without the cache."""
        return (INDEX, model_breaker(self._model.model_id))

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """See the port."""
        both = self._earlier.search(lambda: self._search(asked, attempt_budget), asked, attempt_budget)
        found = both.found
        again = both.to_give_again(found.index_version)
        if again is not None:
            yield from given_again(again, engine=found.engine, cache_ms=both.cache_ms, retrieval_ms=both.retrieval_ms)
            return
        numbered = number_sources(found.hits[: self._prompt_passages])
        sources, prompt = fitting_prompt(asked.query, numbered, self._model, attempt_budget)
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
        yield from answer_from(retrieved, prompt, self._model, attempt_budget, self._judge)
