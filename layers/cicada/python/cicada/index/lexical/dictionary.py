"""The dictionary: sorted terms in blocks that are read by range, and a sparse index of them.

A block has a header (where its terms' postings and positions start, the bytes of the terms, their number, the width of
counts and offsets); the terms (UTF-8, each between zero bytes); each term's postings per row block; the offsets of its
postings and positions from the block's own, with the ends; and a bound of its weight.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.lexical import BLOCKS, TERMS_PER_BLOCK

_HEADER = struct.Struct("<QQIHBB")
_BETWEEN = b"\0"
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


class TermEntry(NamedTuple):
    """A term of the dictionary."""

    counts: tuple[int, ...]  # its postings in each block of 65,536 rows, deleted rows included
    postings_start: int
    postings_size: int
    positions_start: int
    positions_size: int
    bound: float  # no posting's saturated weight, tf / (tf + norm), is larger, at the segment's own average length


@dataclass(frozen=True)
class TermTable:
    """All terms of a segment, by number in sorted order."""

    terms: Sequence[bytes]
    counts: NDArray[np.int64]  # ``(terms, row blocks)``
    positions_sizes: NDArray[np.int64]
    bounds: NDArray[np.uint8]  # in units of 1/255, rounded up


def encode_dictionary(table: TermTable, code_width: int) -> tuple[bytes, bytes]:
    """The sections of the head and of the body."""
    blocks: list[bytes] = []
    firsts: list[bytes] = []
    postings_start = positions_start = 0
    for start in range(0, len(table.terms), TERMS_PER_BLOCK):
        here = slice(start, start + TERMS_PER_BLOCK)
        terms = table.terms[here]
        text = _BETWEEN + _BETWEEN.join(terms) + _BETWEEN
        sizes = table.counts[here].sum(axis=1) * (2 + code_width)
        offsets = np.cumsum([[0, *(sizes + (sizes & 1))], [0, *table.positions_sizes[here]]], axis=1)
        counts, count_width = _packed(table.counts[here])
        packed, offset_width = _packed(offsets)
        header = _HEADER.pack(postings_start, positions_start, len(text), len(terms), count_width, offset_width)
        blocks.append(b"".join((header, text, counts, packed, table.bounds[here].tobytes())))
        firsts.append(terms[0])
        postings_start += int(offsets[0, -1])
        positions_start += int(offsets[1, -1])
    ends = np.cumsum([0, *map(len, blocks)], dtype="<u8")
    head = struct.pack("<I", len(blocks)) + ends.tobytes() + _BETWEEN.join(firsts)
    return head, b"".join(blocks)


def _packed(values: NDArray[np.int64]) -> tuple[bytes, int]:
    largest = int(values.max(initial=0))
    width = next(width for width in _CODES if largest < 1 << (8 * width))
    return values.astype(f"<u{width}").tobytes(), width


class TermDictionary:
    """The sparse index of a segment's dictionary, which finds the block to read."""

    def __init__(self, head: memoryview, body_size: int) -> None:
        """Read the head's section. Raises IndexCorrupt if it does not fit the body."""
        data = bytes(head)
        count = int.from_bytes(data[:4], "little")
        firsts_at = 4 + 8 * (count + 1)
        if len(data) < firsts_at:
            raise IndexCorrupt(f"{BLOCKS} is truncated")
        self._ends: list[int] = np.frombuffer(data, "<u8", count + 1, 4).tolist()
        self._firsts = data[firsts_at:].split(_BETWEEN) if count else []
        ascending = all(start < end for start, end in pairwise(self._ends))
        if len(self._firsts) != count or self._ends[0] != 0 or self._ends[-1] != body_size or not ascending:
            raise IndexCorrupt(f"{BLOCKS} does not fit the dictionary")

    def __len__(self) -> int:
        return len(self._firsts)

    def block_of(self, term: bytes) -> int | None:
        """The only block that can have a term."""
        at = bisect_right(self._firsts, term) - 1
        return at if at >= 0 else None

    def blocks_of(self, prefix: bytes, limit: int) -> range:
        """The first blocks that can have terms with a prefix."""
        start = max(bisect_right(self._firsts, prefix) - 1, 0)
        stop = bisect_left(self._firsts, prefix + b"\xff")
        return range(start, min(stop, start + limit))

    def span(self, block: int) -> tuple[int, int]:
        """A block's first byte and length."""
        return self._ends[block], self._ends[block + 1] - self._ends[block]


class DictionaryBlock:
    """One block of a dictionary."""

    def __init__(self, data: memoryview, row_blocks: int) -> None:
        """Read the header. Raises IndexCorrupt."""
        try:
            self._postings, self._positions, text, self._count, width, offset_width = _HEADER.unpack_from(data)
            self._width, self._count_code = width, _CODES[width]
            self._offset_width, self._offset_code = offset_width, _CODES[offset_width]
        except (struct.error, KeyError) as error:
            raise IndexCorrupt("a block of the dictionary is truncated") from error
        self._row_blocks, self._data = row_blocks, data
        self._counts_at = _HEADER.size + text
        self._postings_at = self._counts_at + self._count * row_blocks * width
        self._positions_at = self._postings_at + (self._count + 1) * offset_width
        self._bounds_at = self._positions_at + (self._count + 1) * offset_width
        if self._bounds_at + self._count != len(data):
            raise IndexCorrupt("a block of the dictionary has inconsistent sizes")
        self._text = bytes(data[_HEADER.size : self._counts_at])
        if self._text.count(_BETWEEN) != self._count + 1 or self._text[:1] != _BETWEEN or self._text[-1:] != _BETWEEN:
            raise IndexCorrupt("a block of the dictionary has a wrong number of terms")

    def find(self, term: bytes) -> TermEntry | None:
        """A term's entry, if it is here."""
        at = self._text.find(_BETWEEN + term + _BETWEEN)
        return None if at < 0 else self._entry(self._text.count(_BETWEEN, 0, at))

    def terms(self) -> list[bytes]:
        """All terms, in order."""
        return self._text[1:-1].split(_BETWEEN)

    def starting_with(self, prefix: bytes) -> Iterator[tuple[bytes, TermEntry]]:
        """Terms with a prefix, in order."""
        terms = self.terms()
        for at in range(bisect_left(terms, prefix), len(terms)):
            if not terms[at].startswith(prefix):
                return
            yield terms[at], self._entry(at)

    def counts(self) -> NDArray[np.int64]:
        """The number of each term's postings, ``(terms, row blocks)``."""
        counts = np.frombuffer(self._data, f"<u{self._width}", self._count * self._row_blocks, self._counts_at)
        return counts.astype(np.int64).reshape(self._count, self._row_blocks)

    def _entry(self, at: int) -> TermEntry:
        width, code = self._offset_width, self._offset_code
        counts_at = self._counts_at + at * self._row_blocks * self._width
        postings, postings_end = struct.unpack_from(f"<2{code}", self._data, self._postings_at + at * width)
        positions, positions_end = struct.unpack_from(f"<2{code}", self._data, self._positions_at + at * width)
        return TermEntry(
            counts=struct.unpack_from(f"<{self._row_blocks}{self._count_code}", self._data, counts_at),
            postings_start=self._postings + postings,
            postings_size=postings_end - postings,
            positions_start=self._positions + positions,
            positions_size=positions_end - positions,
            bound=self._data[self._bounds_at + at] / 255,
        )
