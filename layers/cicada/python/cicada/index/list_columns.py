"""List columns: fields with several values per passage, such as the entities that it names.

Sections of the part ``lists``, for the field numbered ``i`` in its meta's ``fields``:

- ``lists.<i>.values``: the distinct values in UTF-8, ascending, concatenated;
- ``lists.<i>.offsets``, uint32: the offsets of the values, then the offsets of each value's rows in the next section,
  both with the end;
- ``lists.<i>.rows``: the rows of each value, ascending, of 2 bytes in a segment of up to 65,536 rows, else of 4.

They are stored by value: a filter finds its few values by binary search and reads their rows alone, and a count under
any filter is one pass over all rows. A segment without such values has no such part.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.passages import Passage
from cicada.errors import CorpusInvalid, IndexCorrupt
from cicada.index.arrays import indices_of, offsets_of
from cicada.index.columns import FieldPart, Mask, RowFilter
from cicada.index.segment_format import Encoded, Gather, Sections, Span, whole

PART = "lists"
_NAMES = (f"{PART}.{{}}.values", f"{PART}.{{}}.offsets", f"{PART}.{{}}.rows")
ENTITIES = "entities"
ENTITY_CODES = "entity_codes"
LIST_FIELDS: Mapping[str, Callable[[Passage], Sequence[str]]] = {
    ENTITIES: lambda passage: passage.entities,
    ENTITY_CODES: lambda passage: passage.codes,
}
"""What passages can have several values of."""

Rows = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class ListColumn:
    """A field of every row: ``values[code]`` for each of ``codes[starts[row] : starts[row + 1]]``."""

    values: tuple[str, ...]  # ascending; each has a row
    starts: NDArray[np.int64]  # shape ``(count + 1,)``
    codes: NDArray[np.int32]  # ascending in each row

    def take(self, rows: NDArray[np.intp]) -> ListColumn:
        """Some rows, in that order, with the values that they have."""
        lengths = np.diff(self.starts)[rows]
        places = indices_of(self.starts[:-1][rows], lengths)
        used, codes = np.unique(self.codes[places], return_inverse=True)
        values = tuple(self.values[code] for code in used.tolist())
        return ListColumn(values, offsets_of(lengths), codes.astype(np.int32))


def lists_of(passages: Sequence[Passage]) -> dict[str, ListColumn]:
    """The list columns of passages, without the fields that none of them has."""
    columns = {name: _column([values_of(passage) for passage in passages]) for name, values_of in LIST_FIELDS.items()}
    return {name: column for name, column in columns.items() if column.values}


def concat_lists(parts: Sequence[tuple[Mapping[str, ListColumn], int]]) -> dict[str, ListColumn]:
    """Concatenate the columns of parts, each with its number of rows; a part may lack fields."""
    names = dict.fromkeys(name for columns, _ in parts for name in columns)
    return {name: _concat([(columns.get(name), count) for columns, count in parts]) for name in names}


def take_lists(columns: Mapping[str, ListColumn], rows: NDArray[np.intp]) -> dict[str, ListColumn]:
    """Some rows of all columns, without the fields that none of them has."""
    taken = {name: column.take(rows) for name, column in columns.items()}
    return {name: column for name, column in taken.items() if column.values}


def encode_lists(columns: Mapping[str, ListColumn], order: NDArray[np.intp]) -> Encoded:
    """Encode columns with their rows in this order. Raises CorpusInvalid beyond a segment's limits."""
    body: dict[str, bytes] = {}
    for number, column in enumerate(columns.values()):
        ordered = column.take(order)
        rows = np.repeat(np.arange(len(order)), np.diff(ordered.starts))
        written = [value.encode() for value in ordered.values]
        ends = offsets_of(np.array([len(value) for value in written], dtype=np.int64))
        row_ends = offsets_of(np.bincount(ordered.codes, minlength=len(written)))
        if max(ends[-1], row_ends[-1]) >= 2**32:
            raise CorpusInvalid("the entities of a segment are more than 4 GiB")
        values, offsets, places = (name.format(number) for name in _NAMES)
        body[values] = b"".join(written)
        body[offsets] = np.concatenate([ends, row_ends]).astype("<u4").tobytes()
        by_value = np.argsort(ordered.codes, kind="stable")
        body[places] = rows[by_value].astype(row_type(len(order))).tobytes()
    return Encoded({"fields": list(columns)}, {}, body)


