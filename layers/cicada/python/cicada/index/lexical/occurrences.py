"""Where terms stand in passages, coded for each term: for phrases.

A posting's positions are one number each: the distance from the one before (from -1 at first), doubled, plus 1 if it
is the posting's last. A posting without positions (the term is only in what counts besides the passage's own text) is
a single 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cicada.index.lexical.varints import decode_varints, encode_varints, varint_sizes


def encode_positions(
    counts: NDArray[np.int64], positions: NDArray[np.uint16], term_starts: NDArray[np.int64]
) -> tuple[bytes, NDArray[np.int64]]:
    """Code the positions of all postings.

    Args:
        counts: ``(m,)``: positions of each posting, which are in term order.
        positions: those positions, posting by posting, ascending.
        term_starts: the first posting of each term.

    Returns:
        The section, and how many bytes of it each term has.
    """
    if not len(counts):
        return b"", np.zeros(len(term_starts), np.int64)
    numbers = np.maximum(counts, 1)
    ends = np.cumsum(numbers)
    coded = np.zeros(int(ends[-1]), np.int64)
    holds = np.repeat(counts > 0, numbers)
    coded[holds] = positions
    steps = np.diff(coded, prepend=-1)
    firsts = ends - numbers
    steps[firsts] = coded[firsts] + 1
    steps[~holds] = 0
    coded = steps << 1
    coded[ends - 1] |= 1
    return encode_varints(coded), np.add.reduceat(varint_sizes(coded), firsts[term_starts])


def decode_positions(data: memoryview) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read a term's positions, or those of consecutive terms.

    Returns:
        How many positions each posting has, and the positions.

    Raises:
        ValueError: the bytes are no such code.
    """
    coded = decode_varints(data)
    if not len(coded):
        return coded, coded
    if not coded[-1] & 1:
        raise ValueError("the last posting is cut")
    lasts = np.flatnonzero(coded & 1)
    numbers = np.diff(lasts, prepend=-1)
    firsts = lasts - numbers + 1
    steps = coded >> 1
    run = np.cumsum(steps)
    positions = run - np.repeat(run[firsts] - steps[firsts], numbers) - 1
    empty = steps[firsts] == 0
    return np.where(empty, 0, numbers), positions[~np.repeat(empty, numbers)]
