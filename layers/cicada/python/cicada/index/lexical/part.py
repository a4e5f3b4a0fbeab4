"""The lexical part of one segment, opened: checks its sections, and reads dictionary entries and postings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index import lexical
from cicada.index.lexical.dictionary import DictionaryBlock, TermDictionary, TermEntry
from cicada.index.lexical.postings import PostingList
from cicada.index.lexical.query_parser import Clause, Prefix
from cicada.index.segment_format import Sections, Span, whole

_LOOK_UP_RATIO = 16  # looking up a deleted row costs about as much as reading this many postings
MAX_REMEMBERED_COUNTS = 65_536  # cached numbers of living rows, about 100 bytes each


class Alive:
    """The living rows of one part: their number, their lengths, and how many of them have a term."""

    def __init__(self, mask: NDArray[np.bool_] | None, lengths: NDArray[np.unsignedinteger[Any]]) -> None:
        """Take a mask ``(n,)``, which must not change (None for all rows), and the rows' lengths ``(n,)``."""
        self.mask = mask
        living = lengths if mask is None else lengths[mask]
        self.count = len(living)
        self.total_length = int(living.sum(dtype=np.int64))
        self._dead = np.zeros(0, np.intp) if mask is None else np.flatnonzero(~mask)
        self._counts: dict[Clause, int] = {}

    def count_of(self, postings: PostingList | None, clause: Clause) -> int:
        """How many living rows a clause's list has. The count is cached, but not of a prefix.

        What a prefix stands for depends on the other parts of the search.
        """
        if postings is None or not len(self._dead):
            return 0 if postings is None else len(postings)
        count = None if isinstance(clause, Prefix) else self._counts.get(clause)
        if count is None:
            if len(self._dead) * _LOOK_UP_RATIO < len(postings):
                count = len(postings) - int(np.count_nonzero(postings.look_up(self._dead)))
            else:
                assert self.mask is not None
                count = int(np.count_nonzero(self.mask.take(postings.rows())))
            if len(self._counts) >= MAX_REMEMBERED_COUNTS:
                self._counts.clear()
            self._counts[clause] = count
        return count


AVERAGES_REMEMBERED = 3  # average lengths whose norms a part caches: one per choice of collections and version
MAX_REMEMBERED_ENTRIES = 16_384  # dictionary entries that a part caches, about 300 bytes each


def length_norms(lengths: NDArray[np.float64], average: float) -> NDArray[np.float32]:
    """BM25's k1 * (1 - b + b * length / average length), for lengths and their average in the same unit."""
    return (lexical.K1 * (1 - lexical.B + lexical.B * lengths / (average or 1.0))).astype(np.float32)


