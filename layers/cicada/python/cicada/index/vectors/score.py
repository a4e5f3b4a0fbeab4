"""The second stage: the cosine of a row as it is stored, from its 8-bit residual."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.vectors.probe import Probe
from cicada.index.vectors.scratch import scratch

Floats = NDArray[np.float32]
Indices = NDArray[np.intp]

_BLOCK_NUMBERS = 1 << 17
"""Coordinates scored in one go: as float32 they stay in the second-level cache."""


def stored_cosines(probe: Probe, rows: Indices, data: NDArray[np.uint8], first: int = 0) -> Floats:
    """Cosines of rows to the query.

    Args:
        probe: the segment and the query.
        rows: numbers in the segment, ascending, shape ``(m,)``.
        data: bytes of rows of the segment, those among them, shape ``(any, d + 4)``.
        first: which row the data begin with.

    Returns:
        Shape ``(m,)``.

    Raises:
        IndexCorrupt: a row's scale is no finite number.
    """
    dimensions = probe.part.dimensions
    cosines = np.empty(len(rows), dtype=np.float32)
    step = max(_BLOCK_NUMBERS // dimensions, 1)
    for start in range(0, len(rows), step):
        chosen = rows[start : start + step] - first
        block: NDArray[np.uint8] = scratch("rows", (len(chosen), data.shape[1]), np.uint8)
        data.take(chosen, axis=0, out=block, mode="clip")  # without a mode, numpy would make a copy first
        numbers: Floats = scratch("numbers", (len(chosen), dimensions), np.float32)
        numbers[:] = block[:, :dimensions].view(np.int8)
        scores = cosines[start : start + step]
        np.matmul(numbers, probe.query, out=scores)
        scores *= np.ascontiguousarray(block[:, dimensions:]).view("<f4")[:, 0]
    cosines += probe.products[np.searchsorted(probe.part.offsets, rows, side="right") - 1]
    if not np.all(np.isfinite(cosines)):
        raise IndexCorrupt("a row of the vectors is not made of finite numbers")
    return cosines
