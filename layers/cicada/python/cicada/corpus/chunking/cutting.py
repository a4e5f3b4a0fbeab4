"""Where chunks end.

The edges of a run of units are taken from the best to the worst. One becomes a cut if the stretch that it lies in is
still too long, and if neither side gets too short. Edges that are equally good come in the order of a digest of the
words around them. So whether a cut is made depends on what stands near it: after an edit the chunks before and behind
are what they were, where filling one chunk after the other would move every later cut (the idea of content-defined
chunking: Muthitacharoen, Chen, Mazières, "A Low-Bandwidth Network File System", 2001).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from cicada.corpus.chunking.units import Edge, Unit

LEAST_SHARE = 0.4
"""Of ``chunk_size``: no cut leaves less on a side, unless another edge cannot be found."""


_Goodness = tuple[int, float, bytes]


def groups_of(
    units: Sequence[Unit], limit: int, likeness: Sequence[float | None], threshold: float
) -> list[list[Unit]]:
    """Group a run of units into as few chunks as its good edges allow.

    Args:
        units: in order, at least one.
        limit: tokens of a group at most; no unit has more.
        likeness: for each unit, how alike it is to what stands before it, in [0, 1]; None where that is not known.
        threshold: a likeness below it makes an edge as good as a paragraph's.
    """
    edges = [_goodness(units, at, likeness[at], threshold) for at in range(1, len(units))]
    cuts = _cuts([unit.tokens for unit in units], edges, limit, round(LEAST_SHARE * limit))
    return [list(units[start:end]) for start, end in cuts]


def least_groups(runs: Sequence[Sequence[Unit]], least: int) -> Iterator[tuple[int, int]]:
    """Which neighbouring runs, each below ``least`` tokens, go together to reach it: the first, and past the last."""
    tokens = [sum(unit.tokens for unit in run) for run in runs]
    edges = [(0, 0.0, _digest(before[-1].text, after[0].text)) for before, after in pairwise(runs)]
    return _cuts(tokens, edges, 0, least)


def _goodness(units: Sequence[Unit], at: int, likeness: float | None, threshold: float) -> _Goodness:
    edge = units[at].edge
    alike = threshold if likeness is None else likeness
    if edge is Edge.SENTENCE and alike < threshold:
        edge = Edge.BLOCK
    return edge, -alike, _digest(units[at - 1].text, units[at].text)


def _digest(before: str, after: str) -> bytes:
    return hashlib.blake2b(f"{before}\0{after}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _cuts(tokens: Sequence[float], edges: Sequence[_Goodness], limit: int, least: int) -> Iterator[tuple[int, int]]:
    """Stretches of at most ``limit`` tokens, and of at least ``least`` where the edges allow both."""
    before = [0, *accumulate(tokens)]
    cuts = sorted({0, len(tokens)})
    best_first = sorted(range(1, len(tokens)), key=lambda at: edges[at - 1], reverse=True)
    for smallest in (least, 0) if limit else (least,):  # what is within no limit is only cut where both sides suffice
        for at in best_first:
            place = bisect_left(cuts, at)
            start, end = before[cuts[place - 1]], before[cuts[place]]
            fair = before[at] - start >= smallest and end - before[at] >= smallest
            if end - start > limit and fair and cuts[place] != at:
                cuts.insert(place, at)
    yield from pairwise(cuts)