def row_type(count: int) -> np.dtype[np.unsignedinteger]:
    """The type of row numbers in a segment of ``count`` rows."""
    return np.dtype("<u2") if count <= 2**16 else np.dtype("<u4")


def _column(rows: Sequence[Sequence[str]]) -> ListColumn:
    values = sorted({value for row in rows for value in row})
    code_of = {value: code for code, value in enumerate(values)}
    coded = [sorted({code_of[value] for value in row}) for row in rows]
    codes = np.array([code for row in coded for code in row], dtype=np.int32)
    return ListColumn(tuple(values), offsets_of(np.array([len(row) for row in coded], dtype=np.int64)), codes)


def _concat(parts: Sequence[tuple[ListColumn | None, int]]) -> ListColumn:
    values = sorted({value for column, _ in parts if column is not None for value in column.values})
    code_of = {value: code for code, value in enumerate(values)}
    lengths: list[NDArray[np.int64]] = []
    codes: list[NDArray[np.int32]] = []
    for column, count in parts:
        if column is None:
            lengths.append(np.zeros(count, dtype=np.int64))
        else:
            lengths.append(np.diff(column.starts))
            codes.append(np.array([code_of[value] for value in column.values], dtype=np.int32)[column.codes])
    return ListColumn(tuple(values), offsets_of(np.concatenate(lengths)), np.concatenate(codes))


@dataclass(frozen=True)
class ValueDictionary:
    """The distinct values of a field, ascending, and where the rows of each are."""

    field: str
    written: memoryview  # all values in UTF-8, one after another
    ends: NDArray[np.uint32]  # ``(n + 1,)``: where each value starts, and the last ends
    starts: NDArray[np.uint32]  # ``(n + 1,)``: where each value's rows start, and the last's end

    def __len__(self) -> int:
        """How many values."""
        return len(self.ends) - 1

    def value(self, code: int) -> str:
        """The value with this code. Raises IndexCorrupt if it is not UTF-8."""
        try:
            return str(self._bytes(code), "utf-8")
        except UnicodeDecodeError as error:
            raise IndexCorrupt(f"column {self.field} has an unreadable value") from error

    def values(self) -> list[str]:
        """All values, ascending. Raises IndexCorrupt if one is not UTF-8."""
        return [self.value(code) for code in range(len(self))]

    def find(self, value: str) -> int | None:
        """The code of a value; None if no row has it."""
        wanted = value.encode(errors="surrogatepass")  # no dictionary has a value that is not valid Unicode
        place = bisect_left(range(len(self)), wanted, key=self._bytes)
        return place if place < len(self) and self._bytes(place) == wanted else None

    def _bytes(self, code: int) -> bytes:
        return bytes(self.written[int(self.ends[code]) : int(self.ends[code + 1])])


@dataclass(frozen=True)
class Postings:
    """A field of a segment, whole: ``rows[starts[code] : starts[code + 1]]`` have the value ``code``, ascending."""

    dictionary: ValueDictionary
    rows: Rows

    def values(self) -> list[str]:
        """All values, ascending."""
        return self.dictionary.values()

    def value(self, code: int) -> str:
        """The value with this code."""
        return self.dictionary.value(code)

    def counts(self, mask: Mask | None) -> NDArray[np.int64]:
        """How many rows of a mask, shape ``(count,)``, have each value; None for all rows."""
        starts = self.dictionary.starts
        if mask is None:
            return starts[1:].astype(np.int64) - starts[:-1]
        return np.add.reduceat(mask[self.rows], starts[:-1], dtype=np.int64)


