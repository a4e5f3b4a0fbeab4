"""Reads segments from the store: their heads, their tombstones, and verified ranges in parallel rounds.

A segment never changes. The rows that a version has deleted from it are a bitmap in an object of its own, the
*tombstones*: a bit per row, the lowest bit of the first byte for row 0, 1 if deleted; zero-padded, zlib-compressed.
"""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt, IndexUnavailable
from cicada.index.columns import Mask
from cicada.index.fetch import PART_BYTES, ByteRange, fetch
from cicada.index.manifest import SegmentEntry, TombstonesEntry, new_tombstones_key
from cicada.index.ports import ObjectMissing, ObjectStore, put
from cicada.index.segment_format import CHUNK_BYTES, SegmentHead, Span, decode_head, whole


def write_tombstones(store: ObjectStore, deleted: NDArray[np.bool_]) -> TombstonesEntry:
    """Write the tombstones of a segment. ``deleted``, shape ``(rows,)``, is True for at least one row."""
    data = zlib.compress(np.packbits(deleted, bitorder="little").tobytes())
    sha256 = hashlib.sha256(data).hexdigest()
    key = new_tombstones_key(sha256)
    put(store, key, data)
    return TombstonesEntry(key=key, bytes=len(data), count=int(deleted.sum()), sha256=sha256)


def read_tombstones(store: ObjectStore, entry: SegmentEntry) -> NDArray[np.bool_] | None:
    """The deleted rows of a segment as a mask ``(entry.count,)``; None if no row is deleted. Raises IndexCorrupt."""
    if entry.tombstones is None:
        return None
    try:
        data = store.read(entry.tombstones.key).data
    except ObjectMissing as error:
        raise IndexCorrupt(f"{entry.tombstones.key} is missing") from error
    return decode_tombstones(data, entry.tombstones, rows=entry.count)


def decode_tombstones(data: bytes, entry: TombstonesEntry, *, rows: int) -> NDArray[np.bool_]:
    """Verify and unpack tombstones to a mask of the deleted rows, ``(rows,)``. Raises IndexCorrupt."""
    if len(data) != entry.bytes or hashlib.sha256(data).hexdigest() != entry.sha256:
        raise IndexCorrupt(f"{entry.key} does not match its checksum")
    packed_bytes = (rows + 7) // 8
    try:
        packed = zlib.decompressobj().decompress(data, packed_bytes + 1)  # one byte more detects a bitmap too long
    except zlib.error as error:
        raise IndexCorrupt(f"{entry.key} cannot be unpacked") from error
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), bitorder="little").view(np.bool_)
    if len(packed) != packed_bytes or bits[rows:].any() or int(bits.sum()) != entry.count:
        raise IndexCorrupt(f"{entry.key} does not fit its segment")
    return bits[:rows]


JOIN_GAP_BYTES = 256 * 2**10  # ranges with smaller gaps are read as one: a request costs more than the bytes between
LOAD_BYTES = 32 * 2**20  # of a section that is loaded whole are read and verified at a time


@contextmanager
def damage_in(key: str) -> Iterator[None]:
    """Add the segment's key to an IndexCorrupt raised inside."""
    try:
        yield
    except IndexCorrupt as error:
        raise IndexCorrupt(f"{key}: {error}", key=key) from error


class SegmentSections:
    """:class:`Sections` of a segment in the store: the head is in memory, and the body sections loaded so far."""

    def __init__(self, key: str, head: SegmentHead, head_bytes: int) -> None:
        self.key = key
        self.header = head.header
        self._head = head
        self._head_bytes = head_bytes
        self._resident: dict[str, memoryview] = {}

    def meta(self, part: str) -> dict[str, Any]:  # noqa: D102 (the protocol's contract)
        return self.header.parts.get(part, {})

    def head(self, name: str) -> memoryview:  # noqa: D102
        return self._head.section(name)

    def size(self, name: str) -> int:  # noqa: D102
        return self._head.extent(name).bytes

    def resident(self, name: str) -> memoryview | None:  # noqa: D102
        return self._resident.get(name)

    def names(self) -> tuple[str, ...]:
        """The body sections in the order of the object."""
        return tuple(self.header.body)

    def keep(self, name: str, data: memoryview) -> None:
        """Hold a whole, verified body section in memory from now on."""
        self._resident[name] = data.toreadonly()

    def resident_bytes(self) -> int:
        """Bytes of the body sections in memory."""
        return sum(map(len, self._resident.values()))

    def part(self, name: str, start: int, end: int) -> ByteRange:
        """Where bytes of a section lie in the store. Raises IndexCorrupt beyond its end."""
        extent = self._head.extent(name)
        if not 0 <= start <= end <= extent.bytes:
            raise IndexCorrupt(f"a segment refers to bytes {start} to {end} of its section {name}, beyond its end")
        return ByteRange(self.key, self._head_bytes + extent.offset + start, end - start)

    def verify(self, name: str, start: int, data: memoryview) -> None:
        """See :meth:`cicada.index.segment_format.SegmentHead.verify`."""
        with damage_in(self.key):
            self._head.verify(name, start, data)


