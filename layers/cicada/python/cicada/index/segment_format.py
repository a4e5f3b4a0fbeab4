"""The binary format of a segment, versions 2 and 3: named sections in one immutable object, every range verifiable.

::

    head    8 bytes   the magic, "CICADSEG"
            4 bytes   format version, little-endian like every number here
            4 bytes   length of the header
            n bytes   the header, JSON: what the segment is, and where each section lies
            m bytes   the head sections, each at a multiple of 64; among them ``digests``
    body              the body sections, each at a multiple of 64

``digests`` holds the first 16 bytes of the SHA-256 of each 64 KiB of each body section. The manifest holds the SHA-256
of the head, so a reader can verify any range of the body by the manifest and the head.

Version 3 has the layout of version 2, with enriched passages. A reader of version 2 alone cannot parse such passages,
and refuses the segment when it opens it.

The *head* is read when a segment is opened; the *body* is in memory or read by range. Searches use :class:`Sections`
and :class:`Gather`, which hide the difference.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol

from pydantic import Field, ValidationError

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.manifest import Count, IndexModel


@dataclass(frozen=True)
class Encoded:
    """One encoded part of a segment (vectors, lexical, columns). Section names begin with the part's name."""

    meta: Mapping[str, Any]  # JSON values, stored in the header under the part's name
    head: Mapping[str, bytes]  # small sections, read on every opening: below about 1 MB in all for 250,000 rows
    body: Mapping[str, bytes]  # large sections, read whole or by range


class Sections(Protocol):
    """The sections of one segment. Everything returned is verified."""

    def meta(self, part: str) -> Mapping[str, Any]:
        """A part's values in the header; empty if the segment has no such part."""

    def head(self, name: str) -> memoryview:
        """A section of the head. Raises IndexCorrupt if the segment has none of that name."""

    def size(self, name: str) -> int:
        """Bytes of a body section. Raises IndexCorrupt if the segment has none of that name."""

    def resident(self, name: str) -> memoryview | None:
        """A body section, if it is in memory whole; never reads."""


class Span(NamedTuple):
    """Bytes ``start`` to ``start + length`` of a body section."""

    sections: Sections
    name: str
    start: int
    length: int


def whole(sections: Sections, name: str) -> Span:
    """All of a body section."""
    return Span(sections, name, 0, sections.size(name))


Gather = Callable[[Sequence[Span]], list[memoryview]]
"""Reads spans of any number of segments, in order, as one round of parallel ranges; resident spans cost nothing. Raises
IndexCorrupt if they are damaged, or IndexUnavailable."""


def gather_groups(gather: Gather, groups: Iterable[Sequence[Span]]) -> list[list[memoryview]]:
    """Read several lists of spans in one round."""
    groups = list(groups)
    data = iter(gather([span for group in groups for span in group]))
    return [list(islice(data, len(group))) for group in groups]


MAGIC = b"CICADSEG"
FORMAT_VERSION = 2
ENRICHED_FORMAT_VERSION = 3  # only for segments with enriched passages
ALIGNMENT_BYTES = 64
CHUNK_BYTES = 64 * 2**10  # verified at a time: small for a range that is worth a request, large for its digest
DIGEST_BYTES = 16

_PREFIX = struct.Struct("<8sII")
_DIGESTS = "digests"


class Extent(IndexModel):
    """Where a section lies, from the end of the head (body sections) or from the first head section."""

    offset: Count
    bytes: Count


class Header(IndexModel):
    """The header of a segment."""

    collection: str
    embedding_model_id: str
    dimensions: int = Field(ge=1)
    count: int = Field(ge=1)
    parts: dict[str, dict[str, Any]]  # what each part keeps for itself
    head: dict[str, Extent]
    body: dict[str, Extent]


@dataclass(frozen=True)
class EncodedSegment:
    """A segment's bytes, and the digest of its head."""

    data: bytes
    head_bytes: int
    sha256: str  # of the head
    count: int


@dataclass(frozen=True)
class SegmentHead:
    """A segment's head in memory, verified."""

    header: Header
    data: memoryview  # of the head sections
    first_digest: Mapping[str, int]  # by body section: its first chunk's place among the digests

    def section(self, name: str) -> memoryview:
        """A section of the head. Raises IndexCorrupt if there is none of that name."""
        extent = _extent(self.header.head, name)
        return self.data[extent.offset : extent.offset + extent.bytes]

    def extent(self, name: str) -> Extent:
        """Where a section of the body lies. Raises IndexCorrupt if there is none of that name."""
        return _extent(self.header.body, name)

    def verify(self, name: str, start: int, data: memoryview) -> None:
        """Check whole chunks of a body section. Raises IndexCorrupt."""
        digests = self.section(_DIGESTS)
        number = self.first_digest[name] + start // CHUNK_BYTES
        for at in range(0, len(data), CHUNK_BYTES):
            due = digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]
            if hashlib.sha256(data[at : at + CHUNK_BYTES]).digest()[:DIGEST_BYTES] != due:
                raise IndexCorrupt(f"a segment's section {name} does not match its digest at byte {start + at}")
            number += 1


