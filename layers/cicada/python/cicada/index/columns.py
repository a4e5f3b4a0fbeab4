"""Columns: the single-valued fields that searches filter by, dictionary-encoded with a code per row.

Sections of the part ``columns``, for the field numbered ``i`` in its meta's ``fields``: ``columns.<i>.values``, the
distinct values as a JSON array, and ``columns.<i>.codes``, an unsigned integer of 1, 2 or 4 bytes per row: 0 if the
passage lacks the field, else the value's index plus 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.documents import SECTION_SEPARATOR
from cicada.corpus.passages import Passage
from cicada.errors import CorpusInvalid, IndexCorrupt
from cicada.index.segment_format import Encoded, Gather, Sections, Span, from_json, to_json, whole

MAX_FIELDS = 64  # filter fields of one segment
METADATA = "metadata."  # the prefix of fields for metadata keys
EPISODE = "episode"
SOURCE = "source"  # from a passage's locator, or else its metadata
SECTION_PATH = "section"  # the headings above a passage of a document: a filter by it also allows what stands below

_NAMES = ("columns.{}.values", "columns.{}.codes")

RowFilter = Mapping[str, Collection[str]]  # allowed values by field; an empty collection allows all
Mask = NDArray[np.bool_]  # shape ``(count,)``: which rows


@dataclass(frozen=True)
class ValueColumn:
    """A field of every row: absent where the code is 0, else ``values[code - 1]``."""

    values: tuple[str, ...]
    codes: NDArray[np.unsignedinteger]

    def take(self, rows: NDArray[np.intp]) -> ValueColumn:
        """The column of some rows."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        values = tuple(self.values[code - 1] for code in used.tolist() if code)
        return ValueColumn(values, _narrow(codes if 0 in used else codes + 1, len(values)))


def headings_above(path: str) -> Iterator[str]:
    """A section's path, and those of the sections that it stands in, outermost first."""
    return accumulate(path.split(SECTION_SEPARATOR), lambda above, heading: f"{above}{SECTION_SEPARATOR}{heading}")


def columns_of(passages: Sequence[Passage]) -> dict[str, ValueColumn]:
    """The columns of passages. Raises CorpusInvalid for more fields than a segment can hold."""
    fields = [fields_of(passage) for passage in passages]
    names = dict.fromkeys(name for row in fields for name in row)
    _refuse_too_many(len(names))
    return {name: _column([row.get(name) for row in fields]) for name in names}


def fields_of(passage: Passage) -> dict[str, str]:
    """A passage's filter fields, without its collection."""
    metadata = {METADATA + key: value for key, value in passage.metadata.items()}
    source = {SOURCE: passage.metadata[SOURCE]} if SOURCE in passage.metadata else {}
    return {**metadata, **source, **passage.locator.fields()}


def concat_columns(parts: Sequence[tuple[Mapping[str, ValueColumn], int]]) -> dict[str, ValueColumn]:
    """Concatenate the columns of parts, each with its number of rows; a part may lack fields.

    Raises CorpusInvalid for more fields than a segment can hold.
    """
    names = dict.fromkeys(name for columns, _ in parts for name in columns)
    _refuse_too_many(len(names))
    return {name: _concat([(columns.get(name), count) for columns, count in parts]) for name in names}


def encode_columns(columns: Mapping[str, ValueColumn], order: NDArray[np.intp]) -> Encoded:
    """Encode columns with their rows in this order."""
    body: dict[str, bytes] = {}
    for number, column in enumerate(columns.values()):
        values, codes = (name.format(number) for name in _NAMES)
        body[values] = to_json(column.values)
        ordered = _narrow(column.codes[order], len(column.values))
        body[codes] = ordered.astype(ordered.dtype.newbyteorder("<")).tobytes()
    return Encoded({"fields": list(columns)}, {}, body)


