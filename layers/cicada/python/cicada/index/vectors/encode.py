"""Vectors into sections: clusters, sign codes, 8-bit rows, and the exact rows for compaction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cicada.index.sections import Encoded
from cicada.index.vectors import layout
from cicada.index.vectors.clustering import cluster_rows
from cicada.index.vectors.rotation import rotate

Floats = NDArray[np.float32]

_BLOCK_ROWS = 8192
_LARGEST = 16.0
"""Of a coordinate: far above any of a unit row, far below where float16 ends."""


def encode_vectors(vectors: Floats, *, seed: int = 0) -> tuple[NDArray[np.intp], Encoded]:
    """Encode the vectors of a segment.

    Args:
        vectors: shape ``(n, d)``, rows of unit length.
        seed: of the clustering. The same vectors and seed give the same order; on the same machine the same bytes.

    Returns:
        ``order``, shape ``(n,)``: ``order[row]`` is the position in ``vectors`` of the segment's row; and the sections,
        whose rows are in that order.

    Raises:
        ValueError: the shape is another, or a number is not finite or is far from any of a unit row.
    """
    if vectors.ndim != 2 or not 0 < vectors.shape[1] <= layout.MAX_DIMENSIONS:
        raise ValueError(f"vectors of shape {vectors.shape}")
    if not np.all(np.abs(vectors) <= _LARGEST):
        raise ValueError("vectors must be finite and of unit length")
    count, dimensions = vectors.shape
    rotated = rotate(vectors)
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
    """Write each residual as whole multiples of its own 127th part of its largest coordinate, and that part."""
    dimensions = residuals.shape[1]
    scales = np.abs(residuals).max(axis=1) / np.float32(127)
    # A residual of nothing, or of too little to divide by, is all zeros.
    scales[scales < np.finfo(np.float32).tiny] = 0
    steps = np.divide(residuals, scales[:, None], out=np.zeros_like(residuals), where=scales[:, None] > 0)
    rows[:, :dimensions] = np.rint(steps).astype(np.int8).view(np.uint8)
    rows[:, dimensions:] = scales.astype("<f4").view(np.uint8).reshape(len(rows), 4)