def open_segments(
    store: ObjectStore, entries: Sequence[SegmentEntry], tombstones: Sequence[SegmentEntry] = ()
) -> tuple[dict[str, SegmentSections], dict[str, Mask | None]]:
    """Read and verify the heads of ``entries``, and the tombstones of other segments, in one round.

    Returns the opened segments by key, and by key of ``tombstones`` the rows that are alive, None for all.

    Raises:
        IndexCorrupt: one is missing, damaged, or not the one the manifest names; the error has the segment's key.
        IndexMismatch: one has a format that this version does not read.
        IndexUnavailable: the store does not respond.
    """
    marked = [(entry, entry.tombstones) for entry in tombstones if entry.tombstones is not None]
    parts = [ByteRange(entry.key, 0, entry.head_bytes) for entry in entries]
    parts += [ByteRange(dead.key, 0, dead.bytes) for _, dead in marked]
    try:
        data = fetch(store, parts)
    except IndexCorrupt as error:  # damage to tombstones is damage to their segment
        segment_of: dict[str | None, str] = {dead.key: entry.key for entry, dead in marked}
        raise IndexCorrupt(str(error), key=segment_of.get(error.key, error.key)) from error
    opened = {entry.key: _open(entry, head) for entry, head in zip(entries, data, strict=False)}
    alive: dict[str, Mask | None] = {entry.key: None for entry in tombstones}
    for (entry, dead), found in zip(marked, data[len(entries) :], strict=True):
        with damage_in(entry.key):
            alive[entry.key] = ~decode_tombstones(bytes(found), dead, rows=entry.count)
    return opened, alive


def _open(entry: SegmentEntry, data: memoryview) -> SegmentSections:
    with damage_in(entry.key):
        head = decode_head(data, entry.sha256, entry.bytes)
        if (head.header.collection, head.header.count) != (entry.collection, entry.count):
            raise IndexCorrupt("the segment differs from its manifest")
    return SegmentSections(entry.key, head, entry.head_bytes)


@dataclass
class _Wanted:
    """A range of whole chunks of one section, and the numbers of the spans within."""

    sections: SegmentSections
    name: str
    start: int
    end: int
    spans: list[int]


