"""Encodes the vectors of a segment: clusters, sign codes, 8-bit rows, and the exact rows for compaction.

Clusters are groups of similar rows of limited size, ordered so that neighbours are similar too.
Source: Lloyd, "Least squares quantization in PCM", 1982, on a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cicada.index.segment_format import Encoded
from cicada.index.vectors import part as layout

Floats = NDArray[np.float32]
Indices = NDArray[np.intp]

MIN_MEAN_ROWS = 128  # rows per cluster in small segments: smaller clusters guide better, but centroids cost memory
CENTROID_BYTES = 768 << 10  # limit for a segment's centroids as float16; beyond it, clusters get larger
MAX_MEANS = 4  # the largest cluster, in multiples of the mean number of rows
_SAMPLE_PER_CLUSTER = 32
_ITERATIONS = 6
_BLOCK_ROWS = 8192


def cluster_rows(vectors: Floats, *, seed: int) -> tuple[Indices, Indices]:
    """Group finite vectors ``(n, d)`` by k-means; the same seed gives the same clusters.

    Returns the rows cluster by cluster ``(n,)``, and the offsets of the clusters ``(k + 1,)``. No cluster is empty or
    has more than :data:`MAX_MEANS` times :func:`mean_rows`.
    """
    generator = np.random.default_rng(seed)
    clusters = list(_limited(vectors, np.arange(len(vectors)), mean_rows(*vectors.shape), generator))
    if not clusters:
        return np.zeros(0, dtype=np.intp), np.zeros(1, dtype=np.intp)
    means = np.stack([vectors[members].mean(axis=0) for members in clusters])
    clusters = [clusters[position] for position in _tour(means)]
    return np.concatenate(clusters), np.concatenate(([0], np.cumsum([len(members) for members in clusters])))


def mean_rows(count: int, dimensions: int) -> int:
    """The target number of rows per cluster."""
    return max(MIN_MEAN_ROWS, -(-2 * count * dimensions // CENTROID_BYTES))


def _limited(
    vectors: Floats, members: Indices, mean: int, generator: np.random.Generator, again: bool = True
) -> Iterator[Indices]:
    """Cluster the members. A cluster that is too large is clustered again, then cut: its rows may all be equal."""
    wanted = -(-len(members) // mean)
    for cluster in _kmeans(vectors, members, wanted, generator):
        if len(cluster) <= MAX_MEANS * mean:
            yield cluster
        elif again:
            yield from _limited(vectors, cluster, mean, generator, again=False)
        else:
            yield from np.array_split(cluster, -(-len(cluster) // mean))


def _kmeans(vectors: Floats, members: Indices, wanted: int, generator: np.random.Generator) -> list[Indices]:
    """At most ``wanted`` clusters, none of them empty."""
    if wanted <= 1:
        return [members] if len(members) else []
    size = min(len(members), wanted * _SAMPLE_PER_CLUSTER)
    sample = vectors[members[np.sort(generator.choice(len(members), size, replace=False))]]
    centroids = sample[generator.choice(size, wanted, replace=False)]
    for _ in range(_ITERATIONS):
        owners = _nearest(sample, centroids)
        order, starts, found = _grouped(owners)
        centroids[found] = np.add.reduceat(sample[order], starts) / np.diff([*starts, size])[:, None]
        lost = np.setdiff1d(np.arange(wanted), found)
        centroids[lost] = sample[generator.choice(size, len(lost), replace=False)]
    owners = np.concatenate(
        [_nearest(vectors[block], centroids) for block in np.array_split(members, -(-len(members) // _BLOCK_ROWS))]
    )
    order, starts, _ = _grouped(owners)
    return np.split(members[order], starts[1:])


def _grouped(owners: Indices) -> tuple[Indices, Indices, Indices]:
    """Positions sorted by owner, where each owner's positions start, and the owners with positions."""
    order = np.argsort(owners, kind="stable")
    found, starts = np.unique(owners[order], return_index=True)
    return order, starts, found


def _nearest(rows: Floats, centroids: Floats) -> Indices:
    halves = np.einsum("ij,ij->i", centroids, centroids) / 2
    nearest = [
        np.argmax(rows[start : start + _BLOCK_ROWS] @ centroids.T - halves, axis=1)
        for start in range(0, len(rows), _BLOCK_ROWS)
    ]
    return np.concatenate(nearest)


def _tour(means: Floats) -> list[int]:
    """A path through all centroids, always to the nearest one left."""
    lengths = np.einsum("ij,ij->i", means, means)
    distances = lengths[:, None] + lengths - 2 * (means @ means.T)
    here, tour = 0, [0]
    unvisited = np.zeros(len(means), dtype=np.float32)
    unvisited[0] = np.inf
    for _ in range(len(means) - 1):
        here = int(np.argmin(distances[here] + unvisited))
        unvisited[here] = np.inf
        tour.append(here)
    return tour


