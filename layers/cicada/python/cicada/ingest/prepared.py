"""Prepared documents in the bucket: passages with their vectors, under keys made of all their inputs.

One object a document: a *head* with the layout and checksums, the *rows* (for each passage the digests of its id and
content, and its size), and *blocks* of passages with their vectors. So a commit reads the rows of all documents, but
only the blocks that hold something new.

Layout, integers little-endian: :data:`MAGIC`, the head's length as uint32, its SHA-256, the head as JSON; the rows, as
uint64 ids, 16 bytes of content, uint32 sizes; the blocks, each the length of its text as uint32, the text (JSON lines,
zlib), the vectors as float16, the precision of the index.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cicada.corpus.declared.declaration import SECTION
from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.passages import CorpusModel, Passage
from cicada.errors import IndexCorrupt
from cicada.index.collection_snapshot import ContentDigests, IdDigests, as_integers
from cicada.index.columns import fields_of
from cicada.index.embedding import Vectors
from cicada.index.ports import ObjectMissing, ObjectStore
from cicada.index.segment import content_digest, digests, id_digest
from cicada.ingest.contracts import PREPARED, Recipe, SourceItem, spans

MAGIC = b"CICADAP1"
PREPARING = 4
"""Part of every key. Raise it when this program cuts or enriches the same document differently: documents are then
prepared again."""
BLOCK_PASSAGES = 128
BLOCK_BYTES = 4 * 2**20  # of a block's text, at which the block is closed
MAX_BLOCK_BYTES = 64 * 2**20  # a larger unpacked block is not one of ours
FIRST_BYTES = 32 * 1024  # of the first read: head and rows of a document of 1,000 passages

HalfVectors = NDArray[np.float16]  # shape ``(n, dimensions)``

_FRAME = struct.Struct("<8sI32s")
_LENGTH = struct.Struct("<I")
_ROW_BYTES = 8 + 16 + 4


class _Block(CorpusModel):
    passages: int = Field(ge=1)
    bytes: int = Field(ge=1)
    sha256: str


class _Head(CorpusModel):
    source: str
    digest: str
    embedding_model_id: str
    dimensions: int = Field(ge=1)
    passages: int = Field(ge=1)
    fields: tuple[str, ...]
    notes: tuple[str, ...]
    complete: bool
    rows_sha256: str
    blocks: tuple[_Block, ...]
    sections: dict[str, int] = Field(default_factory=dict, exclude_if=lambda value: not value)


@dataclass(frozen=True)
class PreparedText:
    """Some of a document's passages, and a vector each."""

    items: Sequence[Indexable]
    vectors: Vectors


def prepared_key(item: SourceItem, digest: str, recipe: Recipe) -> str:
    """The key of a prepared document, made of all its inputs; ``digest``: SHA-256 of the document's bytes."""
    metadata = sorted(item.metadata.items())
    made_of = [PREPARING, item.collection, item.source, item.title, metadata, digest, recipe.model_dump(mode="json")]
    name = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()
    return f"{PREPARED}{item.collection}/{name}"


def encode_prepared(
    source: str,
    digest: str,
    items: Sequence[Indexable],
    vectors: HalfVectors,
    model_id: str,
    *,
    notes: Sequence[str] = (),
    complete: bool = True,
    divided: bool = False,
) -> bytes:
    """Write a prepared document of at least one passage.

    ``digest``: SHA-256 of its bytes; ``vectors``: a rounded unit vector a passage; ``complete``: whether another try
    would add nothing; ``divided``: whether its passages have declared sections.
    """
    lines = [
        json.dumps(
            [item.passage.model_dump(mode="json", by_alias=True), [[part.text, part.weight] for part in item.parts]]
        ).encode()
        for item in items
    ]
    ids = np.array([id_digest(item.passage.id) for item in items], dtype="<u8")
    sizes = np.array([len(line) for line in lines], dtype="<u4")
    rows = ids.tobytes() + digests(map(content_digest, items)).tobytes() + sizes.tobytes()
    places = list(spans(sizes.tolist(), BLOCK_PASSAGES, BLOCK_BYTES))
    blocks = [_block(lines[start:end], vectors[start:end]) for start, end in places]
    head = _Head(
        source=source,
        digest=digest,
        embedding_model_id=model_id,
        dimensions=vectors.shape[1],
        passages=len(items),
        fields=tuple(dict.fromkeys(name for item in items for name in fields_of(item.passage))),
        notes=tuple(notes),
        complete=complete,
        rows_sha256=_sha256(rows),
        blocks=tuple(
            _Block(passages=end - start, bytes=len(block), sha256=_sha256(block))
            for (start, end), block in zip(places, blocks, strict=True)
        ),
        sections=Counter(
            item.passage.metadata[SECTION] for item in items if divided and SECTION in item.passage.metadata
        ),
    )
    written = head.model_dump_json(by_alias=True).encode()
    frame = _FRAME.pack(MAGIC, len(written), hashlib.sha256(written).digest())
    return b"".join((frame, written, rows, *blocks))


