r"""The vectors of one segment: the layout of their sections, their rotation, and the opened part.

All numbers are little-endian. With ``n`` rows of ``d`` dimensions in ``k`` clusters, ``w = ceil(d / 64)``, all vectors
but the exact ones rotated:

========================= ==== ================ ===============================================================
section                   part type             content
========================= ==== ================ ===============================================================
``vectors.centroids``     head float16 (k, d)   mean of each cluster's rows
``vectors.offsets``       head uint32 (k + 1)   first row of each cluster, then ``n``
``vectors.spreads``       head float32 (k)      root mean square distance of the rows to their centroid
``vectors.codes``         body uint64 (w, m)    signs of each row's residual, one bit a dimension, word by word, ...
\                              float32 (m / 32) ... then the mean length of the residuals of each unit
``vectors.rows``          body uint8 (n, d + 4) the residual as int8 (d), and a float32 that scales it
``vectors.exact``         body float16 (n, d)   the rows as given, unrotated; read by compaction alone
========================= ==== ================ ===============================================================

The residual is ``row - centroid`` with the centroid rounded to float16. In the codes each cluster is padded to whole
*units* of 32 rows, ``m`` in all. The rows of a cluster are sorted by the lengths of their residuals, so that those of a
unit are about equal: a unit stores their mean length alone.

The rotation is fixed and orthogonal, so it keeps dot products. Embeddings have most of their variance in few
coordinates, but a sign code has one bit per coordinate and an 8-bit row one step size for all: both are more exact when
the variance is spread evenly. Random sign flips and Hadamard transforms spread it at almost no cost.

Source: Ailon and Chazelle, "The Fast Johnson-Lindenstrauss Transform", 2009; windows for dimensions that are no power
of two as in Gao et al., "Practical and Asymptotically Optimal Quantization of High-Dimensional Vectors", 2024.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.segment_format import Gather, Sections, Span, whole

PART = "vectors"
FORMAT = 1
CENTROIDS = "vectors.centroids"
OFFSETS = "vectors.offsets"
SPREADS = "vectors.spreads"
CODES = "vectors.codes"
ROWS = "vectors.rows"
EXACT = "vectors.exact"

UNIT_ROWS = 32
MAX_DIMENSIONS = 8192  # Hamming distances and sizes stay far within their types


def words_of(dimensions: int) -> int:
    """64-bit words of one sign code."""
    return (dimensions + 63) // 64


def row_bytes(dimensions: int) -> int:
    """Bytes of one 8-bit row and its scale."""
    return dimensions + 4


def unit_offsets(offsets: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first unit of each cluster in the codes, then the number of units."""
    units = (np.diff(offsets) + UNIT_ROWS - 1) // UNIT_ROWS
    return np.concatenate(([0], np.cumsum(units)))


def pack_signs(positive: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack shape ``(n, d)`` into 64-bit words, shape ``(n, ceil(d / 64))``, padded with zeros."""
    packed = np.packbits(positive, axis=1)
    size = 8 * words_of(positive.shape[1])
    if packed.shape[1] != size:
        packed = np.pad(packed, ((0, 0), (0, size - packed.shape[1])))
    return packed.view(np.uint64)


Floats = NDArray[np.float32]

_ROUNDS = 3
_ROTATED_ROWS = 4096


def rotate(vectors: Floats) -> Floats:
    """Rotate rows ``(n, d)`` into a new array. The rotation depends on ``d`` only and never changes."""
    count, dimensions = vectors.shape
    window = 1 << (dimensions.bit_length() - 1)
    rotated = np.empty((count, dimensions), dtype=np.float32)
    for start in range(0, count, _ROTATED_ROWS):
        block = rotated[start : start + _ROTATED_ROWS]
        block[:] = vectors[start : start + _ROTATED_ROWS]
        for turn, signs in enumerate(_signs(dimensions)):
            block *= signs
            # The window alternates between front and back, so that every coordinate is mixed with every other.
            place = slice(0, window) if turn % 2 == 0 else slice(dimensions - window, dimensions)
            block[:, place] = _hadamard_transform(block[:, place])
    return rotated


def _hadamard_transform(rows: Floats) -> Floats:
    """Multiply rows of 2^k numbers by the orthonormal Hadamard matrix, as the Kronecker product of two small ones."""
    count, size = rows.shape
    outer = 1 << (size.bit_length() - 1) // 2
    inner = size // outer
    tables = (rows.reshape(count * outer, inner) @ _hadamard(inner)).reshape(count, outer, inner)
    transformed: Floats = (_hadamard(outer) @ tables).reshape(count, size)
    return transformed


@lru_cache(maxsize=32)
def _hadamard(size: int) -> Floats:
    matrix = np.ones((1, 1), dtype=np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    matrix /= np.sqrt(np.float32(size))
    return matrix


@lru_cache(maxsize=8)
def _signs(dimensions: int) -> list[Floats]:
    """A row of signs per round, from a hash: numpy's generators may change between versions."""
    size = (dimensions + 7) // 8
    drawn = hashlib.shake_256(f"cicada rotation {dimensions}".encode()).digest(_ROUNDS * size)
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8).reshape(_ROUNDS, size), axis=1, count=dimensions)
    return [1 - 2 * row.astype(np.float32) for row in bits]


_LONGEST = 1e6  # of a residual: far above any of unit rows, and its square is still a float32


