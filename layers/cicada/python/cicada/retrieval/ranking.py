"""Rank the rows of a version for one query: by meaning (cosines), by words (BM25), or by both fused.

Every kind of evidence is turned into log-odds, and those are added, as for independent witnesses:

    log-odds = trust x slope x (cosine - midpoint) + KEYWORD_SLOPE x (share - KEYWORD_MIDPOINT)

- ``slope`` and ``midpoint`` are the embedding model's (:mod:`cicada.retrieval.calibration`).
- ``share`` is BM25 relative to the most that the query could score: how much of what was asked, by weight, a passage
  has. A query whose words say little about any passage gets small shares, and so leaves the decision to the cosines:
  no predictor of the query's quality is needed. Dividing by the best passage's BM25 instead would lift the best of a
  bad lot to full weight.
- ``trust`` is what is known of the model's languages (:mod:`cicada.retrieval.calibration`). Cosines enter as they
  are, not standardised: an embedding that cannot tell passages apart hardly spreads them, and then hardly counts.

The sum is a convex combination of scores on fixed scales, which was found to beat reciprocal rank fusion in and out of
domain, with little need of tuning: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023.
``benchmarks/fusion.py`` measures it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cicada.index.embedding import Vector
from cicada.index.loaded_index import LoadedIndex, RowScope
from cicada.retrieval.calibration import Calibration, calibration_of, trust_in
from cicada.retrieval.ports import SearchMode

if TYPE_CHECKING:
    from cicada.index.lexical.search import LexicalHits, LexicalQuery
    from cicada.index.vectors.search import VectorHits

Evidence = NDArray[np.float32]
"""Cosines or BM25, shape ``(k,)``."""
Scores = NDArray[np.float64]
"""Probabilities, shape ``(k,)``: in double precision, so that those near 1 keep their order."""

KEYWORD_SLOPE = 9.3
"""Log-odds of a whole share: the slope of a typical model's cosines, so that both count alike. Between two thirds and
one and a half of that, nDCG@10 on the public sets and the sample moves by 0.01 at most."""
KEYWORD_MIDPOINT = 0.06
"""The share that speaks neither for nor against. Below what the best passage has by chance (a median of 0.08 on the
sample script, 0.13 on the public sets, for questions from elsewhere): among short replies, those that answer have no
more, and a lost answer costs more than a passage too many."""


@dataclass(frozen=True)
class Candidates:
    """The best rows by meaning and by words, in one list. All arrays have one shape ``(k,)``."""

    cosine: Evidence
    """To the query, in [-1, 1]; every candidate's, by whichever search it was found."""
    bm25: Evidence
    """At least 0; 0 where no word matched."""


@dataclass(frozen=True)
class QueryEvidence:
    """What is known of a query before its candidates are looked at."""

    text: str
    model_id: str
    """Of the embedding model."""
    ideal: float
    """The BM25 score that no passage could exceed, had each of the query's words been found; 0 for a query without
    words."""
    languages: Mapping[str, int] = field(default_factory=dict)
    """How many of the passages searched are in each language (ISO 639-3)."""


def fuse(candidates: Candidates, evidence: QueryEvidence, calibration: Calibration | None = None) -> Scores:
    """Score candidates by meaning and words together: shape ``(k,)``, in [0, 1]; 0.5 is as likely relevant as not.

    Scores depend on nothing but a candidate's own cosine and BM25 and on the query, so that they are the same however
    the index is cut into segments, and whatever other candidates there are. Without words, they are the dense ones.
    """
    if evidence.ideal <= 0:
        return dense_score(candidates.cosine, evidence.model_id, calibration)
    trust = trust_in(evidence.model_id, evidence.text, evidence.languages)
    by_meaning = _dense_log_odds(candidates.cosine, calibration or calibration_of(evidence.model_id))
    return _probability(trust * by_meaning + _keyword_log_odds(candidates.bm25, evidence.ideal))


def dense_score(cosine: Evidence, model_id: str, calibration: Calibration | None = None) -> Scores:
    """Score cosines alone, shape ``(k,)``, in [0, 1], as :class:`~cicada.retrieval.calibration.Calibration` does."""
    return _probability(_dense_log_odds(cosine, calibration or calibration_of(model_id)))


def keyword_score(bm25: Evidence, evidence: QueryEvidence) -> Scores:
    """Score BM25 alone, shape ``(k,)``, in [0, 1]; below 0.5 where a passage has next to nothing of the query."""
    if evidence.ideal <= 0:
        return np.zeros(len(bm25))
    return _probability(_keyword_log_odds(bm25, evidence.ideal))


def _dense_log_odds(cosine: Evidence, calibration: Calibration) -> NDArray[np.float64]:
    return calibration.slope * (cosine.astype(np.float64) - calibration.midpoint)


