"""The Hybrid strategy, for complex questions: passages of a search and of an earlier answer, gathered at once.

Where collections declare what they serve, the search is the one by intentions and names; see
:mod:`cicada.retrieval.knowledge`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass

from cicada.answering.breakers.names import CACHE, INDEX, model_breaker
from cicada.answering.grounding import Search, answer_from, degradations, fitting_prompt
from cicada.answering.knowledge import Knowledge, chosen_sources
from cicada.answering.prompt import number_sources
from cicada.answering.reuse import EarlierAnswers, contexts, merged, reused
from cicada.answering.spending import Spending
from cicada.answering.strategy import Asked, Retrieved, Step
from cicada.concurrency import THREADS, Concurrency
from cicada.errors import CicadaError
from cicada.models.ports import TextModel
from cicada.protocol.events import Degraded, Reused, Source, StrategyName
from cicada.retrieval.knowledge.search import Gathered
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


class HybridStrategy:
    """:class:`cicada.answering.strategy.Strategy` over a retriever, the semantic cache and a model.

    The search and the look-up run at the same time, so they cost what the slower costs. The cache can only add: its
    failure or miss is no failure of the answer. A failure to choose collections, or to find what is named, is one: the
    next strategy does without.
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
        knowledge: Knowledge | None = None,
        concurrency: Concurrency = THREADS,
    ) -> None:
        """Wire the strategy.

        Args:
            retriever: finds passages.
            cache: knows earlier answers.
            model: writes.
            top_k: passages searched for, unless the question says otherwise.
            min_score: passages below it, in [0, 1], are left out, whoever brings them.
            prompt_passages: how many passages the prompt takes at most; of a context that ``knowledge`` chose, all.
            cache_passages: how many of an earlier answer's passages are considered.
            knowledge: gathers contexts where collections declare what they serve; without it every search is plain.
            concurrency: what the search and the look-up run on.
        """
        self._search = Search(retriever, top_k, min_score)
        self._retriever = retriever
        self._cache = cache
        self._model = model
        self._min_score = min_score
        self._prompt_passages = prompt_passages
        self._cache_passages = cache_passages
        self._knowledge = knowledge
        self._concurrency = concurrency

    @property
    def needs(self) -> tuple[str, ...]:
        """See the port. It does without the cache."""
        return (INDEX, model_breaker(self._model.model_id))

    def answer(self, asked: Asked, spending: Spending) -> Generator[Step, None, None]:
        """See the port."""
        found, retrieval_ms, earlier, cache_ms = self._gather(asked, spending)
        # Passages of another version may not be there any more: then the search alone decides.
        cached = earlier.sources if earlier.index_version == found.came_from.index_version else ()
        together = merged(found.sources, cached, in_order=found.chosen)
        most = max(self._prompt_passages, len(found.sources)) if found.chosen else self._prompt_passages
        sources, prompt = fitting_prompt(asked.query, together[:most], self._model, spending, in_parts=True)
        contributed = any(source.origin == "cache" for source in sources)
        retrieved = Retrieved(
            sources,
            found=len(together) + found.count - len(found.sources),
            index_version=found.came_from.index_version,
            searched=found.came_from.searched,
            engine=found.came_from.engine,
            degraded=(*degradations(found.came_from), *earlier.degraded),
            retrieval_ms=retrieval_ms,
            cache_ms=cache_ms,
            reused=earlier.reused if contributed else None,
        )
        yield from answer_from(retrieved, prompt, self._model, spending)

    def _gather(self, asked: Asked, spending: Spending) -> tuple[_Found, int, _Earlier, int]:
        """What the search found, what the look-up brought, and the milliseconds of each."""
        found: list[_Found] = []
        earlier: list[_Earlier] = []

        def timed(do: Callable[[], None]) -> int:
            started = spending.monotonic()
            do()
            return round((spending.monotonic() - started) * 1000)

        retrieval_ms, cache_ms = self._concurrency.each(
            timed,
            [
                lambda: found.append(self._found(asked, spending)),
                lambda: earlier.append(self._look_up(asked, spending)),
            ],
        )
        return found[0], retrieval_ms, earlier[0], cache_ms

    def _found(self, asked: Asked, spending: Spending) -> _Found:
        if self._knowledge is not None:
            gathered = self._knowledge.gather(self._search.query(asked, spending))
            if gathered is not None:
                return _Found(chosen_sources(gathered), gathered)
        result = self._search(asked, spending)
        return _Found(number_sources(result.hits), result)

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