class LexicalPart:
    """One segment's dictionary and postings."""

    body_names: ClassVar[tuple[str, ...]] = (lexical.LENGTHS, lexical.DICTIONARY, lexical.POSTINGS, lexical.POSITIONS)
    """Sections that searches read, in loading order; only phrases need the last."""

    def __init__(self, sections: Sections, count: int) -> None:
        """Open the part of a segment of ``count`` rows; reads only the head.

        Raises IndexCorrupt, or IndexMismatch if another version of the analyser or of the format wrote the part.
        """
        meta = sections.meta(lexical.PART)
        if (_number(meta, "format"), _number(meta, "analyzer")) != (lexical.FORMAT, lexical.ANALYZER_VERSION):
            raise IndexMismatch(f"unsupported lexical part: format {meta['format']}, analyser {meta['analyzer']}")
        self.sections, self.count = sections, count
        self.row_blocks = max(-(-count // lexical.ROW_BLOCK), 1)
        self.postings, self.terms = _number(meta, "postings"), _number(meta, "terms")
        self.code_width, self.length_width = _number(meta, "code_width"), _number(meta, "length_width")
        self.languages = _languages(meta, count)
        self.average_length = _number(meta, "total_length") / max(count, 1)
        self.dictionary = TermDictionary(sections.head(lexical.BLOCKS), sections.size(lexical.DICTIONARY))
        self._postings_size, self._positions_size = sections.size(lexical.POSTINGS), sections.size(lexical.POSITIONS)
        values = sections.head(lexical.WEIGHTS)
        if (
            not 0 <= count <= lexical.MAX_ROWS
            or self.code_width not in (1, 2)
            or self.length_width not in (2, 4)
            or len(values) % 2
            or len(values) > 2 << (8 * self.code_width)
            or sections.size(lexical.LENGTHS) != count * self.length_width
            or sections.size(lexical.LANGUAGES) != count
            or not 0 <= self._postings_size - self.postings * (2 + self.code_width) <= self.terms
        ):
            raise IndexCorrupt("the lexical part's sections have inconsistent sizes")
        self.frequencies = np.frombuffer(values, "<u2").astype(np.float32) / np.float32(lexical.WEIGHT_UNITS)
        self._remembered: dict[bytes, TermEntry | None] = {}
        self._norms: dict[float, NDArray[np.float32]] = {}
        self._alive: Alive | None = None

    def remembered(self, term: bytes) -> tuple[bool, TermEntry | None]:
        """Whether a term was looked up before, and its entry; None if the dictionary lacks it."""
        try:
            return True, self._remembered[term]
        except KeyError:
            return False, None

    def block_span(self, at: int) -> Span:
        """Where one block of the dictionary lies."""
        return Span(self.sections, lexical.DICTIONARY, *self.dictionary.span(at))

    def block(self, data: memoryview) -> DictionaryBlock:
        """Parse a block of the dictionary."""
        return DictionaryBlock(data, self.row_blocks)

    def look_up(self, term: bytes, block: DictionaryBlock) -> TermEntry | None:
        """Find a term in its block, and cache the result."""
        entry = block.find(term)
        if entry is not None:
            self.check(entry)
        if len(self._remembered) >= MAX_REMEMBERED_ENTRIES:
            self._remembered.clear()
        self._remembered[term] = entry
        return entry

    def check(self, entry: TermEntry) -> None:
        """Raises IndexCorrupt if an entry points past its sections, or its postings have another size."""
        size = sum(entry.counts) * (2 + self.code_width)
        if (
            entry.postings_size != size + (size & 1)
            or entry.postings_start + size > self._postings_size
            or entry.positions_size < 0
            or entry.positions_start + entry.positions_size > self._positions_size
        ):
            raise IndexCorrupt("a dictionary entry does not match its postings")

    def postings_span(self, entry: TermEntry) -> Span:
        """Where a term's postings lie."""
        return Span(self.sections, lexical.POSTINGS, entry.postings_start, entry.postings_size)

    def positions_span(self, entry: TermEntry) -> Span:
        """Where a term's positions lie."""
        return Span(self.sections, lexical.POSITIONS, entry.positions_start, entry.positions_size)

    def lengths_span(self) -> Span:
        """Where the lengths of all rows lie."""
        return whole(self.sections, lexical.LENGTHS)

    def alive(self, mask: NDArray[np.bool_] | None, lengths: memoryview) -> Alive:
        """The living rows of a mask ``(n,)``, None for all; the last mask's are cached."""
        alive = self._alive
        if alive is None or alive.mask is not mask:
            alive = self._alive = Alive(mask, self._lengths(lengths))
        return alive

    def norms(self, average: float, lengths: memoryview) -> NDArray[np.float32]:
        """BM25's length norm of each row, for an average length in units of 1/64; the last averages' are cached."""
        norms = self._norms.get(average)
        if norms is None:
            norms = length_norms(self._lengths(lengths).astype(np.float64), average)
            latest = list(self._norms.items())[1 - AVERAGES_REMEMBERED :]
            self._norms = dict([*latest, (average, norms)])  # replaced, not changed: other threads read it
        return norms

    def _lengths(self, data: memoryview) -> NDArray[np.unsignedinteger[Any]]:
        return np.frombuffer(data, f"<u{self.length_width}")


def _number(meta: Mapping[str, Any], name: str) -> int:
    value = meta.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise IndexCorrupt(f"the lexical part has an invalid {name}: {value!r}")
    return value


def _languages(meta: Mapping[str, Any], count: int) -> dict[str, int]:
    languages = meta.get("languages")
    if (
        not isinstance(languages, Mapping)
        or not all(isinstance(name, str) and type(rows) is int and rows >= 0 for name, rows in languages.items())
        or sum(languages.values()) != count
        or len(languages) > 256
    ):
        raise IndexCorrupt("the lexical part has invalid language counts")
    return dict(languages)
