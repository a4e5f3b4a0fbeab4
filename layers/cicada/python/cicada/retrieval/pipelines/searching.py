"""The parallel searches of one retrieval: for the query, for other wordings of it, and by a made-up passage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial

from cicada.errors import CicadaError, OutOfTime
from cicada.retrieval.background import run_in_background, wait_for
from cicada.retrieval.pipelines.stages import StageBudget
from cicada.retrieval.pipelines.state import SearchRanking, State
from cicada.retrieval.ports import Retriever, SearchLimits, SearchQuery, SearchResult, TimeLimit

OVER_RETRIEVAL = 3
"""Passages to search for each returned one, for a re-ranker's choice."""
SEMANTIC_RANKED = 20
"""The first passages, of which semantic ranking embeds some sentences."""
MAX_DEPTH = 1_000
"""Passages of one search at most."""
PATIENCE = 0.4
"""The share of the searches' time to wait for other searches than the query's own."""
INDEX_CHANGED = "index_changed"
"""The code of a search of another index version than the query's own."""
TOP_K_CAPPED = "top_k_capped"
"""The code of an engine that returned too few passages."""
_WITHOUT_MEANING = "mode_fallback"
"""The code of an engine without search by meaning alone."""


def search(
    state: State, stage_budget: StageBudget, retriever: Retriever, clock: Callable[[], float]
) -> tuple[SearchResult, tuple[SearchRanking, ...]]:
    """The query's result, and the rankings of all searches, its own first.

    The query's own search raises IndexFailure, ModelError or OutOfTime; the others' failures are noted.
    """
    patient_until_s = clock() + PATIENCE * stage_budget.time_left_s()
    (_, first), *others = [
        (text, run_in_background(partial(retriever.search, asked), "search"))
        for text, asked in _queries(state, TimeLimit(stage_budget.time_left_s))
    ]
    found = wait_for(first, stage_budget.time_left_s())
    for lack in found.degraded:
        if lack.code != TOP_K_CAPPED or len(found.hits) < state.wanted.top_k:  # else it only had fewer to choose from
            stage_budget.lacks(lack.code, lack.message)
    rankings = [SearchRanking(found.hits, state.wanted.query)]
    for text, result in others:
        ranking = _ranking(text, result, found, max(0.0, patient_until_s - clock()), stage_budget)
        rankings += [] if ranking is None else [ranking]
    return found, tuple(rankings)


def depth_of(state: State) -> int:
    """How many passages a search is asked for."""
    wanted = state.wanted
    depth = wanted.top_k * (OVER_RETRIEVAL if wanted.reranks else 1)
    depth = max(depth, SEMANTIC_RANKED) if wanted.semantic else depth
    return max(wanted.top_k, min(depth, MAX_DEPTH))


def _queries(state: State, limits: SearchLimits) -> Iterator[tuple[str | None, SearchQuery]]:
    """Each search's wording, and what is asked of the retriever; a made-up passage is searched by meaning alone."""
    wanted, depth = state.wanted, depth_of(state)
    for text in (wanted.query, *state.wordings):
        yield (
            text,
            SearchQuery(text, wanted.filters, depth, wanted.min_score, wanted.mode, limits, readable=wanted.readable),
        )
    if state.hypothetical is not None:
        asked = SearchQuery(
            state.hypothetical, wanted.filters, depth, wanted.min_score, "dense", limits, readable=wanted.readable
        )
        yield None, asked


def _ranking(
    query: str | None, result: Future[SearchResult], original: SearchResult, time_s: float, stage_budget: StageBudget
) -> SearchRanking | None:
    what = "a made-up passage" if query is None else "another wording"
    try:
        found = wait_for(result, time_s)
    except OutOfTime:
        stage_budget.lacks(OutOfTime.code, f"The search for {what} took longer than it may, and was left out.")
        return None
    except CicadaError as error:
        stage_budget.lacks(error.code, f"The search for {what} was left out: {error.told}")
        return None
    if found.index_version != original.index_version or found.engine != original.engine:
        stage_budget.lacks(INDEX_CHANGED, f"The search for {what} saw another version of the index, and was left out.")
        return None
    if query is None and any(lack.code == _WITHOUT_MEANING for lack in found.degraded):
        stage_budget.lacks(
            _WITHOUT_MEANING, "The engine has no search by meaning alone, so the made-up passage was left out."
        )
        return None
    return SearchRanking(found.hits, query)
