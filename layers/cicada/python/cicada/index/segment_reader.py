"""Reading segments from the store: their heads, their tombstones, and verified ranges in parallel rounds.

A segment never changes. The rows that a version has deleted from it are a bitmap, an object of its own that the
version names (*tombstones*): a bit a row, the lowest bit of the first byte for row 0, 1 where the row is deleted; the
last byte filled up with zeros; compressed with zlib.
"""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt, IndexUnavailable
from cicada.index.columns import Mask
from cicada.index.fetch import PART_BYTES, Part, fetch
from cicada.index.manifest import SegmentEntry, TombstonesEntry, new_tombstones_key
from cicada.index.ports import ObjectMissing, ObjectStore, put
from cicada.index.segment_format import CHUNK_BYTES, Head, Span, decode_head


def write_tombstones(store: ObjectStore, deleted: NDArray[np.bool_]) -> TombstonesEntry:
    """Write the tombstones of a segment: at least one row is deleted.

    Args:
        store: where to.
        deleted: shape ``(rows,)``, True where the row is deleted.

    Raises:
        IndexUnavailable: the store does not respond.
    """
    data = zlib.compress(np.packbits(deleted, bitorder="little").tobytes())
    sha256 = hashlib.sha256(data).hexdigest()
    key = new_tombstones_key(sha256)
    put(store, key, data)
    return TombstonesEntry(key=key, bytes=len(data), count=int(deleted.sum()), sha256=sha256)


def read_tombstones(store: ObjectStore, entry: SegmentEntry) -> NDArray[np.bool_] | None:
    """The rows of a segment that are deleted: shape ``(entry.count,)``, True where they are; None if none is.

    Raises:
        IndexCorrupt: the object is missing, is not what was written, or does not fit the segment.
        IndexUnavailable: the store does not respond.
    """
    if entry.tombstones is None:
        return None
    try:
        data = store.read(entry.tombstones.key).data
    except ObjectMissing as error:
        raise IndexCorrupt(f"{entry.tombstones.key} is missing") from error
    return decode_tombstones(data, entry.tombstones, rows=entry.count)


def decode_tombstones(data: bytes, entry: TombstonesEntry, *, rows: int) -> NDArray[np.bool_]:
    """Verify and unpack tombstones that were read: shape ``(rows,)``, True where the row is deleted.

    Raises:
        IndexCorrupt: they are not what was written, or do not fit the segment.
    """
    if len(data) != entry.bytes or hashlib.sha256(data).hexdigest() != entry.sha256:
        raise IndexCorrupt(f"{entry.key} does not match its checksum")
    packed_bytes = (rows + 7) // 8
    try:
        packed = zlib.decompressobj().decompress(data, packed_bytes + 1)  # one more, to find out what is too long
    except zlib.error as error:
        raise IndexCorrupt(f"{entry.key} cannot be unpacked") from error
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), bitorder="little").view(np.bool_)
    if len(packed) != packed_bytes or bits[rows:].any() or int(bits.sum()) != entry.count:
        raise IndexCorrupt(f"{entry.key} does not fit its segment")
    return bits[:rows]


JOIN_GAP_BYTES = 256 * 2**10
"""Ranges of one section that lie nearer to each other are read as one: a request costs more than the bytes between."""
LOAD_BYTES = 32 * 2**20
"""How much of a section is read and verified at a time when it is loaded whole."""


class SegmentSections:
    """:class:`Sections` of a segment in the store: the head in memory, the body as far as it was loaded."""

    def __init__(self, key: str, head: Head, head_bytes: int) -> None:
        """Take a verified head."""
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
        """The body sections, in the order that they lie in."""
        return tuple(self.header.body)

    def keep(self, name: str, data: memoryview) -> None:
        """Hold a whole, verified body section in memory from now on."""
        self._resident[name] = data.toreadonly()

    def resident_bytes(self) -> int:
        """Bytes of the body sections in memory."""
        return sum(map(len, self._resident.values()))

    def part(self, name: str, start: int, end: int) -> Part:
        """Where bytes of a section lie in the store.

        Raises:
            IndexCorrupt: the section does not reach so far.
        """
        extent = self._head.extent(name)
        if not 0 <= start <= end <= extent.bytes:
            raise IndexCorrupt(f"a segment refers to bytes {start} to {end} of its section {name}, beyond its end")
        return Part(self.key, self._head_bytes + extent.offset + start, end - start)

    def verify(self, name: str, start: int, data: memoryview) -> None:
        """Check whole chunks of a section, see :meth:`cicada.index.segment_format.Head.verify`."""
        try:
            self._head.verify(name, start, data)
        except IndexCorrupt as error:
            raise IndexCorrupt(f"{self.key}: {error}", key=self.key) from error


