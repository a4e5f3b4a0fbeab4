"""The first stage of a warm search: estimate the distance of every row of the likely clusters from its sign code.

With ``r = row - centroid`` and ``p = query - centroid``, the law of cosines gives
``|query - row|^2 = |p|^2 + |r|^2 - 2 |p| |r| cos(p, r)``. The lengths are known; the angle is estimated from the bits
in which the signs of ``p`` and ``r`` differ, ``h`` of ``d``: ``cos(p, r)`` is close to ``pi / 2 (1 - 2 h / d)``.
Residuals are shorter than rows, so the estimate errs by much less than one from the signs of whole rows.

Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms", 2002; residuals to centroids as in Gao
and Long, "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound", 2024.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cicada.index.vectors.layout import UNIT_ROWS, pack_signs
from cicada.index.vectors.probe import Probe
from cicada.index.vectors.scratch import scratch

Floats = NDArray[np.float32]
Indices = NDArray[np.intp]

ALWAYS_SCANNED_ROWS = 65_536
"""So many rows are looked at, if there are as many."""
SCANNED_SHARE = 0.5
"""Of more rows, the clusters that are likeliest to hold the nearest are looked at until they have this share of what
may be found."""
_BLOCK_WORDS = 98_304
"""Words of codes looked at in one go: enough to hide the cost of the calls, few enough to stay in a cache."""
_STRETCH_UNITS = 2_048
"""Units after which the bound is brought up to date."""
_ALL_BITS = np.iinfo(np.uint16).max
_FIRST_SHARE = 4
"""Rows looked at first, as a multiple of those wanted."""


def scan(probes: Sequence[Probe], wanted: int) -> list[Indices]:
    """Find the rows that are worth an exact score.

    Args:
        probes: segments whose codes are in memory.
        wanted: rows in all.

    Returns:
        For each probe its rows, ascending.
    """
    nearest = _Nearest(wanted)
    queries = [_ClusterQueries(position, probe) for position, probe in enumerate(probes)]
    # The best clusters first: they set a bound that few rows of the others keep.
    for likely in _likely_clusters(probes, _FIRST_SHARE * wanted):
        for query, clusters in zip(queries, likely, strict=True):
            if len(clusters):
                query.scan(clusters, nearest)
    return nearest.rows(len(probes))


class _Nearest:
    """The rows with the smallest distances of all that were offered."""

    def __init__(self, wanted: int) -> None:
        self.bound = np.inf
        """No row as far as this is wanted any more."""
        self._wanted = wanted
        self._segment: list[Indices] = []
        self._row: list[Indices] = []
        self._distance: list[Floats] = []
        self._count = 0

    def offer(self, segment: int, row: Indices, distance: Floats) -> None:
        self._segment.append(np.full(len(row), segment, dtype=np.intp))
        self._row.append(row)
        self._distance.append(distance)
        self._count += len(row)
        if self._count > (2 if np.isfinite(self.bound) else 1) * self._wanted:
            self._shrink()

    def rows(self, segments: int) -> list[Indices]:
        """Of each segment, ascending."""
        if self._count == 0:
            return [np.zeros(0, dtype=np.intp)] * segments
        self._shrink()
        order = np.lexsort((self._row[0], self._segment[0]))
        edges = np.searchsorted(self._segment[0][order], np.arange(1, segments))
        return np.split(self._row[0][order], edges)

    def _shrink(self) -> None:
        segment, row = np.concatenate(self._segment), np.concatenate(self._row)
        distance = np.concatenate(self._distance)
        if self._count > self._wanted:
            kept = np.argpartition(distance, self._wanted - 1)[: self._wanted]
            segment, row, distance = segment[kept], row[kept], distance[kept]
            self.bound = float(distance.max())
        self._segment, self._row, self._distance, self._count = [segment], [row], [distance], len(row)


def _likely_clusters(probes: Sequence[Probe], first: int) -> Iterator[list[Indices]]:
    """Of each probe the clusters to look at, ascending: the likeliest that have ``first`` rows, then all others."""
    counts = np.concatenate([probe.counts for probe in probes])
    sizes = np.concatenate([probe.part.sizes for probe in probes])
    edges = np.cumsum([len(probe.counts) for probe in probes])[:-1]
    order = np.argsort(np.concatenate([probe.distances for probe in probes]), kind="stable")
    order = order[counts[order] > 0]
    found, passed = np.cumsum(counts[order]), np.cumsum(sizes[order])
    share = SCANNED_SHARE * found[-1] if len(found) else 0
    enough = max(np.searchsorted(found, share), np.searchsorted(passed, ALWAYS_SCANNED_ROWS)) + 1
    best, likely = (np.zeros(len(counts), dtype=bool) for _ in range(2))
    best[order[: np.searchsorted(found, first) + 1]] = True
    likely[order[:enough]] = True
    # One cluster between two others is looked at in less time than it takes to leave it out.
    likely[1:-1] |= likely[:-2] & likely[2:] & (counts[1:-1] > 0)
    for chosen in (best, likely & ~best):
        yield [np.flatnonzero(part) for part in np.split(chosen, edges)]


class _ClusterQueries:
    """What a query is to each cluster of a segment: its signs there, and the terms of the distance all rows share."""

    def __init__(self, position: int, probe: Probe) -> None:
        codes = probe.part.resident_codes()
        if codes is None:
            raise ValueError("the codes are not in memory")
        self._codes, radii = codes
        self._position = position
        self._part = probe.part
        self._allowed = probe.allowed
        centroids = probe.part.centroids
        above = np.less(centroids, probe.query, out=scratch("above", centroids.shape, np.bool_))
        self._signs = np.ascontiguousarray(pack_signs(above).T)
        self._owners = np.repeat(np.arange(len(centroids)), np.diff(probe.part.units))
        # The distance of a row is its unit's base and as many slopes as bits differ.
        squares = probe.squares[self._owners]
        turns = np.float32(np.pi) * radii * np.sqrt(squares)
        self._slopes = np.maximum(turns * np.float32(2 / probe.part.dimensions), np.finfo(np.float32).tiny)
        self._bases = squares + radii * radii - turns

    def scan(self, clusters: Indices, nearest: _Nearest) -> None:
        """Offer the rows of some clusters."""
        chosen = np.zeros(len(self._part.sizes), dtype=bool)
        chosen[clusters] = True
        units = np.flatnonzero(chosen[self._owners])
        for start in range(0, len(units), _STRETCH_UNITS):
            self._scan_units(units[start : start + _STRETCH_UNITS], nearest)

    def _scan_units(self, units: Indices, nearest: _Nearest) -> None:
        part, owners = self._part, self._owners[units]
        slopes, bases = self._slopes[units], self._bases[units]
        bits = self._differing_bits(units, owners)
        most = np.clip(np.ceil((nearest.bound - bases) / slopes), 0, _ALL_BITS).astype(np.uint16)
        near = np.less(bits, most[:, None], out=scratch("near", bits.shape, np.bool_))
        kept = np.flatnonzero(near)
        place = kept // UNIT_ROWS
        first_rows = part.offsets[owners] + UNIT_ROWS * (units - part.units[owners] - np.arange(len(units)))
        rows = first_rows[place] + kept
        real = rows < part.offsets[owners + 1][place]
        if self._allowed is not None:
            real &= self._allowed[np.minimum(rows, part.count - 1)]
        kept, place = kept[real], place[real]
        nearest.offer(self._position, rows[real], bases[place] + slopes[place] * bits.reshape(-1)[kept])

    def _differing_bits(self, units: Indices, owners: Indices) -> NDArray[np.uint16]:
        """In how many bits rows of the units differ from the query, shape ``(units, 64)``."""
        codes, words = self._codes, len(self._codes)
        room = max(_BLOCK_WORDS // (words * UNIT_ROWS), 1)
        query_signs = scratch("query signs", (words, len(units)), np.uint64)
        self._signs.take(owners, axis=1, out=query_signs, mode="clip")  # without a mode, numpy would make a copy first
        differing = scratch("differing", (words, room, UNIT_ROWS), np.uint64)
        counts = scratch("counts", differing.shape, np.uint8)
        bits: NDArray[np.uint16] = scratch("bits", (len(units), UNIT_ROWS), np.uint16)
        cuts = (np.flatnonzero(units[1:] != units[:-1] + 1) + 1).tolist()
        for start in range(0, len(units), room):
            end = min(start + room, len(units))
            for here, stop in pairwise([start, *cuts[bisect_right(cuts, start) : bisect_left(cuts, end)], end]):
                there = int(units[here])
                np.bitwise_xor(
                    codes[:, there : there + stop - here],
                    query_signs[:, here:stop, None],
                    out=differing[:, here - start : stop - start],
                )
            block = slice(0, end - start)
            np.bitwise_count(differing[:, block], out=counts[:, block])
            np.add.reduce(counts[:, block], axis=0, dtype=np.uint16, out=bits[start:end])
        return bits
