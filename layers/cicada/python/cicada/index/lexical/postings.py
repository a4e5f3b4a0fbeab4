"""Posting lists: the rows that have a term, their frequencies and positions; merged lists and phrases.

Each position of a posting is coded as the distance from the one before (at first from -1), doubled, plus 1 for the
posting's last. A posting without positions (the term is not in the passage's own text) is a single 1. Numbers have a
variable length: seven bits a byte, the lowest first (LEB128).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.lexical import ROW_BLOCK

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
    """All numbers of a section. Raises ValueError if the bytes end within a number, or a number is too long."""
    coded = np.frombuffer(data, np.uint8)
    if not len(coded):
        return np.zeros(0, np.int64)
    if coded[-1] & 0x80:
        raise ValueError("the last number is truncated")
    ends = np.flatnonzero(coded < 0x80)
    if len(ends) == len(coded):
        return coded.astype(np.int64)
    starts = np.concatenate([np.zeros(1, np.intp), ends[:-1] + 1])
    sizes = ends - starts + 1
    if int(sizes.max()) > _MAX_BYTES:
        raise ValueError("a number is too long")
    values = np.zeros(len(ends), np.int64)
    for byte in range(int(sizes.max())):
        has = sizes > byte
        values[has] |= (coded[starts[has] + byte] & 0x7F).astype(np.int64) << (7 * byte)
    return values


def encode_positions(
    counts: NDArray[np.int64], positions: NDArray[np.uint16], term_starts: NDArray[np.int64]
) -> tuple[bytes, NDArray[np.int64]]:
    """Encode the positions of all postings; returns the section, and the number of bytes of each term.

    ``counts``, shape ``(m,)``, are the numbers of positions of each posting in term order; ``positions`` ascend in each
    posting; ``term_starts`` are the first postings of the terms.
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
    """How many positions each posting of consecutive terms has, and the positions. Raises ValueError if damaged."""
    coded = decode_varints(data)
    if not len(coded):
        return coded, coded
    if not coded[-1] & 1:
        raise ValueError("the last posting is truncated")
    lasts = np.flatnonzero(coded & 1)
    numbers = np.diff(lasts, prepend=-1)
    firsts = lasts - numbers + 1
    steps = coded >> 1
    run = np.cumsum(steps)
    positions = run - np.repeat(run[firsts] - steps[firsts], numbers) - 1
    empty = steps[firsts] == 0
    return np.where(empty, 0, numbers), positions[~np.repeat(empty, numbers)]


_BLOCK_BITS = 16


