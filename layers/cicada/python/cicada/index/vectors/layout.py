r"""How the vectors of a segment lie in its sections. All numbers are little-endian.

With ``n`` rows of ``d`` dimensions in ``k`` clusters, ``w = ceil(d / 64)``, all vectors but the exact ones rotated:

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

The residual is ``row - centroid`` with the centroid as it was rounded to float16. In the codes each cluster is filled
up to whole *units* of 32 rows, ``m`` in all. The rows of a cluster are in the order of their residuals' lengths, so
that those of a unit are about equally long: one length stands for all, and the differing bits alone tell them apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PART = "vectors"
FORMAT = 1
CENTROIDS = "vectors.centroids"
OFFSETS = "vectors.offsets"
SPREADS = "vectors.spreads"
CODES = "vectors.codes"
ROWS = "vectors.rows"
EXACT = "vectors.exact"

UNIT_ROWS = 32
MAX_DIMENSIONS = 8192
"""Hamming distances and sizes stay far within their types."""


def words_of(dimensions: int) -> int:
    """64-bit words of one sign code."""
    return (dimensions + 63) // 64


def unit_bytes(dimensions: int) -> int:
    """Bytes of one unit in the codes: the signs of its rows and the length of their residuals."""
    return 8 * words_of(dimensions) * UNIT_ROWS + 4


def row_bytes(dimensions: int) -> int:
    """Bytes of one 8-bit row and its scale."""
    return dimensions + 4


def unit_offsets(offsets: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first unit of each cluster in the codes, then the number of units; from the clusters' first rows."""
    units = (np.diff(offsets) + UNIT_ROWS - 1) // UNIT_ROWS
    return np.concatenate(([0], np.cumsum(units)))


def pack_signs(positive: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack shape ``(n, d)`` into 64-bit words, shape ``(n, ceil(d / 64))``, filled up with zeros."""
    packed = np.packbits(positive, axis=1)
    size = 8 * words_of(positive.shape[1])
    if packed.shape[1] != size:
        packed = np.pad(packed, ((0, 0), (0, size - packed.shape[1])))
    return packed.view(np.uint64)
