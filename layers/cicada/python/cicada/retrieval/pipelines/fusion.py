"""Reciprocal-rank fusion: from the rankings of several searches to one list of candidates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from cicada.corpus.passages import Passage
from cicada.retrieval.pipelines.state import Candidate, SearchRanking, identity

K = 60
"""Damps the first ranks. Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
individual Rank Learning Methods", SIGIR 2009."""

T = TypeVar("T", bound=Hashable)


def fused(rankings: Sequence[Sequence[T]], weights: Sequence[float] | None = None, *, k: int = K) -> dict[T, float]:
    """Fuse rankings, each best first without repeats, with positive weights, equal by default.

    Scores by item in (0, 1], best first, ties in order of appearance: ``sum(weight / (k + rank))`` over the rankings
    with the item, ranks from 1, as a share of an item's that is first in all of them.
    """
    counts = [1.0] * len(rankings) if weights is None else weights
    sums: dict[T, float] = {}
    for ranking, weight in zip(rankings, counts, strict=True):
        for rank, item in enumerate(ranking, start=1):
            sums[item] = sums.get(item, 0.0) + weight / (k + rank)
    best = sum(counts) / (k + 1)
    return dict(sorted(((item, min(1.0, score / best)) for item, score in sums.items()), key=lambda one: -one[1]))


HYDE_WEIGHT = 1.0
"""The weight of the search by a made-up passage; one for another wording has 1."""


def candidates_of(rankings: Sequence[SearchRanking], original_weight: float) -> tuple[Candidate, ...]:
    """The passages of several searches, best first, fused by rank; one search keeps its ranking and scores.

    The first search, of the query as asked, counts ``original_weight``, the others 1. A made-up passage resembles
    passages more than any question does, so the scores of its search are not comparable: its own finds get the lowest
    score of the wordings' searches. Without finds of those there are no candidates.
    """
    if len(rankings) == 1:
        return tuple(Candidate(hit.passage, hit.score, hit.score) for hit in rankings[0].hits)
    passages, scores = _found(rankings)
    if not scores:
        return ()
    least = min(scores.values())
    weights = [original_weight, *(HYDE_WEIGHT if ranking.query is None else 1.0 for ranking in rankings[1:])]
    order = fused([[identity(hit.passage) for hit in ranking.hits] for ranking in rankings], weights)
    return tuple(Candidate(passages[key], scores.get(key, least), score) for key, score in order.items())


def _found(rankings: Sequence[SearchRanking]) -> tuple[dict[Hashable, Passage], dict[Hashable, float]]:
    """The passages by identity, and the best score of each in the searches for a wording."""
    passages: dict[Hashable, Passage] = {}
    scores: dict[Hashable, float] = {}
    for ranking in rankings:
        for hit in ranking.hits:
            key = identity(hit.passage)
            passages.setdefault(key, hit.passage)
            if ranking.query is not None:
                scores[key] = max(hit.score, scores.get(key, 0.0))
    return passages, scores


def by_score(candidates: Sequence[Candidate], score_of: Callable[[Candidate], float | None]) -> tuple[Candidate, ...]:
    """Scored candidates, best first, ties in order; unscored ones keep their places, as they may be as relevant."""
    scored = sorted((one for one in candidates if score_of(one) is not None), key=lambda one: -(score_of(one) or 0.0))
    following = iter(scored)
    return tuple(one if score_of(one) is None else next(following) for one in candidates)