class PreparedFile:
    """A prepared document in the store: its head and rows; texts and vectors are read as needed, and verified."""

    def __init__(self, key: str, head: _Head, rows: bytes, blocks_at: int) -> None:
        count = head.passages
        self.key = key
        self.source = head.source
        self.embedding_model_id = head.embedding_model_id
        self.dimensions = head.dimensions
        self.fields = head.fields
        self.notes = head.notes
        self.complete = head.complete  # whether another try would add nothing
        self.sections = head.sections  # passages by declared section; empty if none is declared
        self.ids: IdDigests = np.frombuffer(rows, dtype="<u8", count=count).astype(np.uint64, copy=False)
        self.contents: ContentDigests = as_integers(np.frombuffer(rows, dtype="V16", count=count, offset=8 * count))
        self.sizes = np.frombuffer(rows, dtype="<u4", count=count, offset=24 * count).astype(np.int64)  # bytes of JSON
        self._blocks = head.blocks
        self._offsets = np.cumsum([blocks_at, *(block.bytes for block in head.blocks)]).tolist()
        self._starts = np.cumsum([0, *(block.passages for block in head.blocks)])

    @classmethod
    def open(cls, store: ObjectStore, key: str) -> Self:
        """Read head and rows. Raises IndexCorrupt if the object is missing or damaged, and IndexUnavailable."""
        first = _range(store, key, 0, FIRST_BYTES)

        def read(start: int, length: int) -> bytes:
            if start + length <= len(first):
                return first[start : start + length]
            return _range(store, key, start, length)

        return cls._parse(key, read)

    @classmethod
    def whole(cls, key: str, data: bytes) -> Self:
        """Check every byte of an object. Raises IndexCorrupt if it is damaged."""
        found = cls._parse(key, lambda start, length: data[start : start + length])
        if len(data) != found._offsets[-1]:
            raise IndexCorrupt(f"{key} does not have {found._offsets[-1]} bytes", key=key)
        for number in range(len(found._blocks)):
            found._verified(number, data[found._offsets[number] : found._offsets[number + 1]])
        return found

    @property
    def count(self) -> int:
        """Passages."""
        return len(self.ids)

    def read(self, store: ObjectStore, places: Sequence[int]) -> PreparedText:
        """Some passages, by ascending places. Raises IndexCorrupt if the object is missing or damaged, and
        IndexUnavailable."""
        items: list[Indexable] = []
        vectors = np.empty((len(places), self.dimensions), dtype=np.float32)
        in_block = np.searchsorted(self._starts, places, side="right") - 1
        for number in np.unique(in_block).tolist():
            block = self._block(store, number)
            for at in np.flatnonzero(in_block == number).tolist():
                place = int(places[at] - self._starts[number])
                vectors[at] = block.vectors[place]
                items.append(block.items[place])
        return PreparedText(items, vectors)

    @classmethod
    def _parse(cls, key: str, read: Callable[[int, int], bytes]) -> Self:
        try:
            magic, length, sha256 = _FRAME.unpack(read(0, _FRAME.size))
            written = read(_FRAME.size, length)
            if magic != MAGIC or hashlib.sha256(written).digest() != sha256:
                raise ValueError
            head = _Head.model_validate_json(written)
            rows = read(_FRAME.size + length, head.passages * _ROW_BYTES)
            if _sha256(rows) != head.rows_sha256 or sum(block.passages for block in head.blocks) != head.passages:
                raise IndexCorrupt(f"the rows of {key} are damaged", key=key)
        except (struct.error, ValueError) as error:  # a ValidationError is a ValueError
            raise IndexCorrupt(f"{key} is not a prepared document, or its head is damaged", key=key) from error
        return cls(key, head, rows, _FRAME.size + length + len(rows))

    def _block(self, store: ObjectStore, number: int) -> PreparedText:
        data = _range(store, self.key, self._offsets[number], self._blocks[number].bytes)
        self._verified(number, data)
        count = self._blocks[number].passages
        try:
            (length,) = _LENGTH.unpack_from(data)
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(data[_LENGTH.size : _LENGTH.size + length], MAX_BLOCK_BYTES)
            items = [_item(line) for line in text.split(b"\n")]
            vectors = np.frombuffer(data, dtype="<f2", offset=_LENGTH.size + length).reshape(count, self.dimensions)
        except (struct.error, zlib.error, ValueError, KeyError, TypeError) as error:
            raise IndexCorrupt(f"a block of {self.key} cannot be parsed", key=self.key) from error
        if not unpacker.eof or len(items) != count:
            raise IndexCorrupt(f"a block of {self.key} is too large or incomplete", key=self.key)
        return PreparedText(items, vectors.astype(np.float32))

    def _verified(self, number: int, data: bytes) -> None:
        if _sha256(data) != self._blocks[number].sha256:
            raise IndexCorrupt(f"block {number} of {self.key} is damaged", key=self.key)


def _range(store: ObjectStore, key: str, start: int, length: int) -> bytes:
    try:
        return store.read_range(key, start, length)
    except ObjectMissing as error:
        raise IndexCorrupt(f"{key} is missing", key=key) from error


def _item(line: bytes) -> Indexable:
    passage, parts = json.loads(line)
    return Indexable(Passage.model_validate(passage), tuple(WeightedText(text, weight) for text, weight in parts))


def _block(lines: Sequence[bytes], vectors: HalfVectors) -> bytes:
    text = zlib.compress(b"\n".join(lines))
    return _LENGTH.pack(len(text)) + text + vectors.astype("<f2").tobytes()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
