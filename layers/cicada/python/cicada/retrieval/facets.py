"""Facets: a field's values among the passages that pass a filter, with their numbers of passages.

Counts are exact, over all live passages of the version that the asker may read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cicada.errors import RetrievalInvalid
from cicada.index.columns import METADATA, SOURCE
from cicada.index.facets import count_values
from cicada.index.list_columns import ENTITIES, ENTITY_CODES
from cicada.index.loaded_index import COLLECTION, LoadedIndex
from cicada.index.reader import IndexReader
from cicada.retrieval.names import NameChecker
from cicada.retrieval.ports import Degradation, Filters
from cicada.retrieval.shards import partial_index, read_index, row_filter
from cicada.rights import Readable

OWN_FIELDS = (COLLECTION, "episode", "speaker", SOURCE, ENTITIES, ENTITY_CODES)
"""Fields with the same name in the index; all others are keys of the passages' metadata, such as ``workflow_id``."""


@dataclass(frozen=True)
class FieldCounts:
    """One field's values."""

    field: str
    unique: int
    """Distinct values, those not listed included."""
    values: tuple[tuple[str, int], ...]
    """Values and the passages that have each, most frequent first; of equal counts, in ascending order."""


@dataclass(frozen=True)
class FacetCounts:
    """The counts of some fields."""

    index_version: str
    total: int
    """Passages that pass the filters, with such a field or without."""
    fields: tuple[FieldCounts, ...]
    """In the order asked."""
    degraded: tuple[Degradation, ...] = ()
    """Why this is incomplete, if it is."""


class ShardFacets:
    """Counts over an :class:`~cicada.index.reader.IndexReader`. Safe for several threads."""

    def __init__(self, reader: IndexReader) -> None:
        self._reader = reader
        self._names = NameChecker(reader)

    def count(self, fields: Sequence[str], filters: Filters, *, readable: Readable, limit: int) -> FacetCounts:
        """Count the values of fields: of :data:`OWN_FIELDS`, or keys of the metadata.

        ``limit`` bounds the values listed a field, 0 for none; ``unique`` counts all. Raises RetrievalInvalid for a
        negative limit, CollectionUnknown, EpisodeUnknown, or IndexFailure.
        """
        if limit < 0:
            raise RetrievalInvalid("limit: must be at least 0")

        unknown = self._names.check(filters, readable)

        def counted(index: LoadedIndex) -> tuple[int, tuple[FieldCounts, ...]]:
            scope = index.scope(row_filter(filters))
            found = [
                (field, count_values(index, scope, field if field in OWN_FIELDS else METADATA + field, limit))
                for field in fields
            ]
            return scope.count, tuple(FieldCounts(field, one.unique, one.values) for field, one in found)

        (total, found), index = read_index(self._reader, readable, counted)
        return FacetCounts(index.manifest.version, total, found, (*unknown, *partial_index(index, "counted")))