class RoundReader:
    """Reads spans of segments from memory, and the rest in one round of parallel ranges. Thread-safe."""

    def __init__(self, store: ObjectStore) -> None:
        """Take the store of the segments."""
        self._store = store
        self._waiting = 0
        self._quiet = threading.Condition()
        self._stopped = False
        self.rounds = 0  # rounds that searches have waited for

    def gather(self, spans: Sequence[Span]) -> list[memoryview]:
        """See :class:`~cicada.index.segment_format.Gather`. Searches wait for it, so :meth:`load` pauses meanwhile."""
        found: list[memoryview | None] = [None] * len(spans)
        cold: list[int] = []
        for at, span in enumerate(spans):
            held = span.sections.resident(span.name) if span.length else memoryview(b"")
            if held is None:
                cold.append(at)
            else:
                if span.length and not 0 <= span.start <= span.start + span.length <= len(held):
                    raise IndexCorrupt(f"a segment refers to bytes beyond the end of its section {span.name}")
                found[at] = held[span.start : span.start + span.length] if span.length else held
        if cold:
            with self._quiet:
                self._waiting += 1
                self.rounds += 1
            try:
                self._read(_joined(spans, cold), spans, found)
            finally:
                with self._quiet:
                    self._waiting -= 1
                    self._quiet.notify_all()
        return [data for data in found if data is not None]

    def load(self, sections: SegmentSections, names: Iterable[str]) -> None:
        """Load whole sections a piece at a time; searches that wait for ranges go first.

        Raises IndexCorrupt, or IndexUnavailable (also after :meth:`stop_loading`).
        """
        for name in names:
            if sections.resident(name) is None:
                sections.keep(name, self._whole(sections, name))

    def stop_loading(self) -> None:
        """End every :meth:`load` before its next piece."""
        with self._quiet:
            self._stopped = True
            self._quiet.notify_all()

    def load_at_once(self, wanted: Sequence[tuple[SegmentSections, str]]) -> None:
        """Load whole sections in one round. Raises IndexCorrupt or IndexUnavailable."""
        missing = [(sections, name) for sections, name in wanted if sections.resident(name) is None]
        spans = [whole(sections, name) for sections, name in missing]
        for (sections, name), data in zip(missing, self.gather(spans), strict=True):
            sections.keep(name, data)

    def _whole(self, sections: SegmentSections, name: str) -> memoryview:
        size = sections.size(name)
        buffer = np.empty(size, dtype=np.uint8).data
        for start in range(0, size, LOAD_BYTES):
            with self._quiet:
                self._quiet.wait_for(lambda: self._stopped or not self._waiting)
            if self._stopped:
                raise IndexUnavailable("the reader is closed")
            end = min(start + LOAD_BYTES, size)
            self._fetch([(sections, name, start, buffer[start:end])])
        return buffer

    def _read(self, wanted: Sequence[_Wanted], spans: Sequence[Span], found: list[memoryview | None]) -> None:
        buffers = [np.empty(one.end - one.start, dtype=np.uint8).data for one in wanted]
        self._fetch([(one.sections, one.name, one.start, buffer) for one, buffer in zip(wanted, buffers, strict=True)])
        for one, buffer in zip(wanted, buffers, strict=True):
            view = buffer.toreadonly()
            for at in one.spans:
                start = spans[at].start - one.start
                found[at] = view[start : start + spans[at].length]

    def _fetch(self, ranges: Sequence[tuple[SegmentSections, str, int, memoryview]]) -> None:
        """Fill buffers with sections' bytes from the start of a chunk; each thread verifies what it read."""
        pieces = [
            (sections, name, start + at, buffer[at : at + PART_BYTES])
            for sections, name, start, buffer in ranges
            for at in range(0, len(buffer), PART_BYTES)
        ]

        def verify(at: int, data: memoryview) -> None:
            sections, name, start, _ = pieces[at]
            sections.verify(name, start, data)

        parts = [sections.part(name, start, start + len(piece)) for sections, name, start, piece in pieces]
        fetch(self._store, parts, verify, into=[piece for _, _, _, piece in pieces])


def _joined(spans: Sequence[Span], cold: Sequence[int]) -> list[_Wanted]:
    """The chunk-aligned ranges that hold the spans; near ranges are joined."""
    by_section: dict[tuple[int, str], list[int]] = {}
    for at in cold:
        by_section.setdefault((id(spans[at].sections), spans[at].name), []).append(at)
    wanted: list[_Wanted] = []
    for places in by_section.values():
        open_range: _Wanted | None = None
        for at in sorted(places, key=lambda at: spans[at].start):
            span = spans[at]
            sections = span.sections
            if not isinstance(sections, SegmentSections):
                raise TypeError("only segments of a store can be read")
            if span.start < 0 or span.length < 0 or span.start + span.length > sections.size(span.name):
                raise IndexCorrupt(f"{sections.key} refers to bytes beyond the end of {span.name}", key=sections.key)
            start = span.start - span.start % CHUNK_BYTES
            end = min(-(-(span.start + span.length) // CHUNK_BYTES) * CHUNK_BYTES, sections.size(span.name))
            if open_range is not None and start <= open_range.end + JOIN_GAP_BYTES:
                open_range.end = max(open_range.end, end)
                open_range.spans.append(at)
            else:
                open_range = _Wanted(sections, span.name, start, end, [at])
                wanted.append(open_range)
    return wanted
