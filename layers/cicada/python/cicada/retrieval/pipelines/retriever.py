"""A pipeline behind the retrieval port."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal

from cicada.defaults import DEFAULT_PIPELINE_BUDGET_S
from cicada.retrieval.pipelines.api import SkippedStage
from cicada.retrieval.pipelines.pipeline import Pipelines
from cicada.retrieval.pipelines.searching import TOP_K_CAPPED
from cicada.retrieval.pipelines.stages import StageRunner
from cicada.retrieval.pipelines.state import Candidate, State, Wanted
from cicada.retrieval.ports import Degradation, Hit, SearchQuery, SearchResult

RankingPipeline = Literal["standard", "rerank", "advanced"]
"""The pipelines that rank passages."""

SEARCH_CODES = frozenset({"words_only", "partial_index", "engine_fallback", "mode_fallback", TOP_K_CAPPED})
"""Codes of a search that a pipeline passes on unchanged."""


class PipelineRetriever:
    """A :class:`cicada.retrieval.ports.Retriever` that searches by a pipeline, without captions.

    A re-ranker's and a fusion's scores have scales of their own, but the port's callers compare scores with
    ``min_score`` and with other passages' scores. So the hits have the pipeline's order, and the searches' scores in
    descending order.
    """

    def __init__(
        self,
        pipelines: Pipelines,
        name: RankingPipeline,
        *,
        time_budget_s: float = DEFAULT_PIPELINE_BUDGET_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``time_budget_s`` bounds all stages within the query's limits."""
        self._pipelines = pipelines
        self._name: RankingPipeline = name
        self._time_budget_s = time_budget_s
        self._clock = clock

    def search(self, query: SearchQuery) -> SearchResult:
        """See the port. The query's limits bound the stages' models, and note their uses in any case."""
        wanted = Wanted(
            query=query.text,
            pipeline=self._name,
            filters=query.filters,
            readable=query.readable,
            top_k=query.top_k,
            min_score=query.min_score,
            mode=query.mode,
            captions=False,
        )
        runner: StageRunner[State] = StageRunner(self._time_budget_s, self._clock, query.limits)
        try:
            state = self._pipelines.find(wanted, runner)
        finally:
            for _, use in runner.uses:
                query.limits.note(use)
        return SearchResult(
            hits_of(state.candidates[: query.top_k]),
            state.index_version,
            state.total,
            runner.timings_ms,
            state.engine,
            tuple(dict.fromkeys(map(_degradation, runner.degraded))),
            tuple(use for _, use in runner.uses),
        )

    def version(self) -> str:
        """See the port."""
        return self._pipelines.version()


def hits_of(candidates: Sequence[Candidate]) -> tuple[Hit, ...]:
    """Candidates as hits in their order, with the searches' scores in descending order."""
    scores = sorted((one.search_score for one in candidates), reverse=True)
    return tuple(Hit(one.passage, score) for one, score in zip(candidates, scores, strict=True))


def _degradation(skipped: SkippedStage) -> Degradation:
    if skipped.code in SEARCH_CODES:
        return Degradation(skipped.code, skipped.message)
    return Degradation(f"{skipped.stage}_incomplete", f"{_NAMES.get(skipped.stage, skipped.stage)}: {skipped.message}")


_NAMES = {
    "query_expansion": "Other wordings of the question",
    "hyde": "A search by a made-up passage",
    "search": "Further searches",
    "rerank": "Re-ranking",
}
"""Display names of stages."""