class ListPart(FieldPart):
    """A segment's list columns. A segment that was written without them has none."""

    def __init__(self, sections: Sections, count: int) -> None:
        """Take the sections of a segment with that many rows."""
        super().__init__(sections, count, sections.meta(PART).get("fields", []), _NAMES, "list columns")
        self._type = row_type(count)
        self._dictionaries: dict[str, ValueDictionary] = {}

    def open(self, fields: Collection[str], data: Sequence[memoryview]) -> None:
        """Take the bytes of the :meth:`spans` of the same fields. Raises IndexCorrupt."""
        for field, values, offsets in self._pairs(fields, data):
            if field not in self._dictionaries:
                self._dictionaries[field] = self._dictionary(field, values, offsets)

    def row_spans(self, where: RowFilter) -> list[Span]:
        """What :meth:`matching` needs of opened fields: a span per known value."""
        return [
            Span(self._sections, self._names[field][2], first * self._type.itemsize, length)
            for field, allowed in where.items()
            for first, length in self._ranges(field, allowed)
        ]

    def matching(self, where: RowFilter, data: Sequence[memoryview]) -> Mask | None:
        """The rows with an allowed value in every field, from the bytes of :meth:`row_spans`; None for all."""
        mask: Mask | None = None
        pieces = iter(data)
        for field, allowed in where.items():
            if allowed:
                found = np.zeros(self._count, dtype=np.bool_)
                for _ in self._ranges(field, allowed):
                    found[self._checked(field, next(pieces))] = True
                mask = found if mask is None else mask & found
        return mask

    def postings(self, field: str, gather: Gather) -> Postings | None:
        """A field, whole; None if no row has it. Raises IndexCorrupt or IndexUnavailable."""
        if field not in self._names:
            return None
        values, offsets, rows = gather([whole(self._sections, name) for name in self._names[field]])
        self.open([field], [values, offsets])
        return Postings(self._dictionaries[field], self._checked(field, rows))

    def _ranges(self, field: str, allowed: Collection[str]) -> list[tuple[int, int]]:
        """Where the rows of some values lie: the first row's position, and the number of bytes."""
        dictionary = self._dictionaries.get(field)
        if dictionary is None:  # passages without the field have none of the allowed values
            return []
        found = sorted(code for value in set(allowed) if (code := dictionary.find(value)) is not None)
        starts = dictionary.starts
        return [(int(starts[code]), int(starts[code + 1] - starts[code]) * self._type.itemsize) for code in found]

    def _dictionary(self, field: str, values: memoryview, offsets: memoryview) -> ValueDictionary:
        known = np.frombuffer(offsets, dtype="<u4") if len(offsets) % 8 == 0 and len(offsets) >= 16 else None
        if known is None:
            raise IndexCorrupt(f"column {field} has no readable offsets")
        ends, starts = np.split(known, 2)
        rows_bytes = self._sections.size(self._names[field][2])
        if ends[0] or (ends[1:] < ends[:-1]).any() or ends[-1] != len(values):
            raise IndexCorrupt(f"column {field} has invalid offsets of values")
        if starts[0] or (starts[1:] <= starts[:-1]).any() or int(starts[-1]) * self._type.itemsize != rows_bytes:
            raise IndexCorrupt(f"column {field} has invalid offsets of rows")
        return ValueDictionary(field, values, ends, starts)

    def _checked(self, field: str, data: memoryview) -> Rows:
        rows = np.frombuffer(data, dtype=self._type)
        if int(rows.max()) >= self._count:
            raise IndexCorrupt(f"column {field} has a row that the segment does not have")
        return rows


def decode_lists(part: ListPart, count: int, gather: Gather) -> Mapping[str, ListColumn]:
    """All list columns of a segment with that many rows, by row. Raises IndexCorrupt or IndexUnavailable."""
    columns: dict[str, ListColumn] = {}
    for field in part.fields:
        postings = part.postings(field, gather)
        assert postings is not None  # it is one of the part's fields
        values, starts = tuple(postings.dictionary.values()), postings.dictionary.starts.astype(np.int64)
        if any(one >= other for one, other in pairwise(values)):
            raise IndexCorrupt(f"column {field} has its values in disorder")
        rows = postings.rows.astype(np.int64)
        codes = np.repeat(np.arange(len(values), dtype=np.int32), np.diff(starts))
        if ((np.diff(rows) <= 0) & (np.diff(codes) == 0)).any():
            raise IndexCorrupt(f"column {field} has its rows in disorder")
        by_row = np.argsort(rows, kind="stable")
        columns[field] = ListColumn(values, offsets_of(np.bincount(rows, minlength=count)), codes[by_row])
    return columns
