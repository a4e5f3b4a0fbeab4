"""Numbers of variable length, a whole array at a time: seven bits a byte, the lowest first (LEB128)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MAX_BYTES = 5


def varint_sizes(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many bytes each number takes; all of them are below 2**35."""
    sizes = np.ones(len(values), np.int64)
    for bits in range(7, 7 * _MAX_BYTES, 7):
        larger = values >= 1 << bits
        if not larger.any():
            break
        sizes += larger
    return sizes


def encode_varints(values: NDArray[np.int64]) -> bytes:
    """Numbers from 0 to below 2**35."""
    sizes = varint_sizes(values)
    ends = np.cumsum(sizes)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    starts = ends - sizes
    for byte in range(int(sizes.max(initial=0))):
        has = sizes > byte
        continued = sizes[has] > byte + 1
        out[starts[has] + byte] = ((values[has] >> (7 * byte)) & 0x7F) | (continued << 7)
    return out.tobytes()


def decode_varints(data: memoryview) -> NDArray[np.int64]:
    """All numbers of a section.

    Raises:
        ValueError: the bytes end within a number, or one is longer than any that is written.
    """
    coded = np.frombuffer(data, np.uint8)
    if not len(coded):
        return np.zeros(0, np.int64)
    if coded[-1] & 0x80:
        raise ValueError("the last number is cut")
    ends = np.flatnonzero(coded < 0x80)
    if len(ends) == len(coded):
        return coded.astype(np.int64)
    starts = np.concatenate([np.zeros(1, np.intp), ends[:-1] + 1])
    sizes = ends - starts + 1
    if int(sizes.max()) > _MAX_BYTES:
        raise ValueError("a number is longer than any that is written")
    values = np.zeros(len(ends), np.int64)
    for byte in range(int(sizes.max())):
        has = sizes > byte
        values[has] |= (coded[starts[has] + byte] & 0x7F).astype(np.int64) << (7 * byte)
    return values
