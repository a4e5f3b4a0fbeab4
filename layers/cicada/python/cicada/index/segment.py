"""Writing a segment, and reading one whole: what the writer, compaction and checks need. Searches use the reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cicada.errors import CicadaError, IndexCorrupt
from cicada.index.columns import Column, ColumnPart, decode_columns, encode_columns
from cicada.index.container import ENRICHED_FORMAT_VERSION, FORMAT_VERSION, EncodedSegment, encode_container
from cicada.index.contents import DIGEST_BYTES, Digests, SegmentContents
from cicada.index.embedding import Vectors
from cicada.index.lexical import decode_lexical, encode_lexical, take
from cicada.index.list_part import ListPart, decode_lists
from cicada.index.lists import PART as LISTS
from cicada.index.lists import encode_lists, take_lists
from cicada.index.manifest import SegmentEntry
from cicada.index.rounds import RoundReader, SegmentSections, open_segments
from cicada.index.sections import Encoded, Span
from cicada.index.store import ObjectStore
from cicada.index.texts import TextPart, encode_texts
from cicada.index.vectors import VectorPart, decode_vectors, encode_vectors
from cicada.index.vectors.layout import EXACT

_IDS, _CONTENTS, _RECIPES = "rows.ids", "rows.contents", "rows.recipes"


def encode_segment(contents: SegmentContents, embedding_model_id: str) -> EncodedSegment:
    """Write a segment of at least one passage. Equal input gives equal bytes."""
    order, vectors = encode_vectors(contents.vectors)
    rows = Encoded(
        {},
        {},
        {
            _IDS: contents.id_digests[order].astype("<u8").tobytes(),
            _CONTENTS: contents.content_digests[order].tobytes(),
            _RECIPES: contents.recipes[order].tobytes(),
        },
    )
    lists = {LISTS: encode_lists(contents.lists, order)} if contents.lists else {}
    return encode_container(
        collection=contents.collection,
        embedding_model_id=embedding_model_id,
        dimensions=contents.vectors.shape[1],
        count=contents.count,
        parts={
            "vectors": vectors,
            "lexical": encode_lexical(contents.terms, order),
            "columns": encode_columns(contents.columns, order),
            "passages": encode_texts(contents.lines, order),
            "rows": rows,
            **lists,
        },
        version=ENRICHED_FORMAT_VERSION if contents.enriched else FORMAT_VERSION,
    )


class SegmentFile:
    """A segment in the store, read as needed; everything that comes out of it is verified.

    Every method raises ``IndexCorrupt`` for what is damaged or missing, and ``IndexUnavailable`` when the store does
    not respond.
    """

    def __init__(self, sections: SegmentSections, reader: RoundReader) -> None:
        """Take a segment's head; :meth:`open` reads it."""
        self._sections = sections
        self._reader = reader
        self.count = sections.header.count
        self.dimensions = sections.header.dimensions
        self.embedding_model_id = sections.header.embedding_model_id

    @classmethod
    def open(cls, store: ObjectStore, entry: SegmentEntry) -> Self:
        """Read the head.

        Raises:
            IndexMismatch: it has a format that this version does not read.
        """
        (sections,), _ = open_segments(store, [entry])
        return cls(sections, RoundReader(store))

    def id_digests(self) -> NDArray[np.uint64]:
        """By row, see :func:`cicada.index.contents.id_digest`."""
        return np.frombuffer(self._of_rows(_IDS, 8), dtype="<u8").astype(np.uint64, copy=False)

    def content_digests(self) -> Digests:
        """By row, see :func:`cicada.index.contents.content_digest`."""
        return np.frombuffer(self._of_rows(_CONTENTS, DIGEST_BYTES), dtype=f"V{DIGEST_BYTES}")

    def recipes(self) -> Digests:
        """By row, what its vector was made of, see :meth:`cicada.corpus.indexable.Indexable.recipe`."""
        return np.frombuffer(self._of_rows(_RECIPES, DIGEST_BYTES), dtype=f"V{DIGEST_BYTES}")

    def vectors(self, rows: NDArray[np.intp]) -> Vectors:
        """The vectors of some rows, as exactly as they were stored. Shape ``(len(rows), d)``."""
        stride = 2 * self.dimensions
        spans = [Span(self._sections, EXACT, row * stride, stride) for row in rows.tolist()]
        data = b"".join(self._reader.gather(spans))
        return np.frombuffer(data, dtype="<f2").reshape(len(rows), self.dimensions).astype(np.float32)

    @property
    def fields(self) -> tuple[str, ...]:
        """What its rows can be filtered by."""
        return ColumnPart(self._sections, self.count).fields

    def column(self, field: str) -> Column | None:
        """A field of every row; None if no row has it."""
        part = ColumnPart(self._sections, self.count)
        part.decode([field], self._reader.gather(part.spans([field])))
        return part.column(field)

    def contents(self) -> SegmentContents:
        """Everything, in document order."""
        lines, order = self._text_part().decode(self._reader.gather)
        rows = np.empty(self.count, dtype=np.intp)
        rows[order] = np.arange(self.count)
        columns = decode_columns(ColumnPart(self._sections, self.count), self._reader.gather)
        lists = decode_lists(ListPart(self._sections, self.count), self.count, self._reader.gather)
        return SegmentContents(
            collection=self._sections.header.collection,
            lines=tuple(lines),
            id_digests=self.id_digests()[rows],
            content_digests=self.content_digests()[rows],
            recipes=self.recipes()[rows],
            vectors=decode_vectors(self._vector_part(), self._reader.gather)[rows],
            terms=take(decode_lexical(self._sections, self.count, self._reader.gather), rows),
            columns={name: column.take(rows) for name, column in columns.items()},
            lists=take_lists(lists, rows),
            rows=rows,
        )

    def verify(self) -> None:
        """Read and check every byte, and that all of it can be understood."""
        for name in self._sections.names():
            self._whole(name)
        try:
            self.contents()
        except CicadaError:
            raise
        except (ValueError, IndexError, KeyError, TypeError) as error:
            raise IndexCorrupt(f"{self._sections.key} cannot be understood: {error}") from error

    def _vector_part(self) -> VectorPart:
        return VectorPart(self._sections, self.count, self.dimensions)

    def _text_part(self) -> TextPart:
        return TextPart(self._sections, self.count)

    def _of_rows(self, name: str, width: int) -> memoryview:
        data = self._whole(name)
        if len(data) != width * self.count:
            raise IndexCorrupt(f"{self._sections.key}: section {name} does not fit its segment")
        return data

    def _whole(self, name: str) -> memoryview:
        spans: Sequence[Span] = [Span(self._sections, name, 0, self._sections.size(name))]
        return self._reader.gather(spans)[0]