class CodedList:
    """The rows of one part that have a term, ascending, and its frequencies, decoded on use.

    No row's tf / (tf + norm) exceeds ``bound`` at the segment's own average length.
    """

    def __init__(
        self, data: memoryview, counts: tuple[int, ...], code_width: int, values: NDArray[np.float32], bound: float
    ) -> None:
        """Take the bytes: the low halves of the rows, then the codes of their frequencies.

        ``counts`` are the rows in each block of 65,536; ``values`` are the frequencies by code.
        """
        self._count = sum(counts)
        self._counts = counts
        self._low = np.frombuffer(data, "<u2", self._count)
        self._codes = np.frombuffer(data, f"<u{code_width}", self._count, 2 * self._count)
        self._values = values
        self.bound = bound

    def __len__(self) -> int:
        return self._count

    def rows(self) -> NDArray[np.intp]:
        """Shape ``(m,)``."""
        rows = self._low.astype(np.intp)
        start = self._counts[0]
        for block, count in enumerate(self._counts[1:], 1):
            if count:
                rows[start : start + count] += block << _BLOCK_BITS
                start += count
        return rows

    def frequencies(self) -> NDArray[np.float32]:
        """The weighted frequency in each row; a new array."""
        return self._values.take(self._codes)

    def look_up(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """The frequencies in given rows, ascending; 0 without the term."""
        if len(self._counts) == 1:
            return self._in_block(rows, 0, self._count)
        found = np.zeros(len(rows), np.float32)
        ends = rows.searchsorted([(block + 1) * ROW_BLOCK for block in range(len(self._counts))]).tolist()
        here = start = 0
        for count, end in zip(self._counts, ends, strict=True):
            if end > here:
                found[here:end] = self._in_block(rows[here:end], start, count)
            here, start = end, start + count
        return found

    def _in_block(self, rows: NDArray[np.intp], start: int, count: int) -> NDArray[np.float32]:
        """The frequencies in rows of one block of 65,536, with ``count`` postings from ``start``."""
        if not count:
            return np.zeros(len(rows), np.float32)
        low = self._low[start : start + count]
        wanted = rows.astype(np.uint16)
        at = low.searchsorted(wanted)
        at[at == count] = 0
        found = self._values.take(self._codes[start : start + count].take(at))
        found *= low.take(at) == wanted
        return found


class MergedList:
    """The rows that have any of several terms, ascending."""

    def __init__(self, rows: NDArray[np.intp], frequencies: NDArray[np.float32], bound: float) -> None:
        self._rows, self._frequencies, self.bound = rows, frequencies, bound

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> NDArray[np.intp]:  # noqa: D102 (as CodedList)
        return self._rows

    def frequencies(self) -> NDArray[np.float32]:  # noqa: D102 (as CodedList)
        return self._frequencies.copy()

    def look_up(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:  # noqa: D102 (as CodedList)
        if not len(self._rows):
            return np.zeros(len(rows), np.float32)
        at = np.minimum(self._rows.searchsorted(rows), len(self._rows) - 1)
        found: NDArray[np.float32] = self._frequencies.take(at) * (self._rows.take(at) == rows)
        return found


PostingList = CodedList | MergedList


def merged(lists: Sequence[PostingList]) -> PostingList | None:
    """One list for several terms: their frequencies in a row add up."""
    if len(lists) < 2:
        return lists[0] if lists else None
    rows = np.concatenate([postings.rows() for postings in lists])
    frequencies = np.concatenate([postings.frequencies() for postings in lists])
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    bound = min(sum(postings.bound for postings in lists), 1.0)
    return MergedList(rows[starts], np.add.reduceat(frequencies[order], starts), bound)


_ROW_SHIFT = 20  # a place is its row, shifted, plus its position and the phrase's largest offset: both fit in 20 bits
MAX_PHRASE_POSITIONS = 1 << 10  # of a longer phrase, these positions count

Alternatives = Sequence[tuple[PostingList, memoryview]]
"""The lists of the terms that may stand in one place, each with its coded positions."""


def phrase_list(steps: Sequence[tuple[int, Alternatives]]) -> PostingList | None:
    """The rows that have a phrase, and how often; None if no row has it.

    ``steps`` are the offset of each of the phrase's terms from the first, and its alternatives. Raises IndexCorrupt.
    """
    if not steps or not all(alternatives for _, alternatives in steps):
        return None
    rows = _intersection([postings.rows() for postings, _ in alternatives] for _, alternatives in steps)
    if not len(rows):
        return None
    starts = _intersection(
        [_starts(postings, data, rows, offset) for postings, data in alternatives] for offset, alternatives in steps
    )
    found, times = np.unique(starts >> _ROW_SHIFT, return_counts=True)
    return MergedList(found.astype(np.intp), times.astype(np.float32), 1.0) if len(found) else None


def _intersection(steps: Iterable[Sequence[NDArray[np.int64]]]) -> NDArray[np.int64]:
    """The numbers that every step has in one of its arrays, ascending; stops once there are none."""
    common: NDArray[np.int64] | None = None
    for arrays in steps:
        here = np.unique(np.concatenate(arrays))
        common = here if common is None else np.intersect1d(common, here, assume_unique=True)
        if not len(common):
            break
    return np.zeros(0, np.int64) if common is None else common


def _starts(postings: PostingList, data: memoryview, rows: NDArray[np.intp], offset: int) -> NDArray[np.int64]:
    """Where a phrase with this term at this offset would start in some rows."""
    try:
        counts, positions = decode_positions(data)
    except ValueError as error:
        raise IndexCorrupt(f"positions cannot be read: {error}") from error
    own = postings.rows()
    if len(counts) != len(own):
        raise IndexCorrupt("positions and postings do not match")
    of = np.repeat(own, counts)
    at = np.minimum(rows.searchsorted(of), len(rows) - 1)
    kept = rows[at] == of
    places: NDArray[np.int64] = (of[kept] << _ROW_SHIFT) + positions[kept] + (MAX_PHRASE_POSITIONS - offset)
    return places
