"""Whole segments: encodes, writes, decodes and merges their contents. Searches use the reader instead."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.indexable import RECIPE_BYTES, Indexable
from cicada.corpus.messages import LANGUAGE_KEY
from cicada.errors import CicadaError, IndexCorrupt
from cicada.index import list_columns
from cicada.index.columns import ColumnPart, ValueColumn, columns_of, concat_columns, decode_columns, encode_columns
from cicada.index.embedding import Vectors
from cicada.index.lexical.analysis import analyse
from cicada.index.lexical.codec import TermRows, concat, decode_lexical, encode_lexical, take
from cicada.index.manifest import SegmentEntry, new_segment_key
from cicada.index.ports import ObjectStore, put
from cicada.index.segment_format import Encoded, EncodedSegment, Span, encode_container, whole
from cicada.index.segment_reader import RoundReader, SegmentSections, open_segments
from cicada.index.texts import TextPart, encode_texts
from cicada.index.vectors.encoding import encode_vectors
from cicada.index.vectors.part import EXACT, VectorPart, decode_vectors

DIGEST_BYTES = 16
Digests = NDArray[np.void]  # shape ``(n,)``, 16 bytes each


def id_digest(passage_id: str) -> int:
    """The first 8 bytes of the BLAKE2b of a passage's id, as an unsigned integer."""
    return int.from_bytes(hashlib.blake2b(passage_id.encode(), digest_size=8).digest(), "little")


def content_digest(item: Indexable) -> bytes:
    """A digest of 16 bytes of a passage and the recipe of its vector."""
    written = item.passage.model_dump_json(by_alias=True).encode() + item.recipe()
    return hashlib.blake2b(written, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True)
class SegmentContents:
    """Passages of one collection in document order, and all that is computed from them."""

    collection: str
    lines: tuple[bytes, ...]  # the passages, as JSON
    id_digests: NDArray[np.uint64]
    content_digests: Digests
    recipes: Digests
    vectors: Vectors
    terms: TermRows
    columns: Mapping[str, ValueColumn]
    lists: Mapping[str, list_columns.ListColumn]
    rows: NDArray[np.intp]
    """The row of each passage in the segment it was read from; 0 to n - 1 if it was not read."""

    @classmethod
    def of(cls, collection: str, items: Sequence[Indexable], vectors: Vectors) -> Self:
        """Analyse passages with their unit vectors. Raises CorpusInvalid for more fields than a segment can hold."""
        passages = [item.passage for item in items]
        return cls(
            collection=collection,
            lines=tuple(passage.model_dump_json(by_alias=True).encode() for passage in passages),
            id_digests=np.array([id_digest(passage.id) for passage in passages], dtype=np.uint64),
            content_digests=digests(map(content_digest, items)),
            recipes=digests(item.recipe() for item in items),
            vectors=vectors,
            terms=analyse([item.parts for item in items], [passage.metadata.get(LANGUAGE_KEY) for passage in passages]),
            columns=columns_of(passages),
            lists=list_columns.lists_of(passages),
            rows=np.arange(len(items)),
        )

    @property
    def count(self) -> int:
        """How many passages."""
        return len(self.lines)

    @property
    def enriched(self) -> bool:
        """Whether any passage is enriched: its JSON line has fields after the metadata, where others end."""
        return not all(line.endswith(b"}}") for line in self.lines)

    def select(self, keep: NDArray[np.bool_]) -> Self:
        """The passages that a mask, shape ``(count,)``, keeps."""
        places = np.flatnonzero(keep)
        return replace(
            self,
            lines=tuple(self.lines[place] for place in places.tolist()),
            id_digests=self.id_digests[places],
            content_digests=self.content_digests[places],
            recipes=self.recipes[places],
            vectors=self.vectors[places],
            terms=take(self.terms, places),
            columns={name: column.take(places) for name, column in self.columns.items()},
            lists=list_columns.take_lists(self.lists, places),
            rows=self.rows[places],
        )

    @classmethod
    def concat(cls, parts: Sequence[SegmentContents]) -> Self:
        """The passages of one collection's parts, in order. Raises CorpusInvalid if they have too many fields."""
        lines = tuple(line for part in parts for line in part.lines)
        arrays = ("id_digests", "content_digests", "recipes", "vectors")
        return cls(
            collection=parts[0].collection,
            lines=lines,
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in arrays},
            terms=concat([part.terms for part in parts]),
            columns=concat_columns([(part.columns, part.count) for part in parts]),
            lists=list_columns.concat_lists([(part.lists, part.count) for part in parts]),
            rows=np.arange(len(lines)),
        )


def digests(values: Iterable[bytes]) -> Digests:
    """Digests as an array. Shape ``(n,)``."""
    return np.frombuffer(b"".join(values), dtype=f"V{RECIPE_BYTES}")


ROW_IDS = "rows.ids"  # the section with each row's :func:`id_digest`
_CONTENTS, _RECIPES = "rows.contents", "rows.recipes"


