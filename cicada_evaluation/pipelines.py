"""A pipeline behind the retrieval port, as an evaluation measures it: with its captions, and never cut short."""

from __future__ import annotations

import time

from cicada.retrieval.pipelines.api import PipelineName
from cicada.retrieval.pipelines.captions import EMBED_SENTENCES
from cicada.retrieval.pipelines.pipeline import Pipelines
from cicada.retrieval.pipelines.stages import StageRunner
from cicada.retrieval.pipelines.state import State, Wanted
from cicada.retrieval.ports import Degradation, Hit, SearchQuery, SearchResult
from cicada.rights import EVERYTHING

TIME_BUDGET_S = 120.0
"""For all stages: a slow one is to be measured, not left out."""


class EvaluatedPipeline:
    """A :class:`cicada.retrieval.ports.Retriever`: a pipeline's documents, in its order, as integrators get them.

    The scores are the searches' own, and say nothing of the order.
    """

    def __init__(self, pipelines: Pipelines, name: PipelineName, *, semantic: bool = False) -> None:
        """Choose a pipeline, and whether it ranks by captions."""
        self._pipelines = pipelines
        self._name: PipelineName = name
        self._semantic = semantic

    def search(self, query: SearchQuery) -> SearchResult:
        """See the port. A stage that had to be left out is a degradation, named ``<stage>_<code>``."""
        wanted = Wanted(
            query=query.text,
            pipeline=self._name,
            filters=query.filters,
            top_k=query.top_k,
            min_score=query.min_score,
            mode=query.mode,
            semantic=self._semantic,
            readable=EVERYTHING,
        )
        runner: StageRunner[State] = StageRunner(TIME_BUDGET_S, time.monotonic)
        state = self._pipelines.find(wanted, runner)
        return SearchResult(
            tuple(Hit(one.passage, one.search_score) for one in state.candidates[: query.top_k]),
            state.index_version,
            state.total,
            runner.timings_ms,
            state.engine,
            tuple(Degradation(f"{one.stage}_{one.code}", one.message) for one in runner.degraded),
            tuple(use for _, use in runner.uses if use.purpose != EMBED_SENTENCES),  # what is embedded is metered
        )

    def version(self) -> str:
        """See the port."""
        return self._pipelines.version()
