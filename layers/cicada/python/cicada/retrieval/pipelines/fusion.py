"""Reciprocal-rank fusion: one ranking of several, by ranks alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

K = 60
"""How little the first ranks stand out among those after them: the published value.

Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
Methods", SIGIR 2009.
"""

T = TypeVar("T", bound=Hashable)


def fused(rankings: Sequence[Sequence[T]], weights: Sequence[float] | None = None, *, k: int = K) -> dict[T, float]:
    """Fuse rankings.

    Args:
        rankings: each best first, with nothing twice.
        weights: how much each counts, above 0; alike without them.
        k: see :data:`K`.

    Returns:
        Scores by item, best first, ties in the order of first appearance: ``sum(weight / (k + rank))`` over the
        rankings that have it, ranks from 1, as a share of what an item scores that is first in all of them; in (0, 1].

    Raises:
        ValueError: there are not as many weights as rankings.
    """
    counts = [1.0] * len(rankings) if weights is None else weights
    sums: dict[T, float] = {}
    for ranking, weight in zip(rankings, counts, strict=True):
        for rank, item in enumerate(ranking, start=1):
            sums[item] = sums.get(item, 0.0) + weight / (k + rank)
    best = sum(counts) / (k + 1)
    return dict(sorted(((item, min(1.0, score / best)) for item, score in sums.items()), key=lambda one: -one[1]))
