"""Reading a version's segments from the store."""

from __future__ import annotations

from collections.abc import Sequence

from cicada.errors import IndexCorrupt
from cicada.index.fetch import fetch
from cicada.index.manifest import SegmentEntry
from cicada.index.segment import Segment, decode
from cicada.index.store import ObjectStore


def load_segments(store: ObjectStore, entries: Sequence[SegmentEntry], *, dimensions: int) -> list[Segment]:
    """Read, verify and open segments, in the order of their entries.

    Raises:
        IndexCorrupt: one is missing, damaged, or not the one that the manifest means.
        IndexMismatch: one has a format that this version does not read.
        IndexUnavailable: the store does not respond.
    """
    buffers = fetch(store, [(entry.key, entry.bytes) for entry in entries])
    return [_open(entry, buffer, dimensions) for entry, buffer in zip(entries, buffers, strict=True)]


def _open(entry: SegmentEntry, buffer: bytearray, dimensions: int) -> Segment:
    try:
        segment = decode(buffer, head_bytes=entry.head_bytes, sha256=entry.sha256)
    except IndexCorrupt as error:
        raise IndexCorrupt(f"{entry.key}: {error}") from error
    if (segment.collection, segment.count, segment.dimensions) != (entry.collection, entry.count, dimensions):
        raise IndexCorrupt(f"{entry.key} is another segment than its manifest says")
    return segment