class VectorPart:
    """The vectors of one segment: ``count`` rows ``n`` of ``d`` ``dimensions``. Immutable, so thread-safe.

    Attributes:
        centroids: float32 ``(k, d)``, rotated; the mean of each cluster's rows.
        lengths: float32 ``(k,)``, the squared length of each centroid.
        spreads: float32 ``(k,)``, root mean square distance of a cluster's rows to its centroid.
        offsets: ``(k + 1,)``, the first row of each cluster, then ``n``.
        sizes: ``(k,)``, rows of each cluster.
        unit_owners, unit_rows, unit_ends: for each unit of the codes its cluster, its first row, and the end of its
            cluster's rows.
    """

    body_names: ClassVar[tuple[str, ...]] = (CODES, ROWS)  # sections that searches read, the most useful first

    def __init__(self, sections: Sections, count: int, dimensions: int) -> None:
        """Check the head against the segment's numbers of rows and dimensions. Raises IndexCorrupt."""
        self.sections = sections
        self.count = count
        self.dimensions = dimensions
        if count < 0 or not 0 < dimensions <= MAX_DIMENSIONS:
            raise IndexCorrupt(f"a segment of {count} vectors of {dimensions} dimensions")
        clusters = _clusters(sections.meta(PART), count)
        self.offsets = self._head(OFFSETS, "<u4", (clusters + 1,)).astype(np.intp)
        if self.offsets[0] != 0 or self.offsets[-1] != count or np.any(self.offsets[1:] <= self.offsets[:-1]):
            raise IndexCorrupt("the clusters of the vectors do not cover the rows")
        self.sizes: NDArray[np.intp] = np.diff(self.offsets)
        units = unit_offsets(self.offsets)
        self.unit_owners: NDArray[np.intp] = np.repeat(np.arange(clusters), np.diff(units))
        self.unit_ends: NDArray[np.intp] = self.offsets[1:][self.unit_owners]
        firsts = self.offsets[:-1] - UNIT_ROWS * units[:-1]
        self.unit_rows: NDArray[np.intp] = firsts[self.unit_owners] + UNIT_ROWS * np.arange(units[-1])
        self.centroids: Floats = self._head(CENTROIDS, "<f2", (clusters, dimensions)).astype(np.float32)
        self.spreads: Floats = self._head(SPREADS, "<f4", (clusters,)).astype(np.float32)
        self.lengths: Floats = np.einsum("ij,ij->i", self.centroids, self.centroids)
        if not (np.all(np.isfinite(self.lengths)) and np.all((self.spreads >= 0) & (self.spreads <= _LONGEST))):
            raise IndexCorrupt("the centroids of the vectors are not finite")
        self._check_size(CODES, len(self.unit_owners) * (8 * words_of(dimensions) * UNIT_ROWS + 4))
        self._check_size(ROWS, count * row_bytes(dimensions))
        self._check_size(EXACT, count * dimensions * 2)

    def resident_codes(self) -> tuple[NDArray[np.uint64], Floats] | None:
        """The sign codes, shape ``(w, units, 32)``, and residual lengths, ``(units,)``, if they are in memory."""
        data = self.sections.resident(CODES)
        if data is None:
            return None
        shape = (words_of(self.dimensions), len(self.unit_owners), UNIT_ROWS)
        signs = np.frombuffer(data, dtype=np.uint64, count=math.prod(shape)).reshape(shape)
        return signs, np.frombuffer(data, dtype="<f4", offset=signs.nbytes)

    def resident_rows(self) -> NDArray[np.uint8] | None:
        """The 8-bit rows with their scales, shape ``(n, d + 4)``, if they are in memory."""
        data = self.sections.resident(ROWS)
        return None if data is None else self.rows_of(data)

    def rows_of(self, data: memoryview) -> NDArray[np.uint8]:
        """Bytes of the rows' section as rows, shape ``(m, d + 4)``."""
        return np.frombuffer(data, dtype=np.uint8).reshape(-1, row_bytes(self.dimensions))

    def span_of(self, start: int, end: int) -> Span:
        """Where the 8-bit rows ``start`` to ``end`` lie."""
        size = row_bytes(self.dimensions)
        return Span(self.sections, ROWS, start * size, (end - start) * size)

    def _check_size(self, name: str, size: int) -> None:
        if self.sections.size(name) != size:
            raise IndexCorrupt(f"{name} has {self.sections.size(name)} bytes, not {size}")

    def _head(self, name: str, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        data = self.sections.head(name)
        if len(data) != math.prod(shape) * np.dtype(dtype).itemsize:
            raise IndexCorrupt(f"{name} has {len(data)} bytes, which is not shape {shape} of {dtype}")
        return np.frombuffer(data, dtype=dtype).reshape(shape)


def _clusters(meta: Mapping[str, Any], count: int) -> int:
    if meta.get("format") != FORMAT:
        raise IndexCorrupt(f"vectors of format {meta.get('format')!r}, not {FORMAT}")
    clusters = meta.get("clusters")
    if type(clusters) is not int or not (0 < clusters <= count or clusters == count == 0):
        raise IndexCorrupt(f"{clusters!r} clusters of {count} vectors")
    return clusters


def decode_vectors(part: VectorPart, gather: Gather) -> Floats:
    """The exact rows ``(n, d)`` in the segment's order. Encoding them again loses no precision."""
    (data,) = gather([whole(part.sections, EXACT)])
    return np.frombuffer(data, dtype="<f2").reshape(part.count, part.dimensions).astype(np.float32)
