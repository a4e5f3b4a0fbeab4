"""The first stage of a warm search: estimate the distance of every row of the likely clusters from its sign code.

With ``r = row - centroid`` and ``p = query - centroid``, the law of cosines gives
``|query - row|^2 = |p|^2 + |r|^2 - 2 |p| |r| cos(p, r)``. The lengths are known; the angle is estimated from the bits
in which the signs of ``p`` and ``r`` differ, ``h`` of ``d``: ``cos(p, r)`` is close to ``pi / 2 (1 - 2 h / d)``.
Residuals are shorter than rows, so the estimate errs by much less than one from the signs of whole rows.

Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms", 2002; residuals to centroids as in Gao
and Long, "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound", 2024.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cicada.index.arrays import indices_of
from cicada.index.vectors.part import UNIT_ROWS, VectorPart, pack_signs, rotate


class _Buffers(threading.local):
    """Memory that a thread reuses in its next search.

    The allocator returns arrays above about 100 KB to the system at once, so a new one costs a page fault every 4 KB.
    That can take longer than the computation.
    """

    def __init__(self) -> None:
        self.by_use: dict[str, NDArray[np.uint8]] = {}


_buffers = _Buffers()


def scratch(use: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array with arbitrary content, valid until the same thread requests the same use again."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = _buffers.by_use.get(use)
    if buffer is None or len(buffer) < size:
        buffer = _buffers.by_use[use] = np.empty(size, dtype=np.uint8)
    return buffer[:size].view(dtype).reshape(shape)


Floats = NDArray[np.float32]

_LUCKY_COSINE = 0.45
"""The cosine assumed at the centroid between the query and a cluster's best row, which lies more towards the query than
an average row (0). 0.4 to 0.5 ranked best on real and on random data."""


@dataclass(frozen=True)
class SegmentProbe:
    """One segment as one query sees it.

    Attributes:
        part: the segment's vectors.
        query: the rotated query, shape ``(d,)``, unit length.
        products: dot product with each centroid, shape ``(k,)``.
        squares: squared distance to each centroid, shape ``(k,)``.
        distances: estimated squared distance of each cluster's nearest row, ``(k,)``, for ranking across segments.
        allowed: a mask of the rows that may be found, None for all.
        counts: allowed rows of each cluster, shape ``(k,)``.
    """

    part: VectorPart
    query: Floats
    products: Floats
    squares: Floats
    distances: Floats
    allowed: NDArray[np.bool_] | None
    counts: NDArray[np.intp]

    @classmethod
    def of(cls, part: VectorPart, query: Floats, allowed: NDArray[np.bool_] | None) -> SegmentProbe:
        """Compare the query with the segment's centroids. Raises ValueError if the mask has another length."""
        if allowed is None:
            counts = part.sizes
        elif allowed.shape != (part.count,):
            raise ValueError(f"a mask of shape {allowed.shape} for {part.count} rows")
        else:
            counts = _true_counts(allowed, part.offsets)
        products = part.centroids @ query
        squares: Floats = np.maximum(1 + part.lengths - 2 * products, np.float32(0))
        # The law of cosines in the triangle of query, centroid and row.
        hoped = np.float32(2 * _LUCKY_COSINE) * np.sqrt(squares)
        distances: Floats = squares + part.spreads * (part.spreads - hoped)
        return cls(part, query, products, squares, distances, allowed, counts)

    @property
    def total(self) -> int:
        """Allowed rows."""
        return int(self.counts.sum())


def unit_query(query: Floats, dimensions: int) -> Floats:
    """Rotate a query like the rows, to unit length. Raises ValueError for another shape, or no direction."""
    if query.shape != (dimensions,):
        raise ValueError(f"a query of shape {query.shape} for vectors of {dimensions} dimensions")
    length = np.linalg.norm(query.astype(np.float64))
    if not 0 < length < np.inf:
        raise ValueError("a query must be finite and not all zeros")
    rotated: Floats = rotate((query / length).astype(np.float32)[None])[0]
    return rotated


def _true_counts(allowed: NDArray[np.bool_], offsets: NDArray[np.intp]) -> NDArray[np.intp]:
    if not len(allowed):
        return np.zeros(0, dtype=np.intp)
    # int32 is exact for clusters of this size, and faster than 64 bits.
    counts: NDArray[np.intp] = np.add.reduceat(allowed.view(np.uint8), offsets[:-1], dtype=np.int32).astype(np.intp)
    return counts


