"""Memory that a thread uses again in its next search.

A fresh array of more than about 100 KB costs a page fault every 4 KB in many processes, as the allocator gives such
memory back to the system at once: that can take longer than what is computed in it.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class _Buffers(threading.local):
    def __init__(self) -> None:
        self.by_use: dict[str, NDArray[np.uint8]] = {}


_buffers = _Buffers()


def scratch(use: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array with anything in it; good until the same thread asks for the same use again."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = _buffers.by_use.get(use)
    if buffer is None or len(buffer) < size:
        buffer = _buffers.by_use[use] = np.empty(size, dtype=np.uint8)
    return buffer[:size].view(dtype).reshape(shape)
