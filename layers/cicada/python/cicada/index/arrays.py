"""Index arithmetic on arrays of runs: several runs of values stored one after another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def offsets_of(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where each run starts, and the last ends. Shape ``(n + 1,)``."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def indices_of(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """The indices of several runs: ``starts[0], starts[0] + 1, ... starts[1], ...``."""
    ends = np.cumsum(lengths, dtype=np.int64)
    indices = np.arange(ends[-1] if len(ends) else 0, dtype=np.int64)
    indices += np.repeat(starts.astype(np.int64) - ends + lengths, lengths)
    return indices