def encode_segment(contents: SegmentContents, embedding_model_id: str) -> EncodedSegment:
    """Write a segment of at least one passage. Equal input gives equal bytes."""
    order, vectors = encode_vectors(contents.vectors)
    rows = {
        ROW_IDS: contents.id_digests[order].astype("<u8").tobytes(),
        _CONTENTS: contents.content_digests[order].tobytes(),
        _RECIPES: contents.recipes[order].tobytes(),
    }
    lists = {list_columns.PART: list_columns.encode_lists(contents.lists, order)} if contents.lists else {}
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
            "rows": Encoded({}, {}, rows),
            **lists,
        },
        enriched=contents.enriched,
    )


def write_segment(store: ObjectStore, contents: SegmentContents, embedding_model_id: str) -> SegmentEntry:
    """Write a segment, all rows live, and return its entry. Raises IndexUnavailable if the store does not respond."""
    encoded = encode_segment(contents, embedding_model_id)
    key = new_segment_key(encoded.sha256)
    put(store, key, encoded.data)
    return SegmentEntry(
        key=key,
        collection=contents.collection,
        count=encoded.count,
        live=encoded.count,
        bytes=len(encoded.data),
        head_bytes=encoded.head_bytes,
        sha256=encoded.sha256,
        tombstones=None,
    )


class SegmentFile:
    """A segment in the store, read as needed, and verified.

    Every method raises IndexCorrupt for damaged or missing data, and IndexUnavailable if the store does not respond.
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
        """Read the head. Raises IndexMismatch if it has a format that this version does not read."""
        opened, _ = open_segments(store, [entry])
        return cls(opened[entry.key], RoundReader(store))

    def id_digests(self) -> NDArray[np.uint64]:
        """By row, see :func:`cicada.index.segment.id_digest`."""
        return np.frombuffer(self._of_rows(ROW_IDS, 8), dtype="<u8").astype(np.uint64, copy=False)

    def content_digests(self) -> Digests:
        """By row, see :func:`cicada.index.segment.content_digest`."""
        return np.frombuffer(self._of_rows(_CONTENTS, DIGEST_BYTES), dtype=f"V{DIGEST_BYTES}")

    def recipes(self) -> Digests:
        """By row, what its vector was made of, see :meth:`cicada.corpus.indexable.Indexable.recipe`."""
        return np.frombuffer(self._of_rows(_RECIPES, DIGEST_BYTES), dtype=f"V{DIGEST_BYTES}")

    def vectors(self, rows: NDArray[np.intp]) -> Vectors:
        """The exact vectors of some rows, shape ``(len(rows), d)``."""
        stride = 2 * self.dimensions
        spans = [Span(self._sections, EXACT, row * stride, stride) for row in rows.tolist()]
        data = b"".join(self._reader.gather(spans))
        return np.frombuffer(data, dtype="<f2").reshape(len(rows), self.dimensions).astype(np.float32)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that its rows can be filtered by."""
        return ColumnPart(self._sections, self.count).fields

    def column(self, field: str) -> ValueColumn | None:
        """A field of every row; None if no row has it."""
        part = ColumnPart(self._sections, self.count)
        part.decode([field], self._reader.gather(part.spans([field])))
        return part.column(field)

    def contents(self) -> SegmentContents:
        """Everything, in document order."""
        lines, order = TextPart(self._sections, self.count).decode(self._reader.gather)
        rows = np.empty(self.count, dtype=np.intp)
        rows[order] = np.arange(self.count)
        columns = decode_columns(ColumnPart(self._sections, self.count), self._reader.gather)
        list_part = list_columns.ListPart(self._sections, self.count)
        lists = list_columns.decode_lists(list_part, self.count, self._reader.gather)
        vectors = VectorPart(self._sections, self.count, self.dimensions)
        return SegmentContents(
            collection=self._sections.header.collection,
            lines=tuple(lines),
            id_digests=self.id_digests()[rows],
            content_digests=self.content_digests()[rows],
            recipes=self.recipes()[rows],
            vectors=decode_vectors(vectors, self._reader.gather)[rows],
            terms=take(decode_lexical(self._sections, self.count, self._reader.gather), rows),
            columns={name: column.take(rows) for name, column in columns.items()},
            lists=list_columns.take_lists(lists, rows),
            rows=rows,
        )

    def verify(self) -> None:
        """Read, check and decode everything."""
        for name in self._sections.names():
            self._whole(name)
        try:
            self.contents()
        except CicadaError:
            raise
        except (ValueError, IndexError, KeyError, TypeError) as error:
            raise IndexCorrupt(f"{self._sections.key} cannot be decoded: {error}") from error

    def _of_rows(self, name: str, width: int) -> memoryview:
        data = self._whole(name)
        if len(data) != width * self.count:
            raise IndexCorrupt(f"{self._sections.key}: section {name} does not fit its segment")
        return data

    def _whole(self, name: str) -> memoryview:
        return self._reader.gather([whole(self._sections, name)])[0]
