"""Exact vector search over all rows of all segments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.index.segment import Column, Segment

RowFilter = Mapping[str, Collection[str]]
"""The values that a field may have. A field that is not named, or has no value to choose from, allows all."""


@dataclass(frozen=True)
class Ranked:
    """A row and its cosine similarity to the query, in [-1, 1]."""

    segment: Segment
    row: int
    cosine: float


@dataclass(frozen=True)
class Ranking:
    """Rows, best first, and how many were ranked."""

    rows: tuple[Ranked, ...]
    searched: int
    """Rows that passed the filter."""


def rank(segments: Sequence[Segment], query: NDArray[np.float32], where: RowFilter, limit: int) -> Ranking:
    """Rank every row that passes the filter by its cosine similarity to the query.

    Scores do not depend on how rows are spread over segments: a float32 scan finds the candidates, and those are
    scored again in float64, a row at a time. Ties stand in the order of segments and rows.

    Args:
        segments: what to search; all of the query's dimensions.
        query: shape ``(d,)``, of unit length.
        where: the rows to rank.
        limit: how many to return, at least 1; all when it is larger.
    """
    scans = [
        (segment, rows, segment.vectors[rows] @ query if len(rows) < segment.count else segment.vectors @ query)
        for segment in segments
        if len(rows := _matching_rows(segment, where))
    ]
    searched = sum(len(rows) for _, rows, _ in scans)
    if not scans:
        return Ranking((), 0)
    # |fl(x·y) - x·y| <= d·u·|x||y| to first order with u = eps/2 (Higham, Accuracy and Stability, 3.1): two scores of
    # unit vectors whose difference exceeds d·eps stand in their true order.
    margin = query.shape[0] * float(np.finfo(np.float32).eps)
    floor = _kth_best(np.concatenate([scores for _, _, scores in scans]), limit) - margin
    exact_query = query.astype(np.float64)
    candidates: list[Ranked] = []
    for segment, rows, scores in scans:
        kept = rows[scores >= floor]
        cosines = (segment.vectors[kept].astype(np.float64) * exact_query).sum(axis=1).clip(-1, 1)
        candidates += (Ranked(segment, int(row), float(cosine)) for row, cosine in zip(kept, cosines, strict=True))
    candidates.sort(key=lambda ranked: -ranked.cosine)  # stable: ties keep their order
    return Ranking(tuple(candidates[:limit]), searched)


def _matching_rows(segment: Segment, where: RowFilter) -> NDArray[np.intp]:
    matching = np.ones(segment.count, dtype=np.bool_)
    for field, allowed in where.items():
        if not allowed:
            continue
        if field == "collection":
            matching &= segment.collection in allowed
        else:
            matching &= _matching(segment.columns.get(field), allowed)
    return np.flatnonzero(matching)


def _matching(column: Column | None, allowed: Collection[str]) -> NDArray[np.bool_] | bool:
    if column is None:  # passages without the field have none of the allowed values
        return False
    return np.array([value in allowed for value in column.values], dtype=np.bool_)[column.codes]


def _kth_best(scores: NDArray[np.float32], k: int) -> float:
    if k >= len(scores):
        return -np.inf
    return float(np.partition(scores, -k)[-k])