Indices = NDArray[np.intp]

ALWAYS_SCANNED_ROWS = 32_768  # the least number of rows scanned
SCANNED_SHARE = 0.33  # of more rows, the likeliest clusters are scanned up to this share of the allowed rows
_BLOCK_WORDS = 98_304  # words of codes per numpy call: enough to hide the call's cost, few enough to stay in a cache
_FILLED_GAP_UNITS = 24  # gaps of up to this many units are scanned too: that takes less time than skipping them
_STRETCH_UNITS = 4_096  # units after which the bound is updated
_ALL_BITS = np.iinfo(np.uint16).max
_UNIT_SHIFT = UNIT_ROWS.bit_length() - 1
_SEGMENT_SHIFT = 32  # a row and its segment are one number
_LEAST_SLOPE = np.float32(1e-6)  # for a query or rows at the centroid, whose distances do not depend on the bits
_SAMPLED = 16  # one row in 16 is sampled for the first bound
_MARGIN = 1.4  # the first bound should pass this many times the wanted rows


def scan(probes: Sequence[SegmentProbe], wanted: int) -> list[Indices]:
    """The ``wanted`` nearest rows by estimate, by probe, ascending. All codes must be in memory."""
    nearest = _Nearest(wanted)
    chosen = _likely_clusters(probes)
    # Start with the segment of the likeliest cluster: its rows set a bound that excludes most rows of the others.
    for position in sorted(range(len(probes)), key=lambda position: probes[position].distances.min(initial=np.inf)):
        if np.any(chosen[position]):
            _ClusterQueries(position, probes[position]).scan(chosen[position], nearest)
    return nearest.rows(len(probes))


class _Nearest:
    """The rows with the smallest distances of all that were offered."""

    def __init__(self, wanted: int) -> None:
        self.bound = np.inf  # rows farther than this cannot be among the wanted
        self.wanted = wanted
        self._places: list[Indices] = []
        self._distances: list[Floats] = []
        self._count = 0

    def offer(self, segment: int, rows: Indices, distances: Floats) -> None:
        self._places.append(rows + (segment << _SEGMENT_SHIFT))
        self._distances.append(distances)
        self._count += len(rows)
        if self._count > 2 * self.wanted:
            self._shrink()

    def rows(self, segments: int) -> list[Indices]:
        """Of each segment, ascending."""
        if self._count == 0:
            return [np.zeros(0, dtype=np.intp)] * segments
        self._shrink()
        places = np.sort(self._places[0])
        edges = np.searchsorted(places, np.arange(1, segments) << _SEGMENT_SHIFT)
        return np.split(places & ((1 << _SEGMENT_SHIFT) - 1), edges)

    def _shrink(self) -> None:
        places, distances = np.concatenate(self._places), np.concatenate(self._distances)
        if self._count > self.wanted:
            kept = np.argpartition(distances, self.wanted - 1)[: self.wanted]
            places, distances = places[kept], distances[kept]
            self.bound = float(distances.max())
        self._places, self._distances, self._count = [places], [distances], len(places)


def _likely_clusters(probes: Sequence[SegmentProbe]) -> list[NDArray[np.bool_]]:
    """For each probe a mask of the clusters to scan."""
    counts = np.concatenate([probe.counts for probe in probes])
    sizes = np.concatenate([probe.part.sizes for probe in probes])
    order = np.argsort(np.concatenate([probe.distances for probe in probes]))
    order = order[counts[order] > 0]
    found = np.cumsum(counts[order])
    share = SCANNED_SHARE * found[-1] if len(found) else 0
    enough = max(np.searchsorted(found, share), np.searchsorted(np.cumsum(sizes[order]), ALWAYS_SCANNED_ROWS)) + 1
    likely = np.zeros(len(counts), dtype=bool)
    likely[order[:enough]] = True
    return np.split(likely, np.cumsum([len(probe.counts) for probe in probes])[:-1])