def _keyword_log_odds(bm25: Evidence, ideal: float) -> NDArray[np.float64]:
    return KEYWORD_SLOPE * (bm25.astype(np.float64) / ideal - KEYWORD_MIDPOINT)


def _probability(log_odds: NDArray[np.float64]) -> Scores:
    scores: Scores = 1 / (1 + np.exp(-log_odds))
    return scores


CANDIDATES = 100
"""Least candidates of each kind of search in a hybrid one."""
COLD_CANDIDATES = 24
"""Of the search by words while the index is cold: each hit may cost a range read for its vector."""

Indices = NDArray[np.intp]
Cosines = NDArray[np.float32]


@dataclass(frozen=True)
class Ranking:
    """Rows, best first, with their scores in [0, 1]."""

    rows: list[tuple[int, int]]
    """Segment in the scope, and row."""
    scores: list[float]


def _union(found: VectorHits, words: LexicalHits) -> tuple[Indices, Indices]:
    segment = np.concatenate([found.segment, words.segment])
    row = np.concatenate([found.row, words.row])
    pairs = np.unique(np.stack([segment, row]), axis=1)
    return pairs[0], pairs[1]


def rank(
    index: LoadedIndex, scope: RowScope, text: str, vector: Vector | None, mode: SearchMode, model_id: str, depth: int
) -> Ranking:
    """The best rows of a scope for a query, ``depth`` at most.

    ``vector`` is the query's, shape ``(d,)``; None in keyword mode.

    Raises:
        IndexCorrupt, IndexUnavailable: ranges had to be read, and could not be.
    """
    if index.warm:
        return _rank(index, scope, text, vector, mode, model_id, depth, None)
    with ThreadPoolExecutor(2) as pool:  # reads of the store, as parallel as possible
        places = pool.submit(index.load_places, scope)
        ranking = _rank(index, scope, text, vector, mode, model_id, depth, pool)
        places.result()
    return ranking


def _rank(
    index: LoadedIndex,
    scope: RowScope,
    text: str,
    vector: Vector | None,
    mode: SearchMode,
    model_id: str,
    depth: int,
    pool: ThreadPoolExecutor | None,
) -> Ranking:
    """:func:`rank`, with a pool to read words parallel to vectors when the index is cold."""
    if mode == "keyword" or vector is None:
        query = index.words(text, scope)
        words = query.search(scope.allowed, depth)
        scores = keyword_score(words.score, _evidence(text, model_id, scope, query))
        return _ranking(words.segment, words.row, scores, depth)
    if mode == "dense":
        found = index.search_vectors(vector, scope, depth)
        return _ranking(found.segment, found.row, dense_score(found.cosine, model_id), depth)
    candidates = max(CANDIDATES, depth)
    prepared = None if pool is None else pool.submit(index.words, text, scope)
    found = index.search_vectors(vector, scope, candidates)
    query = index.words(text, scope) if prepared is None else prepared.result()
    words = query.search(scope.allowed, candidates if pool is None else min(candidates, COLD_CANDIDATES))
    segment, row = _union(found, words)
    cosine = _cosines(index, scope, vector, found, segment, row)
    fused = fuse(Candidates(cosine, query.scores(segment, row)), _evidence(text, model_id, scope, query))
    return _ranking(segment, row, fused, depth)


def _evidence(text: str, model_id: str, scope: RowScope, query: LexicalQuery) -> QueryEvidence:
    return QueryEvidence(text, model_id, query.asked_ideal, languages_of(scope))


def languages_of(scope: RowScope) -> Mapping[str, int]:
    """How many of the passages are in each language (ISO 639-3), the deleted ones included."""
    languages: Counter[str] = Counter()
    for segment in scope.segments:
        languages.update(segment.lexical.languages)
    return languages


def _cosines(
    index: LoadedIndex, scope: RowScope, vector: Vector, found: VectorHits, segment: Indices, row: Indices
) -> Cosines:
    """The cosines of rows, of which the search by vectors has found some."""
    known = {
        (of, at): cosine
        for of, at, cosine in zip(found.segment.tolist(), found.row.tolist(), found.cosine.tolist(), strict=True)
    }
    pairs = list(zip(segment.tolist(), row.tolist(), strict=True))
    missing = np.array([place for place, pair in enumerate(pairs) if pair not in known], dtype=np.intp)
    cosine = np.array([known.get(pair, 0.0) for pair in pairs], dtype=np.float32)
    if len(missing):
        cosine[missing] = index.cosines(vector, scope, segment[missing], row[missing])
    return cosine


def _ranking(segment: Indices, row: Indices, scores: NDArray[np.float64], depth: int) -> Ranking:
    best = np.argsort(-scores, kind="stable")[:depth]
    rows = list(zip(segment[best].tolist(), row[best].tolist(), strict=True))
    return Ranking(rows, scores[best].tolist())
