"""A segment's binary format, version 1: an immutable set of passages and their vectors.

::

    head    8 bytes   the magic, "CICADSEG"
            4 bytes   format version, little-endian like every number here
            4 bytes   length of the header
            n bytes   the header, JSON: what the segment is, and each section's offset, length and SHA-256
    body              begins at the next multiple of 64; every section does too, for aligned vectors

Sections:

- ``vectors``: ``count`` rows of ``dimensions`` float32, each of unit length.
- ``recipes``: for each row a digest of what its vector was made of, so that a later load knows which still hold.
- ``column.<name>.values`` and ``column.<name>.codes``: a field that searches filter by, dictionary-encoded: the
  distinct values as a JSON array, and for each row a uint32 into it.
- ``passages`` and ``passages.offsets``: the passages as JSON lines in row order, :data:`BLOCK_ROWS` a block, each block
  compressed with zlib by itself; and where the blocks begin, uint64, the end included. A passage's text is so only
  unpacked when it is shown.

The head's SHA-256 vouches for the whole segment: the head holds the sections' own. A reader that wants only some
sections can check just those. Sections that a reader does not know are left alone.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from cicada.corpus.indexable import RECIPE_BYTES, Indexable
from cicada.corpus.passages import Passage
from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.format import Count, IndexModel, Sha256

MAGIC = b"CICADSEG"
FORMAT_VERSION = 1
ALIGNMENT_BYTES = 64
BLOCK_ROWS = 32
"""Passages compressed together: neighbours share most of their context, and a search unpacks a block a hit."""

_PREFIX = struct.Struct("<8sII")
_FLOAT32 = np.dtype("<f4")
_UINT32 = np.dtype("<u4")
_UINT64 = np.dtype("<u8")

Vector = NDArray[np.float32]
"""Shape ``(d,)``, of unit length."""
Vectors = NDArray[np.float32]
"""Shape ``(n, d)``, rows of unit length."""


class Section(IndexModel):
    """Where a section lies, counted from the body's begin, and what it hashes to."""

    offset: Count
    bytes: Count
    sha256: Sha256


class Header(IndexModel):
    """What a segment is."""

    collection: str
    embedding_model_id: str
    dimensions: int = Field(ge=1)
    count: int = Field(ge=1)
    block_rows: int = Field(ge=1)
    columns: tuple[str, ...]
    sections: dict[str, Section]


@dataclass(frozen=True)
class Encoded:
    """A segment's bytes, and what vouches for them."""

    data: bytes
    head_bytes: int
    sha256: str
    """Of the head."""


@dataclass(frozen=True)
class Column:
    """A field of every row: ``values[codes[row]]``."""

    values: tuple[str, ...]
    codes: NDArray[np.uint32]


def filter_fields(passage: Passage) -> dict[str, str]:
    """What searches can filter passages by, beside their collection."""
    return {"episode": passage.locator.episode_id, "speaker": passage.locator.speaker}


