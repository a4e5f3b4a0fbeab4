"""Columns: the single-valued fields that searches filter by, dictionary-encoded, a code a row.

Sections of the part ``columns``, for the field numbered ``i`` in its meta's ``fields``: ``columns.<i>.values``, the
distinct values as a JSON array, and ``columns.<i>.codes``, for each row an unsigned integer of 1, 2 or 4 bytes: 0 where
the passage lacks the field, else 1 more than the value's place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.passages import Passage
from cicada.errors import CorpusInvalid, IndexCorrupt
from cicada.index.segment_format import Encoded, Gather, Sections, Span, from_json, to_json

MAX_FIELDS = 64
"""Fields that the passages of one segment may be filtered by."""
METADATA = "metadata."
"""Begins the field of a metadata key."""
SOURCE = "source"
"""What a passage's locator says, or else its metadata."""

RowFilter = Mapping[str, Collection[str]]
"""The values that a field may have. A field that is not named, or has no value to choose from, allows all."""
Mask = NDArray[np.bool_]
"""Shape ``(count,)``: which rows."""


@dataclass(frozen=True)
class Column:
    """A field of every row: absent where the code is 0, else ``values[code - 1]``."""

    values: tuple[str, ...]
    codes: NDArray[np.unsignedinteger]

    def take(self, rows: NDArray[np.intp]) -> Column:
        """Some rows, with the values that they have."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        values = tuple(self.values[code - 1] for code in used.tolist() if code)
        return Column(values, _narrow(codes if 0 in used else codes + 1, len(values)))


def columns_of(passages: Sequence[Passage]) -> dict[str, Column]:
    """The columns of passages, a code each.

    Raises:
        CorpusInvalid: they have more fields than a segment can hold.
    """
    fields = [fields_of(passage) for passage in passages]
    names = dict.fromkeys(name for row in fields for name in row)
    _refuse_too_many(len(names))
    return {name: _column([row.get(name) for row in fields]) for name in names}


def fields_of(passage: Passage) -> dict[str, str]:
    """What a passage can be filtered by, beside its collection."""
    metadata = {METADATA + key: value for key, value in passage.metadata.items()}
    source = {SOURCE: passage.metadata[SOURCE]} if SOURCE in passage.metadata else {}
    return {**metadata, **source, **passage.locator.fields()}


def concat_columns(parts: Sequence[tuple[Mapping[str, Column], int]]) -> dict[str, Column]:
    """One after another, each with its number of rows; a field that a part lacks is absent there.

    Raises:
        CorpusInvalid: together they have more fields than a segment can hold.
    """
    names = dict.fromkeys(name for columns, _ in parts for name in columns)
    _refuse_too_many(len(names))
    return {name: _concat([(columns.get(name), count) for columns, count in parts]) for name in names}


def encode_columns(columns: Mapping[str, Column], order: NDArray[np.intp]) -> Encoded:
    """Write columns with their rows in that order."""
    body: dict[str, bytes] = {}
    for number, column in enumerate(columns.values()):
        body[f"columns.{number}.values"] = to_json(column.values)
        codes = _narrow(column.codes[order], len(column.values))
        body[f"columns.{number}.codes"] = codes.astype(codes.dtype.newbyteorder("<")).tobytes()
    return Encoded({"fields": list(columns)}, {}, body)


class ColumnPart:
    """A segment's columns, read as they are needed."""

    def __init__(self, sections: Sections, count: int) -> None:
        """Take the sections of a segment with that many rows."""
        self._sections = sections
        self._count = count
        fields = sections.meta("columns").get("fields", ())
        if not isinstance(fields, list) or not all(isinstance(field, str) for field in fields):
            raise IndexCorrupt("a segment's columns are not named")
        self._number = {field: number for number, field in enumerate(fields)}
        self._decoded: dict[str, Column] = {}

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that there are."""
        return tuple(self._number)

    def body_names(self, fields: Collection[str] | None = None) -> tuple[str, ...]:
        """The sections to hold in memory: of some fields, or of all."""
        chosen = [number for field, number in self._number.items() if fields is None or field in fields]
        return tuple(name for number in chosen for name in _names(number))

    def spans(self, fields: Collection[str]) -> list[Span]:
        """What :meth:`decode` needs of these fields; two spans for each that there is."""
        return [
            Span(self._sections, name, 0, self._sections.size(name))
            for field in fields
            if field in self._number
            for name in _names(self._number[field])
        ]

    def decode(self, fields: Collection[str], data: Sequence[memoryview]) -> None:
        """Take what the :meth:`spans` of the same fields hold.

        Raises:
            IndexCorrupt: it does not fit the segment.
        """
        known = [field for field in fields if field in self._number]
        for field, values, codes in zip(known, data[::2], data[1::2], strict=True):
            if field not in self._decoded:
                self._decoded[field] = self._decode(field, values, codes)

    def column(self, field: str) -> Column | None:
        """A decoded column; None if no row has the field."""
        return self._decoded.get(field)

    def matching(self, where: RowFilter) -> Mask | None:
        """The rows that pass, of decoded columns; None for all."""
        mask: Mask | None = None
        for field, allowed in where.items():
            if allowed:
                found = self._matching(field, frozenset(allowed))
                mask = found if mask is None else mask & found
        return mask

    def _matching(self, field: str, allowed: frozenset[str]) -> Mask:
        column = self._decoded.get(field)
        if column is None:  # passages without the field have none of the allowed values
            return np.zeros(self._count, dtype=np.bool_)
        passing = np.zeros(len(column.values) + 1, dtype=np.bool_)
        passing[1:] = [value in allowed for value in column.values]
        matching: Mask = passing[column.codes]
        return matching

    def _decode(self, field: str, values: memoryview, codes: memoryview) -> Column:
        found = from_json(values)
        if not isinstance(found, list) or not all(isinstance(value, str) for value in found):
            raise IndexCorrupt(f"column {field} has no readable values")
        width = _width(len(found))
        if len(codes) != width * self._count:
            raise IndexCorrupt(f"column {field} does not fit its segment")
        decoded = np.frombuffer(codes, dtype=f"<u{width}")
        if int(decoded.max()) > len(found):
            raise IndexCorrupt(f"column {field} has a value that it does not name")
        return Column(tuple(found), decoded)


def decode_columns(part: ColumnPart, gather: Gather) -> dict[str, Column]:
    """All columns of a segment."""
    part.decode(part.fields, gather(part.spans(part.fields)))
    return {field: column for field in part.fields if (column := part.column(field)) is not None}


def _names(number: int) -> tuple[str, str]:
    return f"columns.{number}.values", f"columns.{number}.codes"


def _column(values: Sequence[str | None]) -> Column:
    code_of: dict[str, int] = {}
    codes = [0 if value is None else code_of.setdefault(value, len(code_of) + 1) for value in values]
    return Column(tuple(code_of), _narrow(np.array(codes, dtype=np.int64), len(code_of)))


def _concat(parts: Sequence[tuple[Column | None, int]]) -> Column:
    code_of: dict[str, int] = {}
    pieces: list[NDArray[np.int64]] = []
    for column, count in parts:
        if column is None:
            pieces.append(np.zeros(count, dtype=np.int64))
        else:
            table = np.array([0, *(code_of.setdefault(value, len(code_of) + 1) for value in column.values)])
            pieces.append(table[column.codes])
    return Column(tuple(code_of), _narrow(np.concatenate(pieces), len(code_of)))


def _narrow(codes: NDArray[np.integer], distinct: int) -> NDArray[np.unsignedinteger]:
    return codes.astype(f"u{_width(distinct)}")


def _width(distinct: int) -> int:
    """Bytes of a code that tells so many values and none apart."""
    return 1 if distinct < 2**8 else 2 if distinct < 2**16 else 4


def _refuse_too_many(fields: int) -> None:
    if fields > MAX_FIELDS:
        raise CorpusInvalid(f"passages have {fields} fields to filter by; a collection can have {MAX_FIELDS}")


@dataclass(frozen=True)
class Numbering:
    """The distinct values of several segments, ascending, about 12 bytes each: the values themselves stay there."""

    owner: NDArray[np.int32]
    """Shape ``(n,)``: a segment that has the value, by its place among those that were given."""
    code: NDArray[np.int32]
    """Shape ``(n,)``: its number there."""
    places: tuple[NDArray[np.int32], ...]
    """By segment: the number here of each of its values."""

    @classmethod
    def of(cls, segments: Sequence[Sequence[str]]) -> Numbering:
        """Number values, given by segment, there each once."""
        distinct = sorted({value for values in segments for value in values})
        place_of = {value: place for place, value in enumerate(distinct)}
        owner, code = np.zeros(len(distinct), dtype=np.int32), np.zeros(len(distinct), dtype=np.int32)
        places = []
        for number, values in enumerate(segments):
            place = np.fromiter((place_of[value] for value in values), dtype=np.int32, count=len(values))
            owner[place], code[place] = number, np.arange(len(values))
            places.append(place)
        return cls(owner, code, tuple(places))