_LARGEST = 16.0  # the limit for a coordinate: far above any of a unit row, far below the range of float16


def encode_vectors(vectors: Floats, *, seed: int = 0) -> tuple[NDArray[np.intp], Encoded]:
    """Encode the vectors of a segment, unit rows of shape ``(n, d)``. Raises ValueError for other input.

    Returns for each row of the segment its position in ``vectors``, shape ``(n,)``, and the sections. The same vectors
    and seed give the same order, and on the same machine the same bytes.
    """
    if vectors.ndim != 2 or not 0 < vectors.shape[1] <= layout.MAX_DIMENSIONS:
        raise ValueError(f"vectors of shape {vectors.shape}")
    if not np.all(np.abs(vectors) <= _LARGEST):
        raise ValueError("vectors must be finite and of unit length")
    count, dimensions = vectors.shape
    rotated = layout.rotate(vectors)
    order, offsets = cluster_rows(rotated, seed=seed)
    centroids = _centroids(rotated, order, offsets)
    owners = np.repeat(np.arange(len(centroids)), np.diff(offsets))
    radii = _radii(rotated, order, centroids, owners)
    by_radius = np.lexsort((radii, owners))
    order, radii = order[by_radius], radii[by_radius]
    units = layout.unit_offsets(offsets)
    code_rows = np.arange(count) + (layout.UNIT_ROWS * units[:-1] - offsets[:-1])[owners]
    signs = np.zeros((layout.words_of(dimensions), layout.UNIT_ROWS * int(units[-1])), dtype=np.uint64)
    rows = np.empty((count, layout.row_bytes(dimensions)), dtype=np.uint8)
    for start in range(0, count, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        residuals = rotated[order[block]] - centroids[owners[block]].astype(np.float32)
        signs[:, code_rows[block]] = layout.pack_signs(residuals > 0).T
        _quantise(residuals, rows[block])
    unit_owners = code_rows // layout.UNIT_ROWS
    unit_radii = np.bincount(unit_owners, weights=radii) / np.bincount(unit_owners) if count else np.zeros(0)
    squares = np.add.reduceat(np.square(radii, dtype=np.float64), offsets[:-1]) if count else np.zeros(0)
    encoded = Encoded(
        meta={"format": layout.FORMAT, "clusters": len(centroids)},
        head={
            layout.CENTROIDS: centroids.tobytes(),
            layout.OFFSETS: offsets.astype("<u4").tobytes(),
            layout.SPREADS: np.sqrt(squares / np.maximum(np.diff(offsets), 1)).astype("<f4").tobytes(),
        },
        body={
            layout.CODES: signs.tobytes() + unit_radii.astype("<f4").tobytes(),
            layout.ROWS: rows.tobytes(),
            layout.EXACT: vectors.astype("<f2")[order].tobytes(),
        },
    )
    return order, encoded


def _centroids(rotated: Floats, order: NDArray[np.intp], offsets: NDArray[np.intp]) -> NDArray[np.float16]:
    centroids = np.empty((len(offsets) - 1, rotated.shape[1]), dtype="<f2")
    for cluster in range(len(centroids)):
        centroids[cluster] = rotated[order[offsets[cluster] : offsets[cluster + 1]]].mean(axis=0)
    return centroids


def _radii(
    rotated: Floats, order: NDArray[np.intp], centroids: NDArray[np.float16], owners: NDArray[np.intp]
) -> Floats:
    """Distance of each row to its centroid."""
    radii = np.empty(len(order), dtype=np.float32)
    for start in range(0, len(order), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        radii[block] = np.linalg.norm(rotated[order[block]] - centroids[owners[block]].astype(np.float32), axis=1)
    return radii


def _quantise(residuals: Floats, rows: NDArray[np.uint8]) -> None:
    """Write each residual as int8 multiples of a scale, 1/127 of its largest coordinate, and the scale."""
    dimensions = residuals.shape[1]
    scales = np.abs(residuals).max(axis=1) / np.float32(127)
    # A residual that is too small to divide by is written as zeros.
    scales[scales < np.finfo(np.float32).tiny] = 0
    steps = np.divide(residuals, scales[:, None], out=np.zeros_like(residuals), where=scales[:, None] > 0)
    rows[:, :dimensions] = np.rint(steps).astype(np.int8).view(np.uint8)
    rows[:, dimensions:] = scales.astype("<f4").view(np.uint8).reshape(len(rows), 4)
