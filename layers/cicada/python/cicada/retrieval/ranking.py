"""Ranking the rows of a version for one query: by meaning, by words, or by both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cicada.index.embedding import Vector
from cicada.index.loaded_index import LoadedIndex, Scope
from cicada.retrieval.fusion import Candidates, QueryEvidence, dense_score, fuse, keyword_score
from cicada.retrieval.ports import SearchMode

if TYPE_CHECKING:
    from cicada.index.lexical.search import LexicalHits, LexicalQuery
    from cicada.index.vectors.search import VectorHits

CANDIDATES = 100
"""The best so many of each kind of search are candidates of a hybrid one, or as many as are asked for."""
COLD_CANDIDATES = 24
"""Of the search by words, while vectors are read by range: each of its hits may cost a range of its own."""

Indices = NDArray[np.intp]
Cosines = NDArray[np.float32]


@dataclass(frozen=True)
class Ranking:
    """Rows, best first, with their scores in [0, 1]."""

    rows: list[tuple[int, int]]
    """Segment in the scope, and row."""
    scores: list[float]


def _union(found: VectorHits, words: LexicalHits) -> tuple[Indices, Indices]:
    """The distinct rows of both, by segment and row."""
    segment = np.concatenate([found.segment, words.segment])
    row = np.concatenate([found.row, words.row])
    pairs = np.unique(np.stack([segment, row]), axis=1)
    return pairs[0], pairs[1]


def rank(
    index: LoadedIndex, scope: Scope, text: str, vector: Vector | None, mode: SearchMode, model_id: str, depth: int
) -> Ranking:
    """The best rows for a query.

    Args:
        index: the version.
        scope: the rows to rank.
        text: the query.
        vector: the query's, shape ``(d,)``; None in keyword mode.
        mode: by what.
        model_id: of the embedding model.
        depth: rows at most.

    Raises:
        IndexCorrupt, IndexUnavailable: ranges had to be read, and could not be.
    """
    if index.warm:
        return _rank(index, scope, text, vector, mode, model_id, depth, None)
    with ThreadPoolExecutor(2) as beside:  # everything waits for the store: side by side what can be
        places = beside.submit(index.load_places, scope)
        ranking = _rank(index, scope, text, vector, mode, model_id, depth, beside)
        places.result()
    return ranking


def _rank(
    index: LoadedIndex,
    scope: Scope,
    text: str,
    vector: Vector | None,
    mode: SearchMode,
    model_id: str,
    depth: int,
    beside: ThreadPoolExecutor | None,
) -> Ranking:
    """:func:`rank`, with a thread to read words beside vectors when the index is cold."""
    if mode == "keyword" or vector is None:
        query = index.words(text, scope)
        words = query.search(scope.allowed, depth)
        scores = keyword_score(words.score, _evidence(text, model_id, scope, query))
        return _ranking(words.segment, words.row, scores, depth)
    if mode == "dense":
        found = index.search_vectors(vector, scope, depth)
        return _ranking(found.segment, found.row, dense_score(found.cosine, model_id), depth)
    candidates = max(CANDIDATES, depth)
    prepared = None if beside is None else beside.submit(index.words, text, scope)
    found = index.search_vectors(vector, scope, candidates)
    query = index.words(text, scope) if prepared is None else prepared.result()
    words = query.search(scope.allowed, candidates if beside is None else min(candidates, COLD_CANDIDATES))
    segment, row = _union(found, words)
    cosine = _cosines(index, scope, vector, found, segment, row)
    fused = fuse(Candidates(cosine, query.scores(segment, row)), _evidence(text, model_id, scope, query))
    return _ranking(segment, row, fused, depth)


def _evidence(text: str, model_id: str, scope: Scope, query: LexicalQuery) -> QueryEvidence:
    return QueryEvidence(text, model_id, query.asked_ideal, languages_of(scope))


def languages_of(scope: Scope) -> Mapping[str, int]:
    """How many of the passages are in each language (ISO 639-3), the deleted ones included."""
    languages: Counter[str] = Counter()
    for segment in scope.segments:
        languages.update(segment.lexical.languages)
    return languages


def _cosines(
    index: LoadedIndex, scope: Scope, vector: Vector, found: VectorHits, segment: Indices, row: Indices
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