def open_segments(
    store: ObjectStore, entries: Sequence[SegmentEntry], tombstones: Sequence[SegmentEntry] = ()
) -> tuple[list[SegmentSections], list[Mask | None]]:
    """Read and verify segments' heads, and tombstones, in one round, in the order of their entries.

    Args:
        store: where they are.
        entries: the segments to open.
        tombstones: the segments whose alive rows are asked for.

    Returns:
        The opened segments; and for each of ``tombstones`` the rows that are alive, None for all.

    Raises:
        IndexCorrupt: one is missing, damaged, or not the one that the manifest means.
        IndexMismatch: one has a format that this version does not read.
        IndexUnavailable: the store does not respond.
    """
    marked = [(entry, entry.tombstones) for entry in tombstones if entry.tombstones is not None]
    owners = [entry.key for entry in entries] + [entry.key for entry, _ in marked]
    parts = [Part(entry.key, 0, entry.head_bytes) for entry in entries]
    parts += [Part(dead.key, 0, dead.bytes) for _, dead in marked]
    try:
        data = fetch(store, parts)
    except IndexCorrupt as error:
        owner = next((owner for owner, part in zip(owners, parts, strict=True) if part.key == error.key), None)
        raise IndexCorrupt(str(error), key=owner) from error
    opened = [_open(entry, head) for entry, head in zip(entries, data, strict=False)]
    alive = {
        entry.key: _alive(entry, dead, found) for (entry, dead), found in zip(marked, data[len(entries) :], strict=True)
    }
    return opened, [alive.get(entry.key) for entry in tombstones]


def _alive(entry: SegmentEntry, dead: TombstonesEntry, data: memoryview) -> Mask:
    try:
        return ~decode_tombstones(bytes(data), dead, rows=entry.count)
    except IndexCorrupt as error:
        raise IndexCorrupt(str(error), key=entry.key) from error


def _open(entry: SegmentEntry, data: memoryview) -> SegmentSections:
    try:
        head = decode_head(data, entry.sha256, entry.bytes)
    except IndexCorrupt as error:
        raise IndexCorrupt(f"{entry.key}: {error}", key=entry.key) from error
    header = head.header
    if (header.collection, header.count) != (entry.collection, entry.count):
        raise IndexCorrupt(f"{entry.key} is another segment than its manifest says", key=entry.key)
    return SegmentSections(entry.key, head, entry.head_bytes)


@dataclass
class _Wanted:
    """Chunks of one section that are read as one range, and the spans that lie within."""

    sections: SegmentSections
    name: str
    start: int
    end: int
    spans: list[int]


class RoundReader:
    """Reads spans of segments: what is in memory at once, the rest as one round of ranges. Safe for several threads."""

    def __init__(self, store: ObjectStore) -> None:
        """Take where the segments are."""
        self._store = store
        self._waiting = 0
        self._quiet = threading.Condition()
        self._stopped = False
        self.rounds = 0
        """Rounds of reading that searches have waited for."""

    def gather(self, spans: Sequence[Span]) -> list[memoryview]:
        """:class:`~cicada.index.segment_format.Gather`; searches wait for it, so that :meth:`load` gives way."""
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
        """Bring whole sections into memory, a piece at a time; a search that waits for its ranges goes first.

        Raises:
            IndexCorrupt: a section is damaged or missing.
            IndexUnavailable: the store does not respond, or :meth:`stop_loading` was called.
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
        """Bring whole sections into memory in one round.

        Raises:
            IndexCorrupt, IndexUnavailable: as :meth:`load` does.
        """
        missing = [(sections, name) for sections, name in wanted if sections.resident(name) is None]
        spans = [Span(sections, name, 0, sections.size(name)) for sections, name in missing]
        for (sections, name), data in zip(missing, self.gather(spans), strict=True):
            sections.keep(name, data)

    def _whole(self, sections: SegmentSections, name: str) -> memoryview:
        size = sections.size(name)
        buffer = np.empty(size, dtype=np.uint8).data
        for start in range(0, size, LOAD_BYTES):
            with self._quiet:
                self._quiet.wait_for(lambda: self._stopped or not self._waiting)
            if self._stopped:
                raise IndexUnavailable("the reader is being closed")
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
        """Fill buffers with sections' bytes from chunks' begins on, each piece verified by the thread that read it."""
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
    """The chunk-aligned ranges that hold the spans; near ones are one range."""
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