class _ClusterQueries:
    """For a query and each cluster of a segment: the query's signs, and the terms of the distance that rows share."""

    def __init__(self, position: int, probe: SegmentProbe) -> None:
        codes = probe.part.resident_codes()
        if codes is None:
            raise ValueError("the codes are not in memory")
        self._codes, radii = codes
        self._position = position
        self._probe = probe
        centroids, owners = probe.part.centroids, probe.part.unit_owners
        above = np.less(centroids, probe.query, out=scratch("above", centroids.shape, np.bool_))
        self._signs = np.ascontiguousarray(pack_signs(above).T)
        # A row's distance is its unit's base plus its unit's slope times the number of differing bits.
        turns = radii * (np.float32(np.pi) * np.sqrt(probe.squares))[owners]
        self._slopes = np.maximum(turns * np.float32(2 / probe.part.dimensions), _LEAST_SLOPE)
        self._bases = probe.squares[owners] + radii * radii - turns

    def scan(self, clusters: NDArray[np.bool_], nearest: _Nearest) -> None:
        """Offer the rows of these clusters and of small gaps between them."""
        units = _without_gaps(np.flatnonzero(clusters[self._probe.part.unit_owners]))
        for start in range(0, len(units), _STRETCH_UNITS):
            self._scan_units(units[start : start + _STRETCH_UNITS], nearest)

    def _scan_units(self, units: Indices, nearest: _Nearest) -> None:
        slopes, bases = self._slopes[units, None], self._bases[units, None]
        bits = self._differing_bits(units)
        bound = nearest.bound if nearest.bound < np.inf else self._guessed_bound(units, bits, nearest.wanted)
        rows, distances = self._nearer(units, bits, bases, slopes, bound)
        if len(rows) < nearest.wanted and nearest.bound == np.inf:
            rows, distances = self._nearer(units, bits, bases, slopes, np.inf)  # the guess was too low
        nearest.offer(self._position, rows, distances)

    def _guessed_bound(self, units: Indices, bits: NDArray[np.uint16], wanted: int) -> float:
        """A distance, estimated from a sample, within which somewhat more than the wanted rows lie."""
        sample = self._bases[units, None] + self._slopes[units, None] * bits[:, ::_SAMPLED]
        found_of_all = self._probe.total / self._probe.part.count
        rank = int(_MARGIN * wanted / (_SAMPLED * found_of_all))
        return float(np.partition(sample.reshape(-1), rank)[rank]) if rank < sample.size else np.inf

    def _nearer(
        self, units: Indices, bits: NDArray[np.uint16], bases: Floats, slopes: Floats, bound: float
    ) -> tuple[Indices, Floats]:
        """Rows up to about the bound, and their distances."""
        most = np.clip(np.rint((bound - bases) / slopes) + 1, 0, _ALL_BITS).astype(np.uint16)
        near = np.less(bits, most, out=scratch("near", bits.shape, np.bool_))
        return self._distances(units, bits.reshape(-1), np.flatnonzero(near))

    def _distances(self, units: Indices, bits: NDArray[np.uint16], places: Indices) -> tuple[Indices, Floats]:
        """The existing, allowed rows at these places in the units, and their distances."""
        part, allowed = self._probe.part, self._probe.allowed
        unit = units[places >> _UNIT_SHIFT]
        row = part.unit_rows[unit] + (places & (UNIT_ROWS - 1))
        real = row < part.unit_ends[unit]
        if allowed is not None:
            real &= allowed[np.minimum(row, part.count - 1)]
        unit, places = unit[real], places[real]
        return row[real], self._bases[unit] + self._slopes[unit] * bits[places]

    def _differing_bits(self, units: Indices) -> NDArray[np.uint16]:
        """The number of bits in which each row of the units differs from the query, shape ``(units, 32)``."""
        codes, words, owners = self._codes, len(self._codes), self._probe.part.unit_owners[units]
        room = max(_BLOCK_WORDS // (words * UNIT_ROWS), 1)
        query_signs = scratch("query signs", (words, len(units)), np.uint64)
        self._signs.take(owners, axis=1, out=query_signs, mode="clip")  # mode="raise" would copy first
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


def _without_gaps(units: Indices) -> Indices:
    """Fill in the units of small gaps."""
    cuts = np.flatnonzero(units[1:] > units[:-1] + _FILLED_GAP_UNITS) + 1
    firsts, ends = units[np.concatenate(([0], cuts))], units[np.concatenate((cuts - 1, [-1]))] + 1
    return indices_of(firsts, ends - firsts)