class FieldPart:
    """The fields of a part with several sections per field: the base of :class:`ColumnPart` and ``ListPart``."""

    def __init__(self, sections: Sections, count: int, fields: object, names: Sequence[str], kind: str) -> None:
        """Take the segment's sections and row count, the part's fields, and the patterns of section names."""
        if not isinstance(fields, list) or not all(isinstance(field, str) for field in fields):
            raise IndexCorrupt(f"a segment's {kind} have no names")
        self._sections = sections
        self._count = count
        self._names = {field: tuple(name.format(number) for name in names) for number, field in enumerate(fields)}

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the segment has."""
        return tuple(self._names)

    def body_names(self, fields: Collection[str] | None = None) -> tuple[str, ...]:
        """The body sections of some fields, or of all."""
        return tuple(
            name for field, names in self._names.items() if fields is None or field in fields for name in names
        )

    def spans(self, fields: Collection[str]) -> list[Span]:
        """The first two sections of each of these fields that the segment has: what decoding needs."""
        return [
            whole(self._sections, name) for field in fields if field in self._names for name in self._names[field][:2]
        ]

    def _pairs(
        self, fields: Collection[str], data: Sequence[memoryview]
    ) -> Iterator[tuple[str, memoryview, memoryview]]:
        """The fields of :meth:`spans` with the bytes of their sections."""
        known = [field for field in fields if field in self._names]
        return zip(known, data[::2], data[1::2], strict=True)


class ColumnPart(FieldPart):
    """A segment's columns, read as they are needed."""

    def __init__(self, sections: Sections, count: int) -> None:
        """Take the sections of a segment with that many rows."""
        super().__init__(sections, count, sections.meta("columns").get("fields", ()), _NAMES, "columns")
        self._decoded: dict[str, ValueColumn] = {}

    def decode(self, fields: Collection[str], data: Sequence[memoryview]) -> None:
        """Take the bytes of the :meth:`spans` of the same fields. Raises IndexCorrupt."""
        for field, values, codes in self._pairs(fields, data):
            if field not in self._decoded:
                self._decoded[field] = self._decode(field, values, codes)

    def column(self, field: str) -> ValueColumn | None:
        """A decoded column; None if no row has the field."""
        return self._decoded.get(field)

    def matching(self, where: RowFilter) -> Mask | None:
        """A mask of the rows that pass; None for all. The filter's columns must be decoded."""
        mask: Mask | None = None
        for field, allowed in where.items():
            if allowed:
                found = self._matching(field, frozenset(allowed))
                mask = found if mask is None else mask & found
        return mask

    def _matching(self, field: str, allowed: frozenset[str]) -> Mask:
        column = self._decoded.get(field)
        if column is None:  # no passage has the field
            return np.zeros(self._count, dtype=np.bool_)
        passing = np.zeros(len(column.values) + 1, dtype=np.bool_)
        if field == SECTION_PATH:
            passing[1:] = [not allowed.isdisjoint(headings_above(value)) for value in column.values]
        else:
            passing[1:] = [value in allowed for value in column.values]
        matching: Mask = passing[column.codes]
        return matching

    def _decode(self, field: str, values: memoryview, codes: memoryview) -> ValueColumn:
        found = from_json(values)
        if not isinstance(found, list) or not all(isinstance(value, str) for value in found):
            raise IndexCorrupt(f"column {field} has no readable values")
        width = _width(len(found))
        if len(codes) != width * self._count:
            raise IndexCorrupt(f"column {field} does not fit its segment")
        decoded = np.frombuffer(codes, dtype=f"<u{width}")
        if int(decoded.max()) > len(found):
            raise IndexCorrupt(f"column {field} has an unknown value code")
        return ValueColumn(tuple(found), decoded)


def decode_columns(part: ColumnPart, gather: Gather) -> dict[str, ValueColumn]:
    """All columns of a segment."""
    part.decode(part.fields, gather(part.spans(part.fields)))
    return {field: column for field in part.fields if (column := part.column(field)) is not None}


def _column(values: Sequence[str | None]) -> ValueColumn:
    code_of: dict[str, int] = {}
    codes = [0 if value is None else code_of.setdefault(value, len(code_of) + 1) for value in values]
    return ValueColumn(tuple(code_of), _narrow(np.array(codes, dtype=np.int64), len(code_of)))


def _concat(parts: Sequence[tuple[ValueColumn | None, int]]) -> ValueColumn:
    code_of: dict[str, int] = {}
    pieces: list[NDArray[np.int64]] = []
    for column, count in parts:
        if column is None:
            pieces.append(np.zeros(count, dtype=np.int64))
        else:
            table = np.array([0, *(code_of.setdefault(value, len(code_of) + 1) for value in column.values)])
            pieces.append(table[column.codes])
    return ValueColumn(tuple(code_of), _narrow(np.concatenate(pieces), len(code_of)))


def _narrow(codes: NDArray[np.integer], distinct: int) -> NDArray[np.unsignedinteger]:
    return codes.astype(f"u{_width(distinct)}")


def _width(distinct: int) -> int:
    """Bytes of a code for this many values and 0."""
    return 1 if distinct < 2**8 else 2 if distinct < 2**16 else 4


def _refuse_too_many(fields: int) -> None:
    if fields > MAX_FIELDS:
        raise CorpusInvalid(f"passages have {fields} filter fields; a collection can have {MAX_FIELDS}")


@dataclass(frozen=True)
class ValueNumbering:
    """A common numbering of the distinct values of several segments, ascending: about 12 bytes a value."""

    owner: NDArray[np.int32]  # shape ``(n,)``: a segment that has the value, by its position
    code: NDArray[np.int32]  # shape ``(n,)``: its number there
    places: tuple[NDArray[np.int32], ...]  # by segment: the common number of each of its values

    @classmethod
    def of(cls, segments: Sequence[Sequence[str]]) -> ValueNumbering:
        """Number the values of segments, which are distinct in each."""
        distinct = sorted({value for values in segments for value in values})
        place_of = {value: place for place, value in enumerate(distinct)}
        owner, code = np.zeros(len(distinct), dtype=np.int32), np.zeros(len(distinct), dtype=np.int32)
        places = []
        for number, values in enumerate(segments):
            place = np.fromiter((place_of[value] for value in values), dtype=np.int32, count=len(values))
            owner[place], code[place] = number, np.arange(len(values))
            places.append(place)
        return cls(owner, code, tuple(places))
