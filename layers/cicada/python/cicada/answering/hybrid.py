"""The Hybrid strategy, for complex questions: passages of a search and of an earlier answer, gathered at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass

from cicada.answering.breakers.names import CACHE, INDEX, model_breaker
from cicada.answering.grounding import Search, answer_from, degradations, fitting_prompt
from cicada.answering.prompt import number_sources
from cicada.answering.reuse import EarlierAnswers, contexts, merged, reused
from cicada.answering.spending import Spending
from cicada.answering.strategy import Asked, Retrieved, Step
from cicada.delivery.concurrency import THREADS, Concurrency
from cicada.errors import CicadaError
from cicada.models.ports import TextModel
from cicada.protocol.events import Degraded, Reused, Source, StrategyName
from cicada.retrieval.ports import Retriever, SearchResult
from cicada.story import tell

logger = logging.getLogger(__name__)

CACHE_BUDGET_S = 3.0
"""Seconds for the look-up of earlier answers: not much more than a slow search takes."""
CACHE_PASSAGES = 5
"""Passages of an earlier answer that are considered beside those of the search."""
_UNAVAILABLE = Degraded(code="cache_unavailable", message="Earlier answers could not be looked up for this one.")


@dataclass(frozen=True)
class _Earlier:
    """What the look-up brought."""

    sources: tuple[Source, ...] = ()
    reused: Reused | None = None
    index_version: str | None = None
    """The version that the passages are of."""
    degraded: tuple[Degraded, ...] = ()


class HybridStrategy:
    """:class:`cicada.answering.strategy.Strategy` over a retriever, the semantic cache and a model.

    The search and the look-up run at the same time, so they cost what the slower costs. The cache can only add: its
    failure or miss is no failure of the answer.
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
        concurrency: Concurrency = THREADS,
    ) -> None:
        """Wire the strategy.

        Args:
            retriever: finds passages.
            cache: knows earlier answers.
            model: writes.
            top_k: passages searched for, unless the question says otherwise.
            min_score: passages below it, in [0, 1], are left out, whoever brings them.
            prompt_passages: how many passages the prompt takes at most.
            cache_passages: how many of an earlier answer's passages are considered.
            concurrency: what the search and the look-up run on.
        """
        self._search = Search(retriever, top_k, min_score)
        self._retriever = retriever
        self._cache = cache
        self._model = model
        self._min_score = min_score
        self._prompt_passages = prompt_passages
        self._cache_passages = cache_passages
        self._concurrency = concurrency

    @property
    def needs(self) -> tuple[str, ...]:
        """See the port. It does without the cache."""
        return (INDEX, model_breaker(self._model.model_id))

    def answer(self, asked: Asked, spending: Spending) -> Generator[Step, None, None]:
        """See the port."""
        found, retrieval_ms, earlier, cache_ms = self._gather(asked, spending)
        # Passages of another version may not be there any more: then the search alone decides.
        cached = earlier.sources if earlier.index_version == found.index_version else ()
        together = merged(number_sources(found.hits), cached)
        sources, prompt = fitting_prompt(
            asked.query, together[: self._prompt_passages], self._model, spending, in_parts=True
        )
        contributed = any(source.origin == "cache" for source in sources)
        retrieved = Retrieved(
            sources,
            found=len(together),
            index_version=found.index_version,
            searched=found.searched,
            engine=found.engine,
            degraded=(*degradations(found), *earlier.degraded),
            retrieval_ms=retrieval_ms,
            cache_ms=cache_ms,
            reused=earlier.reused if contributed else None,
        )
        yield from answer_from(retrieved, prompt, self._model, spending)

    def _gather(self, asked: Asked, spending: Spending) -> tuple[SearchResult, int, _Earlier, int]:
        """What the search found, what the look-up brought, and the milliseconds of each."""
        found: list[SearchResult] = []
        earlier: list[_Earlier] = []

        def timed(do: Callable[[], None]) -> int:
            started = spending.monotonic()
            do()
            return round((spending.monotonic() - started) * 1000)

        retrieval_ms, cache_ms = self._concurrency.each(
            timed,
            [
                lambda: found.append(self._search(asked, spending)),
                lambda: earlier.append(self._look_up(asked, spending)),
            ],
        )
        return found[0], retrieval_ms, earlier[0], cache_ms

    def _look_up(self, asked: Asked, spending: Spending) -> _Earlier:
        try:
            version = self._retriever.version()
            budget_s = min(CACHE_BUDGET_S, spending.time_left_s())
            looked = self._cache.look_up(asked, version, time_budget_s=budget_s)
        except CicadaError as error:
            tell(
                logger,
                "fault",
                "answered without earlier answers",
                level=logging.WARNING,
                code=error.code,
                why=str(error),
                dependency=CACHE,
            )
            return _Earlier(degraded=(_UNAVAILABLE,))
        if looked.use == "miss":
            return _Earlier()
        passages = tuple(source for source in contexts(looked) if source.score >= self._min_score)
        return _Earlier(passages[: self._cache_passages], reused(looked, "contexts"), looked.index_version)
