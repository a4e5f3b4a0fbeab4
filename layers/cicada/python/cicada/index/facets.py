"""Counts the values of a field over the rows of a scope, exactly, for columns of both kinds.

Each segment numbers its own values. A count needs a common numbering of all segments, which is made when a field is
first counted and kept with the version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.index.columns import Mask, ValueColumn, ValueNumbering
from cicada.index.list_columns import LIST_FIELDS, Postings
from cicada.index.loaded_index import COLLECTION, LoadedIndex, OpenSegment, RowScope

NUMBERINGS_HELD = 16  # fields, each over some of the segments, whose numbering is kept: about 12 bytes a distinct value


@dataclass(frozen=True)
class ValueCounts:
    """The values of a field."""

    unique: int  # distinct values
    values: tuple[tuple[str, int], ...]  # the most frequent values and their counts; of equal counts, ascending


@dataclass(frozen=True)
class _Single:
    """A field with at most one value a row."""

    column: ValueColumn

    def values(self) -> Sequence[str]:
        return self.column.values

    def value(self, code: int) -> str:
        return self.column.values[code]

    def counts(self, mask: Mask | None) -> NDArray[np.int64]:
        codes = self.column.codes if mask is None else self.column.codes[mask]
        return np.bincount(codes, minlength=len(self.column.values) + 1)[1:].astype(np.int64)


FieldOfSegment = _Single | Postings  # a field in one segment, which numbers its distinct values


def count_values(index: LoadedIndex, scope: RowScope, field: str, limit: int) -> ValueCounts:
    """Count a field's values over the rows of a scope, and return at most ``limit`` of them.

    ``field`` is from :func:`~cicada.index.columns.fields_of` or ``LIST_FIELDS``, or ``collection``. Raises IndexCorrupt
    or IndexUnavailable.
    """
    if field == COLLECTION:
        return _collections(scope, limit)
    load_field(index, scope, field)
    parts = [
        (field_of(index, segment, field), mask) for segment, mask in zip(scope.segments, scope.allowed, strict=True)
    ]
    known = [(part, mask) for part, mask in parts if part is not None]
    if not known:
        return ValueCounts(0, ())
    fields = [part for part, _ in known]
    numbering = _numbering(index, scope, field, fields)
    counts = np.zeros(len(numbering.owner), dtype=np.int64)
    for (part, mask), place in zip(known, numbering.places, strict=True):
        counts[place] += part.counts(mask)  # a segment has each value once
    return ValueCounts(
        int(np.count_nonzero(counts)),
        tuple(
            (fields[numbering.owner[place]].value(int(numbering.code[place])), int(counts[place]))
            for place in most_frequent(counts, limit).tolist()
        ),
    )


def load_field(index: LoadedIndex, scope: RowScope, field: str) -> None:
    """Load a field of all segments of a scope in one round. Raises IndexCorrupt or IndexUnavailable."""
    parts = [(one.sections, one.lists if field in LIST_FIELDS else one.columns) for one in scope.segments]
    index.rounds.load_at_once([(sections, name) for sections, part in parts for name in part.body_names([field])])


def field_of(index: LoadedIndex, segment: OpenSegment, field: str) -> FieldOfSegment | None:
    """A field of a segment that is in memory; None if no row has it. Raises IndexCorrupt."""
    if field in LIST_FIELDS:
        return segment.lists.postings(field, index.rounds.gather)
    segment.columns.decode([field], index.rounds.gather(segment.columns.spans([field])))
    column = segment.columns.column(field)
    return None if column is None else _Single(column)


def most_frequent(counts: NDArray[np.int64], limit: int) -> NDArray[np.intp]:
    """The positions of the largest counts above 0, the largest first; of equals, the lower position first."""
    least = 1
    if 0 < limit < len(counts):
        least = max(1, int(np.partition(counts, -limit)[-limit]))
    candidates = np.flatnonzero(counts >= least)
    return candidates[np.argsort(-counts[candidates], kind="stable")][:limit]


def _collections(scope: RowScope, limit: int) -> ValueCounts:
    counts: Counter[str] = Counter()
    for segment, mask in zip(scope.segments, scope.allowed, strict=True):
        counts[segment.entry.collection] += segment.passing(mask)
    found = sorted(((name, count) for name, count in counts.items() if count), key=lambda item: (-item[1], item[0]))
    return ValueCounts(len(found), tuple(found[:limit]))


def _numbering(index: LoadedIndex, scope: RowScope, field: str, fields: Sequence[FieldOfSegment]) -> ValueNumbering:
    key = (field, tuple(segment.entry.key for segment in scope.segments))
    found = index.numberings.get(key)
    if found is None:
        found = ValueNumbering.of([part.values() for part in fields])
        if len(index.numberings) >= NUMBERINGS_HELD:
            index.numberings.clear()
        index.numberings[key] = found
    return found
