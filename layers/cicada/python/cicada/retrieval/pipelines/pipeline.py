"""The four pipelines: their stages in order, and what each does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from cicada.errors import AnswerMalformed, CicadaError, RetrievalInvalid, SettingsInvalid
from cicada.models.ports import Embedder, Reranker, StructuredModel
from cicada.retrieval.calibration import trust_in
from cicada.retrieval.pipelines.api import (
    MAX_FACET_VALUES,
    ErrorBody,
    Facet,
    FacetValue,
    PipelineName,
    RetrieveRequest,
    RetrieveResponse,
    SemanticAnswer,
)
from cicada.retrieval.pipelines.captions import captions
from cicada.retrieval.pipelines.documents import document_of
from cicada.retrieval.pipelines.expansion import hypothetical, wordings
from cicada.retrieval.pipelines.fusion import by_score, candidates_of
from cicada.retrieval.pipelines.searching import SEMANTIC_RANKED, search
from cicada.retrieval.pipelines.stages import Stage, StageBudget, StageRunner, StageSkipped, stage_uses
from cicada.retrieval.pipelines.state import Candidate, State, Wanted
from cicada.retrieval.ports import Filters, Retriever
from cicada.rights import Readable

if TYPE_CHECKING:
    from cicada.retrieval.facets import FacetCounts

logger = logging.getLogger(__name__)

MAX_RERANKED = 300
"""The first candidates, which a re-ranker judges."""
CAPTIONED = 10
"""The first documents, which get captions."""
MAX_ANSWERS = 3
MIN_ANSWER_SCORE = 0.7
"""The least similarity of a caption that answers by itself."""
ORIGINAL_WEIGHT = 2.0
"""The weight of the query as asked in the fusion; another wording has 1."""
NOT_CONFIGURED = "not_configured"
"""The code of a stage without a model in this deployment."""
UNKNOWN_LANGUAGE = "unknown_language"
"""The code of a stage by vectors alone, for a query in a language unknown to the embedding model."""
NOT_ALL_MARKED = AnswerMalformed.code
"""The code of a re-ranking whose model left passages out."""
_RERANK_SHARE = 0.95
"""The re-ranker's share of its stage's time, so that partial results can be used."""

Change = Callable[[State], State]


class FacetCounter(Protocol):
    """Counts the values of fields: :class:`cicada.retrieval.facets.ShardFacets`."""

    def count(self, fields: Sequence[str], filters: Filters, *, readable: Readable, limit: int) -> FacetCounts:
        """See :meth:`cicada.retrieval.facets.ShardFacets.count`."""


class Pipelines:
    """Runs the pipelines over a retriever and models; safe for several threads."""

    def __init__(
        self,
        retriever: Retriever,
        embedder: Embedder,
        *,
        facets: FacetCounter | None = None,
        reranker: Reranker | None = None,
        model: StructuredModel | None = None,
        original_weight: float = ORIGINAL_WEIGHT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``embedder``, for captions, is the index's; one that caches query vectors saves a call.

        Without ``facets`` that pipeline fails; without a re-ranker or a writing ``model`` their stages are skipped.
        """
        self._retriever = retriever
        self._embedder = embedder
        self._facets = facets
        self._reranker = reranker
        self._model = model
        self._original_weight = original_weight
        self._clock = clock
        self._plans = self._made_plans()

    def run(self, request: RetrieveRequest, readable: Readable) -> RetrieveResponse:
        """Retrieve from what may be read. A failure is a response with ``success`` false and an ``error``."""
        runner: StageRunner[State] = StageRunner(request.time_budget_s, self._clock)
        try:
            request.refuse_blank()
            state = self.find(Wanted.of(request, readable), runner)
        except CicadaError as error:
            logger.warning("retrieval failed", extra={"code": error.code, "why": str(error)})
            told = str(error) if isinstance(error, RetrievalInvalid) else error.told
            return RetrieveResponse(
                success=False,
                pipeline=request.pipeline,
                search_type=request.search_type,
                timings_ms=runner.timings_ms,
                degraded=runner.degraded,
                model_uses=stage_uses(runner.uses),
                error=ErrorBody(code=error.code, message=told, retryable=error.retryable),
            )
        documents = tuple(
            document_of(one, with_captions=request.enable_captions) for one in state.candidates[: request.top_k]
        )
        facets_only = request.pipeline == "facets"
        return RetrieveResponse(
            success=True,
            documents=documents,
            count=len(documents),
            queries_used=() if facets_only else tuple(one.query for one in state.rankings if one.query is not None),
            reranked=state.reranked,
            hyde_used=any(one.query is None for one in state.rankings),
            pipeline=request.pipeline,
            search_type=request.search_type,
            semantic_answers=state.answers,
            facets=state.facets,
            total=state.total,
            index_version=state.index_version,
            timings_ms=runner.timings_ms,
            degraded=runner.degraded,
            model_uses=stage_uses(runner.uses),
        )

    def find(self, wanted: Wanted, runner: StageRunner[State]) -> State:
        """Run a pipeline's stages; raises the CicadaError of the search or the count."""
        return runner.run(self._plans[wanted.pipeline], State(wanted))

    def version(self) -> str:
        """The version that a search would use now: see :class:`cicada.retrieval.ports.Retriever`."""
        return self._retriever.version()

    def _made_plans(self) -> Mapping[PipelineName, Sequence[Sequence[Stage[State]]]]:
        expansion = Stage("query_expansion", 0.25, lambda state: state.wanted.expand, self._expand)
        hyde = Stage("hyde", 0.25, lambda state: state.wanted.hypothesises, self._hyde)
        searching = Stage("search", 1.0, _always, self._search, required=True)
        fusion = Stage("fusion", 1.0, lambda state: len(state.rankings) > 1, self._fuse, required=True)
        semantic = Stage("semantic_ranking", 0.25, lambda state: state.wanted.semantic and _found(state), self._rank)
        rerank = Stage("rerank", 0.5, lambda state: state.wanted.reranks and _found(state), self._rerank)
        captioning = Stage("captions", 0.25, lambda state: state.wanted.captions and _found(state), self._caption)
        answers = Stage("answers", 0.1, lambda state: state.wanted.captions and _found(state), _answer)
        counting = Stage("facets", 1.0, _always, self._count, required=True)
        told = ((captioning,), (answers,))
        return {
            "standard": ((searching,), (semantic,), *told),
            "rerank": ((searching,), (semantic,), (rerank,), *told),
            "advanced": ((expansion, hyde), (searching,), (fusion,), (semantic,), (rerank,), *told),
            "facets": ((counting,),),
        }

    def _expand(self, state: State, stage_budget: StageBudget) -> Change:
        found = wordings(state.wanted.query, self._needed_model("the query's other wordings"), stage_budget)
        return lambda now: replace(now, wordings=found)

    def _hyde(self, state: State, stage_budget: StageBudget) -> Change:
        self._check_language(state)
        passage = hypothetical(state.wanted.query, self._needed_model("a made-up passage"), stage_budget)
        return lambda now: replace(now, hypothetical=passage)

    def _needed_model(self, purpose: str) -> StructuredModel:
        if self._model is None:
            raise StageSkipped(NOT_CONFIGURED, f"No model is configured for {purpose}.")
        return self._model

    def _check_language(self, state: State) -> None:
        """Skip a stage by vectors alone in a language that the embedding model does not know."""
        if trust_in(self._embedder.model_id, state.wanted.query, {}) < 1:
            raise StageSkipped(UNKNOWN_LANGUAGE, "The embedding model does not support the query's language.")

    def _search(self, state: State, stage_budget: StageBudget) -> Change:
        found, rankings = search(state, stage_budget, self._retriever, self._clock)
        return lambda now: replace(
            now,
            rankings=rankings,
            candidates=candidates_of(rankings[:1], self._original_weight),
            index_version=found.index_version,
            total=found.searched,
            engine=found.engine,
        )

    def _fuse(self, state: State, stage_budget: StageBudget) -> Change:  # noqa: ARG002 - it uses nothing
        together = candidates_of(state.rankings, self._original_weight)
        return lambda now: replace(now, candidates=together)

    def _rank(self, state: State, stage_budget: StageBudget) -> Change:
        self._check_language(state)
        captioned = self._captioned(state, SEMANTIC_RANKED, stage_budget)
        scored = [replace(one, reranker_score=one.captions[0].score if one.captions else 0.0) for one in captioned]
        ranked = (*by_score(scored, lambda one: one.reranker_score), *state.candidates[SEMANTIC_RANKED:])
        return lambda now: replace(now, candidates=ranked)

    def _rerank(self, state: State, stage_budget: StageBudget) -> Change:
        reranker = self._reranker
        if reranker is None:
            raise StageSkipped(NOT_CONFIGURED, "No re-ranking model is configured.")
        judged, behind = state.candidates[:MAX_RERANKED], state.candidates[MAX_RERANKED:]
        texts = [one.passage.context for one in judged]
        with stage_budget.time_for_model(_RERANK_SHARE) as time_s, stage_budget.use("rerank", reranker.model_id) as use:
            reranked = reranker.rerank(state.wanted.query, texts, time_budget_s=time_s, call_scope=use)
        stage_budget.note(reranked.uses, instead_of=use)
        if reranked.unscored:
            fault = next((one.fault for one in reranked.uses if one.fault is not None), NOT_ALL_MARKED)
            told = f"{len(reranked.unscored)} of {len(texts)} passages could not be re-ranked, and kept their places."
            stage_budget.lacks(fault, told)
        unscored = frozenset(reranked.unscored)
        scored = [
            one if place in unscored else replace(one, rerank_score=score)
            for place, (one, score) in enumerate(zip(judged, reranked.scores, strict=True))
        ]
        ranked = (*by_score(scored, lambda one: one.rerank_score), *behind)
        return lambda now: replace(now, candidates=ranked, reranked=True)

    def _caption(self, state: State, stage_budget: StageBudget) -> Change:
        count = min(CAPTIONED, state.wanted.top_k)
        captioned = (*self._captioned(state, count, stage_budget), *state.candidates[count:])
        return lambda now: replace(now, candidates=captioned)

    def _captioned(self, state: State, count: int, stage_budget: StageBudget) -> tuple[Candidate, ...]:
        """The first candidates, those without captions with some."""
        first = state.candidates[:count]
        texts = [one.passage.text for one in first if one.captions is None]
        made = iter(captions(state.wanted.query, texts, self._embedder, stage_budget))
        return tuple(replace(one, captions=next(made)) if one.captions is None else one for one in first)

    def _count(self, state: State, stage_budget: StageBudget) -> Change:
        if self._facets is None:
            raise SettingsInvalid("facets: no facet counter is configured")
        wanted = state.wanted
        counted = self._facets.count(wanted.facets, wanted.filters, readable=wanted.readable, limit=MAX_FACET_VALUES)
        for one in counted.degraded:
            stage_budget.lacks(one.code, one.message)
        facets = tuple(
            Facet(
                field=field.field,
                unique=field.unique,
                values=tuple(FacetValue(value=value, count=count) for value, count in field.values),
            )
            for field in counted.fields
        )
        return lambda now: replace(now, facets=facets, index_version=counted.index_version, total=counted.total)


def _always(_: State) -> bool:
    return True


def _found(state: State) -> bool:
    return bool(state.candidates)


def _answer(state: State, stage_budget: StageBudget) -> Change:  # noqa: ARG001 - it uses nothing
    """Captions that are near enough to the query to be its answer, and not questions."""
    told = [
        SemanticAnswer(text=best.text, score=best.score, highlights=best.highlights, document_id=one.passage.id)
        for one in state.candidates
        for best in (one.captions or ())[:1]
        if best.score >= MIN_ANSWER_SCORE and not best.text.rstrip("\"'”’»」) ").endswith(("?", "？"))
    ]
    found = tuple(sorted(told, key=lambda one: -one.score)[:MAX_ANSWERS])
    return lambda now: replace(now, answers=found)
