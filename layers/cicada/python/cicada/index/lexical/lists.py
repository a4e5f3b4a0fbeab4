"""The passages that have a term: coded as in the segment, or merged from several terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cicada.index.lexical.constants import ROW_BLOCK

_BLOCK_BITS = 16


class PostingList(Protocol):
    """Rows of one part, ascending, and how often each has the term."""

    bound: float
    """No row's tf / (tf + norm) is larger, at the segment's own average length."""

    def __len__(self) -> int: ...

    def rows(self) -> NDArray[np.intp]:
        """``(m,)``."""
        ...

    def frequencies(self) -> NDArray[np.float32]:
        """The weighted frequency in each row; a new array."""
        ...

    def look_up(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """The frequencies in given rows, which ascend; 0 where the term is not."""
        ...


class CodedList:
    """Postings of one term, decoded as far as they are asked for."""

    def __init__(
        self, data: memoryview, counts: tuple[int, ...], code_width: int, values: NDArray[np.float32], bound: float
    ) -> None:
        """Take the bytes.

        Args:
            data: the low halves of the rows, then the codes of their frequencies.
            counts: rows in each block of 65,536.
            code_width: bytes of a code.
            values: the frequencies by code.
            bound: see :class:`PostingList`.
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
        """See the protocol."""
        rows = self._low.astype(np.intp)
        start = self._counts[0]
        for block, count in enumerate(self._counts[1:], 1):
            if count:
                rows[start : start + count] += block << _BLOCK_BITS
                start += count
        return rows

    def frequencies(self) -> NDArray[np.float32]:
        """See the protocol."""
        return self._values.take(self._codes)

    def look_up(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """See the protocol."""
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
        """The frequencies in rows of one block of 65,536, whose postings are ``count`` from ``start`` on."""
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
    """Rows that have any of several terms."""

    def __init__(self, rows: NDArray[np.intp], frequencies: NDArray[np.float32], bound: float) -> None:
        """Take ascending rows and their frequencies."""
        self._rows, self._frequencies, self.bound = rows, frequencies, bound

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> NDArray[np.intp]:
        """See the protocol."""
        return self._rows

    def frequencies(self) -> NDArray[np.float32]:
        """See the protocol."""
        return self._frequencies.copy()

    def look_up(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """See the protocol."""
        if not len(self._rows):
            return np.zeros(len(rows), np.float32)
        at = np.minimum(self._rows.searchsorted(rows), len(self._rows) - 1)
        found: NDArray[np.float32] = self._frequencies.take(at) * (self._rows.take(at) == rows)
        return found


def merged(lists: Sequence[PostingList]) -> PostingList | None:
    """One list for several terms that count as one: their frequencies in a row add up."""
    if len(lists) < 2:
        return lists[0] if lists else None
    rows = np.concatenate([postings.rows() for postings in lists])
    frequencies = np.concatenate([postings.frequencies() for postings in lists])
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    bound = min(sum(postings.bound for postings in lists), 1.0)
    return MergedList(rows[starts], np.add.reduceat(frequencies[order], starts), bound)
