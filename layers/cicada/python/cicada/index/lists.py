"""List columns: fields of which a passage can have several values, such as the entities that it names.

Sections of the part ``lists``, for the field numbered ``i`` in its meta's ``fields``:

- ``lists.<i>.values``: the distinct values in UTF-8, in ascending order, one after another;
- ``lists.<i>.offsets``, uint32: first where each value begins there and the last ends, then where each value's rows
  begin in the next section and the last's end;
- ``lists.<i>.rows``: the rows that have each value, in ascending order, of 2 bytes in a segment of up to 65,536 rows,
  else of 4.

By value rather than by row: a filter finds its few values by binary search and reads their rows alone, and a count
under any filter is one pass over all rows. A segment whose passages have no such values has no such part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.passages import Passage
from cicada.errors import CorpusInvalid
from cicada.index.sections import Encoded

PART = "lists"
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

    values: tuple[str, ...]
    """Ascending; a row has each."""
    starts: NDArray[np.int64]
    """Shape ``(count + 1,)``."""
    codes: NDArray[np.int32]
    """Ascending in each row."""

    def take(self, rows: NDArray[np.intp]) -> ListColumn:
        """Some rows, in that order, with the values that they have."""
        lengths = np.diff(self.starts)[rows]
        starts = _starts(lengths)
        places = np.repeat(self.starts[:-1][rows] - starts[:-1], lengths) + np.arange(starts[-1])
        used, codes = np.unique(self.codes[places], return_inverse=True)
        values = tuple(self.values[code] for code in used.tolist())
        return ListColumn(values, starts, codes.astype(np.int32))

    @classmethod
    def from_postings(cls, values: tuple[str, ...], starts: NDArray[np.int64], rows: Rows, count: int) -> ListColumn:
        """Of ``count`` rows, where ``rows[starts[code] : starts[code + 1]]`` have ``values[code]``."""
        codes = np.repeat(np.arange(len(values), dtype=np.int32), np.diff(starts))
        order = np.argsort(rows, kind="stable")
        return cls(values, _starts(np.bincount(rows, minlength=count)), codes[order])


def lists_of(passages: Sequence[Passage]) -> dict[str, ListColumn]:
    """The list columns of passages; a field that none of them has is left out."""
    columns = {name: _column([values_of(passage) for passage in passages]) for name, values_of in LIST_FIELDS.items()}
    return {name: column for name, column in columns.items() if column.values}


def concat_lists(parts: Sequence[tuple[Mapping[str, ListColumn], int]]) -> dict[str, ListColumn]:
    """One after another, each with its number of rows; a field that a part lacks is absent there."""
    names = dict.fromkeys(name for columns, _ in parts for name in columns)
    return {name: _concat([(columns.get(name), count) for columns, count in parts]) for name in names}


def take_lists(columns: Mapping[str, ListColumn], rows: NDArray[np.intp]) -> dict[str, ListColumn]:
    """Some rows of all columns; a field that none of them has is left out."""
    taken = {name: column.take(rows) for name, column in columns.items()}
    return {name: column for name, column in taken.items() if column.values}


def encode_lists(columns: Mapping[str, ListColumn], order: NDArray[np.intp]) -> Encoded:
    """Write columns with their rows in that order.

    Raises:
        CorpusInvalid: they are more than a segment can hold.
    """
    body: dict[str, bytes] = {}
    for number, column in enumerate(columns.values()):
        ordered = column.take(order)
        rows = np.repeat(np.arange(len(order)), np.diff(ordered.starts))
        written = [value.encode() for value in ordered.values]
        ends = _starts(np.array([len(value) for value in written], dtype=np.int64))
        row_ends = _starts(np.bincount(ordered.codes, minlength=len(written)))
        if max(ends[-1], row_ends[-1]) >= 2**32:
            raise CorpusInvalid("the entities of a segment are more than 4 GiB")
        values, offsets, places = section_names(number)
        body[values] = b"".join(written)
        body[offsets] = np.concatenate([ends, row_ends]).astype("<u4").tobytes()
        by_value = np.argsort(ordered.codes, kind="stable")
        body[places] = rows[by_value].astype(row_type(len(order))).tobytes()
    return Encoded({"fields": list(columns)}, {}, body)


def section_names(number: int) -> tuple[str, str, str]:
    """The sections of the field of that number: values, offsets, rows."""
    return f"{PART}.{number}.values", f"{PART}.{number}.offsets", f"{PART}.{number}.rows"


def row_type(count: int) -> np.dtype[np.unsignedinteger]:
    """How the rows of a segment of ``count`` are written."""
    return np.dtype("<u2") if count <= 2**16 else np.dtype("<u4")


def _column(rows: Sequence[Sequence[str]]) -> ListColumn:
    values = sorted({value for row in rows for value in row})
    code_of = {value: code for code, value in enumerate(values)}
    coded = [sorted({code_of[value] for value in row}) for row in rows]
    codes = np.array([code for row in coded for code in row], dtype=np.int32)
    return ListColumn(tuple(values), _starts(np.array([len(row) for row in coded], dtype=np.int64)), codes)


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
    return ListColumn(tuple(values), _starts(np.concatenate(lengths)), np.concatenate(codes))


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