def _extent(extents: Mapping[str, Extent], name: str) -> Extent:
    try:
        return extents[name]
    except KeyError:
        raise IndexCorrupt(f"a segment has no section {name}") from None


def encode_container(
    *,
    collection: str,
    embedding_model_id: str,
    dimensions: int,
    count: int,
    parts: Mapping[str, Encoded],
    enriched: bool = False,
) -> EncodedSegment:
    """Lay out the parts of a segment. Equal input gives equal bytes."""
    body = {name: content for part in parts.values() for name, content in part.body.items()}
    head = {name: content for part in parts.values() for name, content in part.head.items()}
    head[_DIGESTS] = b"".join(
        hashlib.sha256(memoryview(content)[at : at + CHUNK_BYTES]).digest()[:DIGEST_BYTES]
        for content in body.values()
        for at in range(0, len(content), CHUNK_BYTES)
    )
    head_extents, head_data = _lay_out(head)
    # The body's offsets count from the end of the head, whose length depends on how they are written.
    body_extents, body_data = _lay_out(body)
    header = Header(
        collection=collection,
        embedding_model_id=embedding_model_id,
        dimensions=dimensions,
        count=count,
        parts={name: dict(part.meta) for name, part in parts.items()},
        head=head_extents,
        body=body_extents,
    )
    written = header.model_dump_json(by_alias=True).encode()
    version = ENRICHED_FORMAT_VERSION if enriched else FORMAT_VERSION
    start = _PREFIX.pack(MAGIC, version, len(written)) + written
    whole_head = _padded(start) + _padded(head_data)
    data = whole_head + body_data
    return EncodedSegment(data, len(whole_head), hashlib.sha256(whole_head).hexdigest(), count)


def decode_head(data: bytes | bytearray | memoryview, sha256: str, object_bytes: int) -> SegmentHead:
    """Verify and parse a head by the digest and the object's length in the manifest.

    Raises IndexCorrupt if it is damaged, or IndexMismatch if this version does not read its format.
    """
    view = memoryview(data).toreadonly()
    if hashlib.sha256(view).hexdigest() != sha256:
        raise IndexCorrupt("a segment's head does not match its checksum")
    try:
        magic, version, length = _PREFIX.unpack_from(view)
        if magic != MAGIC:
            raise IndexCorrupt("an object of the index is not a segment")
        if version not in (FORMAT_VERSION, ENRICHED_FORMAT_VERSION):
            raise IndexMismatch(
                f"a segment has format {version}; this version of Cicada reads {FORMAT_VERSION} and "
                f"{ENRICHED_FORMAT_VERSION}"
            )
        header = Header.model_validate_json(bytes(view[_PREFIX.size : _PREFIX.size + length]))
    except (ValidationError, ValueError, struct.error, RecursionError) as error:
        raise IndexCorrupt(f"a segment's head has an invalid layout: {error}") from error
    start = _PREFIX.size + length
    sections = view[start + -start % ALIGNMENT_BYTES :]
    first_digest: dict[str, int] = {}
    digests = 0
    for name, extent in header.body.items():
        first_digest[name] = digests
        digests += -(-extent.bytes // CHUNK_BYTES)
        if len(view) + extent.offset + extent.bytes > object_bytes:
            raise IndexCorrupt(f"a segment's section {name} reaches beyond its end")
    if any(extent.offset + extent.bytes > len(sections) for extent in header.head.values()):
        raise IndexCorrupt("a segment's head is shorter than its sections")
    head = SegmentHead(header, sections, first_digest)
    if len(head.section(_DIGESTS)) != digests * DIGEST_BYTES:
        raise IndexCorrupt("a segment has a wrong number of digests")
    return head


def _lay_out(contents: Mapping[str, bytes]) -> tuple[dict[str, Extent], bytes]:
    extents: dict[str, Extent] = {}
    pieces: list[bytes] = []
    at = 0
    for name, content in contents.items():
        extents[name] = Extent(offset=at, bytes=len(content))
        pieces.append(_padded(content))
        at += len(pieces[-1])
    return extents, b"".join(pieces)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % ALIGNMENT_BYTES)


def to_json(value: Any) -> bytes:
    """A small value as a section: compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def from_json(data: memoryview) -> Any:
    """Parse what :func:`to_json` wrote. Raises IndexCorrupt."""
    try:
        return json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise IndexCorrupt("cannot read a section of a segment") from error