def encode(collection: str, embedding_model_id: str, items: Sequence[Indexable], vectors: Vectors) -> Encoded:
    """Write a segment of at least one passage; ``vectors`` has a row a passage. Equal input gives equal bytes."""
    passages = [item.passage for item in items]
    fields = [filter_fields(passage) for passage in passages]
    columns = tuple(fields[0])
    contents: dict[str, bytes] = {
        "vectors": np.ascontiguousarray(vectors, dtype=_FLOAT32).tobytes(),
        "recipes": b"".join(item.recipe() for item in items),
    }
    for name in columns:
        contents |= _encode_column(name, [row[name] for row in fields])
    contents |= _encode_passages(passages)

    sections: dict[str, Section] = {}
    body = bytearray()
    for name, content in contents.items():
        body.extend(bytes(-len(body) % ALIGNMENT_BYTES))
        sections[name] = Section(offset=len(body), bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
        body.extend(content)
    header = Header(
        collection=collection,
        embedding_model_id=embedding_model_id,
        dimensions=vectors.shape[1],
        count=len(passages),
        block_rows=BLOCK_ROWS,
        columns=columns,
        sections=sections,
    )
    written = header.model_dump_json(by_alias=True).encode()
    head = _PREFIX.pack(MAGIC, FORMAT_VERSION, len(written)) + written
    padding = bytes(-len(head) % ALIGNMENT_BYTES)
    return Encoded(head + padding + body, len(head), hashlib.sha256(head).hexdigest())


def _encode_column(name: str, values: Sequence[str]) -> dict[str, bytes]:
    code_of: dict[str, int] = {}
    codes = [code_of.setdefault(value, len(code_of)) for value in values]
    return {
        f"column.{name}.values": json.dumps(list(code_of), ensure_ascii=False).encode(),
        f"column.{name}.codes": np.array(codes, dtype=_UINT32).tobytes(),
    }


def _encode_passages(passages: Sequence[Passage]) -> dict[str, bytes]:
    blocks: list[bytes] = []
    for start in range(0, len(passages), BLOCK_ROWS):
        lines = (passage.model_dump_json(by_alias=True) for passage in passages[start : start + BLOCK_ROWS])
        blocks.append(zlib.compress("\n".join(lines).encode()))
    offsets = np.cumsum([0, *map(len, blocks)], dtype=_UINT64)
    return {"passages": b"".join(blocks), "passages.offsets": offsets.tobytes()}


class Segment:
    """A segment in memory, every byte of it verified."""

    def __init__(self, header: Header, sections: Mapping[str, memoryview]) -> None:
        """Take verified sections; :func:`decode` is the way to make one."""
        self.collection = header.collection
        self.count = header.count
        self.dimensions = header.dimensions
        self.vectors: Vectors = np.frombuffer(sections["vectors"], dtype=_FLOAT32).reshape(
            header.count, header.dimensions
        )
        self._recipes = np.frombuffer(sections["recipes"], dtype=f"V{RECIPE_BYTES}").reshape(header.count)
        self.columns = {name: _decode_column(name, header.count, sections) for name in header.columns}
        self._blocks = sections["passages"]
        self._offsets = np.frombuffer(sections["passages.offsets"], dtype=_UINT64)
        self._block_rows = header.block_rows

    def passage(self, row: int) -> Passage:
        """The passage of a row.

        Raises:
            IndexCorrupt: it was written wrongly.
        """
        block, line = divmod(row, self._block_rows)
        try:
            return Passage.model_validate_json(self._lines(block)[line])
        except (IndexError, ValidationError, zlib.error) as error:
            raise IndexCorrupt(f"a segment of {self.collection} holds no readable passage in row {row}") from error

    def recipes(self) -> list[bytes]:
        """What each row's vector was made of, see :meth:`cicada.corpus.indexable.Indexable.recipe`."""
        return [recipe.tobytes() for recipe in self._recipes]

    def passages(self) -> Iterator[Passage]:
        """Every passage, in row order.

        Raises:
            IndexCorrupt: one was written wrongly.
        """
        try:
            for block in range(len(self._offsets) - 1):
                yield from map(Passage.model_validate_json, self._lines(block))
        except (ValidationError, zlib.error) as error:
            raise IndexCorrupt(f"a segment of {self.collection} holds an unreadable passage") from error

    def _lines(self, block: int) -> list[bytes]:
        packed = self._blocks[int(self._offsets[block]) : int(self._offsets[block + 1])]
        return zlib.decompress(packed).split(b"\n")


def _decode_column(name: str, count: int, sections: Mapping[str, memoryview]) -> Column:
    values = tuple(json.loads(bytes(sections[f"column.{name}.values"])))
    codes = np.frombuffer(sections[f"column.{name}.codes"], dtype=_UINT32)
    if len(codes) != count or int(codes.max()) >= len(values):
        raise ValueError(f"column {name} does not fit its segment")
    return Column(values, codes)


def decode(data: bytes | bytearray, *, head_bytes: int, sha256: str) -> Segment:
    """Verify and open a segment without copying its vectors: ``data`` must not change afterwards.

    Args:
        data: the whole segment.
        head_bytes: the head's length, from the manifest.
        sha256: the head's digest, from the manifest.

    Raises:
        IndexCorrupt: any byte is not what was written, or the head is not of a segment.
        IndexMismatch: it has a format that this version does not read.
    """
    view = memoryview(data).toreadonly()
    head = view[:head_bytes]
    if hashlib.sha256(head).hexdigest() != sha256:
        raise IndexCorrupt("a segment's head does not match its checksum")
    try:
        header = _decode_head(head)
        body = view[head_bytes + -head_bytes % ALIGNMENT_BYTES :]
        return Segment(header, {name: _verified(name, section, body) for name, section in header.sections.items()})
    except (KeyError, ValueError, struct.error) as error:  # pydantic's and json's errors are ValueErrors
        raise IndexCorrupt(f"a segment is not laid out as its format demands: {error}") from error


def _decode_head(head: memoryview) -> Header:
    magic, version, length = _PREFIX.unpack_from(head)
    if magic != MAGIC:
        raise IndexCorrupt("an object of the index is no segment")
    if version != FORMAT_VERSION:
        raise IndexMismatch(f"a segment has format {version}; this version of Cicada reads {FORMAT_VERSION}")
    if len(head) != _PREFIX.size + length:
        raise IndexCorrupt("a segment's head has another length than its header says")
    return Header.model_validate_json(bytes(head[_PREFIX.size :]))


def _verified(name: str, section: Section, body: memoryview) -> memoryview:
    content = body[section.offset : section.offset + section.bytes]
    if hashlib.sha256(content).hexdigest() != section.sha256:
        raise IndexCorrupt(f"a segment's section {name} does not match its checksum")
    return content
