"""A fixed orthogonal rotation, which makes the coordinates of any embedding model alike.

Embeddings keep most of their variance in some coordinates. A sign code spends one bit on each coordinate, and an 8-bit
row one step size on all of them: both lose on such vectors and gain when the variance is spread evenly. A product of
random sign flips and Hadamard transforms does that at almost no cost, and leaves every dot product as it is.

Source: Ailon and Chazelle, "The Fast Johnson-Lindenstrauss Transform", 2009; windows for dimensions that are no power
of two as in Gao et al., "Practical and Asymptotically Optimal Quantization of High-Dimensional Vectors", 2024.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_ROUNDS = 3
_BLOCK_ROWS = 4096


def rotate(vectors: Floats) -> Floats:
    """Rotate rows; the rotation depends on their dimensions alone and never changes.

    Args:
        vectors: shape ``(n, d)``.

    Returns:
        A new array of shape ``(n, d)``; dot products and lengths are kept, but for rounding.
    """
    count, dimensions = vectors.shape
    window = 1 << (dimensions.bit_length() - 1)
    rotated = np.empty((count, dimensions), dtype=np.float32)
    for start in range(0, count, _BLOCK_ROWS):
        block = rotated[start : start + _BLOCK_ROWS]
        block[:] = vectors[start : start + _BLOCK_ROWS]
        for turn, signs in enumerate(_signs(dimensions)):
            block *= signs
            # The window lies at the front and at the back in turns, so that every coordinate meets every other.
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
    """One row of signs a round, from a hash: the same in every version of numpy and on every machine."""
    size = (dimensions + 7) // 8
    drawn = hashlib.shake_256(f"cicada rotation {dimensions}".encode()).digest(_ROUNDS * size)
    bits = np.unpackbits(np.frombuffer(drawn, dtype=np.uint8).reshape(_ROUNDS, size), axis=1, count=dimensions)
    return [1 - 2 * row.astype(np.float32) for row in bits]
