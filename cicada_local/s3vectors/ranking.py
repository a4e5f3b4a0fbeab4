"""How QueryVectors ranks: by distance, by BM25, or by both with reciprocal rank fusion.

Source: Amazon S3 User Guide, "Querying with full-text and vector search"; G. Cormack, C. Clarke, S. Buettcher,
"Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods", 2009. The service does not publish
its constant, nor how deep it looks into each ranking; these are the paper's, and :data:`DEPTH`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cicada_local.s3vectors.metadata import Test
from cicada_local.s3vectors.store import Index, Vector

RRF_CONSTANT = 60
DEPTH = 100
"""Results of each ranking that are fused."""


@dataclass
class Ranked:
    """One result."""

    key: str
    distance: float | None = None
    words: dict[str, float] = field(default_factory=dict)
    """BM25 score by metadata key."""
    fused: float | None = None

    def scores(self) -> dict[str, Any]:
        """As the response has them."""
        told: dict[str, Any] = {}
        if self.fused is not None:
            told["fused"] = self.fused
            if self.distance is not None:
                told["vectorDistance"] = self.distance
        if self.words:
            told["bm25Scores"] = [{"metadataKey": key, "score": score} for key, score in self.words.items()]
        return told


def rank(
    index: Index, *, vector: Vector | None, texts: Mapping[str, str], passes: Test | None, top_k: int
) -> list[Ranked]:
    """The best results, best first: what the filter lets pass is ranked, and nothing else.

    Args:
        index: where.
        vector: what to be near to; None for a search by words alone.
        texts: full-text queries by metadata key.
        passes: the filter.
        top_k: how many.
    """
    allowed = None if passes is None else [key for key, stored in index.vectors.items() if passes(stored.metadata)]
    rankings: list[list[Ranked]] = []
    if vector is not None:
        rankings.append(_nearest(index, vector, allowed, DEPTH if texts else top_k))
    for name, text in texts.items():
        found = index.words[name].scores(text, allowed)
        best = sorted(found.items(), key=lambda item: (-item[1], item[0]))[: DEPTH if vector is not None else None]
        rankings.append([Ranked(key, words={name: score}) for key, score in best])
    if vector is None:
        return _by_words(rankings)[:top_k]
    return _fused(rankings)[:top_k] if texts else rankings[0]


def _nearest(index: Index, vector: Vector, allowed: Sequence[str] | None, count: int) -> list[Ranked]:
    keys = list(index.vectors) if allowed is None else list(allowed)
    if not keys:
        return []
    rows = np.stack([index.vectors[key].vector for key in keys]).astype(np.float64)
    query = vector.astype(np.float64)
    if index.metric == "cosine":
        distances = 1 - rows @ query / (np.linalg.norm(rows, axis=1) * np.linalg.norm(query))
    else:
        distances = ((rows - query) ** 2).sum(axis=1)
    best = np.argsort(distances, kind="stable")[:count]
    return [Ranked(keys[place], distance=float(np.float32(distances[place]))) for place in best]


def _by_words(rankings: Sequence[Sequence[Ranked]]) -> list[Ranked]:
    """Several fields: by the sum of their scores."""
    merged = _merged(rankings)
    return sorted(merged, key=lambda one: (-sum(one.words.values()), one.key))


def _fused(rankings: Sequence[Sequence[Ranked]]) -> list[Ranked]:
    merged = {one.key: one for one in _merged(rankings)}
    for ranking in rankings:
        for place, one in enumerate(ranking, start=1):
            merged[one.key].fused = (merged[one.key].fused or 0.0) + 1 / (RRF_CONSTANT + place)
    return sorted(merged.values(), key=lambda one: (-(one.fused or 0.0), one.key))


def _merged(rankings: Sequence[Sequence[Ranked]]) -> list[Ranked]:
    merged: dict[str, Ranked] = {}
    for ranking in rankings:
        for one in ranking:
            there = merged.setdefault(one.key, Ranked(one.key))
            there.distance = one.distance if one.distance is not None else there.distance
            there.words |= one.words
    return list(merged.values())
