"""Searching for every query of a set, in one mode after another, and measuring what is found."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from cicada.retrieval.pipelines.stages import usd_of
from cicada.retrieval.ports import Retriever, SearchQuery, SearchResult
from cicada.rights import EVERYTHING
from cicada_evaluation.confidence import mean_interval
from cicada_evaluation.embedding import MeteredClient, QueryEmbedder
from cicada_evaluation.fees import Fees
from cicada_evaluation.judged import JudgedSet, Query, judged_id
from cicada_evaluation.measures import RANKS, measure
from cicada_evaluation.modes import EMBEDDING_MODES, SHARD_MODES
from cicada_evaluation.report import Indexing, Latency, MeanEstimate, ModeResult, QueryResult, ReportedCost, SetResult


class EvaluationListener(Protocol):
    """Is told how it goes."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """``done`` of ``total`` pieces of the stage."""
        ...


@dataclass(frozen=True)
class EvaluationPlan:
    """What to measure."""

    modes: tuple[str, ...]
    recall: tuple[int, ...]  # the ranks of recall@k
    seed: int
    fees: Fees

    @property
    def top_k(self) -> int:
        """As many hits as the measures look at."""
        return max(RANKS, *self.recall)


@dataclass(frozen=True)
class Searched:
    """The index that is searched."""

    retriever_of: Callable[[str], Retriever]  # by mode
    collections: tuple[str, ...]  # the collections that the set's queries are limited to
    indexing: Indexing | None  # what it took to index the set's corpus; None for an index that was there


@dataclass(frozen=True)
class _Found:
    """What a query found."""

    query: Query
    ids: tuple[str, ...]
    search_ms: float
    result: SearchResult


def evaluate_set(
    judged: JudgedSet,
    plan: EvaluationPlan,
    searched: Searched,
    embedder: QueryEmbedder,
    meter: MeteredClient,
    told: EvaluationListener,
) -> SetResult:
    """Search for every query in every mode, and measure.

    Args:
        judged: the set.
        plan: what to measure.
        searched: the index.
        embedder: the model that the index is embedded with.
        meter: counts the tokens that the model is given.
        told: is told how it goes.

    Raises:
        CicadaError: a search failed, as :class:`cicada.retrieval.ports.Retriever` says.
        EvaluationRefused: what measures is not installed.
    """
    before = meter.tokens
    texts = [query.text for query in judged.queries]
    needed = bool(EMBEDDING_MODES.intersection(plan.modes))
    embedded_ms = embedder.prepare(texts, lambda done, total: told("queries", done, total)) if needed else []
    asked = meter.tokens - before
    modes = []
    for mode in plan.modes:
        found, tokens = _search(mode, judged.queries, plan, searched, meter, told)
        embedding_usd = meter.usd(embedder.model_id, tokens + (mode in EMBEDDING_MODES) * asked)
        models_usd = _sum(usd_of(use) for one in found for use in one.result.model_uses)
        engine_usd = len(found) * plan.fees.usd_per_query(
            found[0].result.engine,
            vectors=searched.indexing.passages if searched.indexing else found[0].result.searched,
            dimensions=embedder.dimensions,
        )
        modes.append(_measured(mode, judged, plan, found, _cost(embedding_usd, engine_usd, models_usd, len(found))))
    return SetResult(
        name=judged.name,
        kind=judged.kind,
        judgements_digest=judged.judgements_digest(),
        corpus_digest=judged.corpus_digest,
        left_out=judged.left_out,
        notes=judged.notes,
        indexing=searched.indexing,
        embedding=latency(embedded_ms) if embedded_ms else None,
        modes=tuple(modes),
    )


def _search(
    mode: str,
    queries: Sequence[Query],
    plan: EvaluationPlan,
    searched: Searched,
    meter: MeteredClient,
    told: EvaluationListener,
) -> tuple[list[_Found], int]:
    """What each query finds, and how many tokens were embedded on the way, beside the queries'."""
    retriever = searched.retriever_of(mode)
    asked = [
        SearchQuery(
            query.text,
            replace(query.filters, collections=searched.collections),
            top_k=plan.top_k,
            min_score=0.0,
            mode=SHARD_MODES.get(mode, "hybrid"),
            readable=EVERYTHING,
        )
        for query in queries
    ]
    retriever.search(asked[0])  # the first search of a process pays for connections and imports
    before = meter.tokens
    found = []
    for done, (query, search) in enumerate(zip(queries, asked, strict=True)):
        told(mode, done, len(queries))
        began = time.perf_counter()
        result = retriever.search(search)
        taken_ms = (time.perf_counter() - began) * 1000 - result.timings_ms.get("embed", 0.0)
        ids = tuple(dict.fromkeys(judged_id(hit.passage, result.engine) for hit in result.hits))
        found.append(_Found(query, ids, round(max(0.0, taken_ms), 3), result))
    told(mode, len(queries), len(queries))
    return found, meter.tokens - before


def _measured(
    mode: str, judged: JudgedSet, plan: EvaluationPlan, found: Sequence[_Found], paid: ReportedCost
) -> ModeResult:
    values = measure(judged.judgements, {one.query.id: one.ids for one in found}, plan.recall)
    estimates = {}
    for name, by_query in values.items():
        interval = mean_interval(list(by_query.values()), seed=plan.seed)
        estimates[name] = MeanEstimate(mean=interval.mean, low=interval.low, high=interval.high)
    return ModeResult(
        mode=mode,
        engine=found[0].result.engine,
        index_version=found[0].result.index_version,
        estimates=estimates,
        search=latency([one.search_ms for one in found]),
        cost=paid,
        degraded=dict(Counter(degradation.code for one in found for degradation in one.result.degraded)),
        queries=tuple(
            QueryResult(
                id=one.query.id,
                values={name: by_query[one.query.id] for name, by_query in values.items()},
                search_ms=one.search_ms,
                top=one.ids[:RANKS],
            )
            for one in found
        ),
    )


def _cost(embedding_usd: float | None, engine_usd: float, models_usd: float | None, queries: int) -> ReportedCost:
    whole = _sum((embedding_usd, engine_usd, models_usd))
    return ReportedCost(
        embedding_usd=embedding_usd,
        engine_usd=engine_usd,
        models_usd=models_usd,
        usd_per_1000_queries=None if whole is None else whole / queries * 1000,
    )


def _sum(amounts: Iterable[float | None]) -> float | None:
    """The sum; None if one of the amounts is not known."""
    whole = 0.0
    for amount in amounts:
        if amount is None:
            return None
        whole += amount
    return whole


def latency(taken_ms: Sequence[float]) -> Latency:
    """The median, and the 95th percentile by linear interpolation."""
    p95 = statistics.quantiles(taken_ms, n=20, method="inclusive")[-1] if len(taken_ms) > 1 else taken_ms[0]
    return Latency(median_ms=round(statistics.median(taken_ms), 3), p95_ms=round(p95, 3))
