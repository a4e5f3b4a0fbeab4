"""The RAG strategy: search, numbered passages, a grounded answer with checked citations."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence

from cicada.answering.citations import check_citations
from cicada.answering.prompt import NOTHING_FOUND, number_sources, rag_prompt
from cicada.answering.strategy import Answered, Retrieved, Step
from cicada.answering.writing import write
from cicada.delivery.record import Question
from cicada.models.ports import TextDelta, TextModel, Usage
from cicada.protocol.events import Degraded, StrategyFailure, StrategyName
from cicada.retrieval.ports import Filters, Retriever, SearchQuery


class RagStrategy:
    """:class:`cicada.answering.strategy.Strategy` over a retriever and a model."""

    name: StrategyName = "rag"

    def __init__(
        self,
        retriever: Retriever,
        model: TextModel,
        *,
        top_k: int,
        min_score: float,
        prompt_passages: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._retriever = retriever
        self._model = model
        self._top_k = top_k
        self._min_score = min_score
        self._prompt_passages = prompt_passages
        self._monotonic = monotonic

    @property
    def model_id(self) -> str:
        """See the port."""
        return self._model.model_id

    def answer(
        self,
        question: Question,
        failed: Sequence[StrategyFailure],  # noqa: ARG002 - a grounded answer is the same whatever failed before
        *,
        time_budget_s: float,
    ) -> Generator[Step, None, None]:
        """See the port."""
        started = self._monotonic()
        found = self._retriever.search(
            SearchQuery(
                text=question.query,
                filters=Filters(collections=question.collections, episodes=question.episodes),
                top_k=question.top_k or self._top_k,
                min_score=self._min_score,
            )
        )
        searched = self._monotonic()
        sources = number_sources(found.hits[: self._prompt_passages])
        took_ms = round((searched - started) * 1000)
        degraded = tuple(Degraded(code=one.code, message=one.message) for one in found.degraded)
        yield Retrieved(sources, len(found.hits), found.index_version, found.searched, took_ms, found.engine, degraded)
        if not sources:
            # Said by code: a model without a passage might answer from what it knows.
            yield TextDelta(NOTHING_FOUND)
            yield Answered("nothing_found", Usage(), ())
            return
        written = yield from write(
            self._model,
            rag_prompt(question.query, sources),
            time_budget_s=time_budget_s - (searched - started),
        )
        yield Answered(written.finished.stop_reason, written.finished.usage, check_citations(written.text, sources))
