"""Tombstones: which rows of a segment a version does not have any more.

A segment never changes. What is deleted from it is a bitmap beside it, an object of its own that the version names: a
bit a row, the lowest bit of the first byte for row 0, 1 where the row is deleted; the last byte filled up with zeros;
compressed with zlib.
"""

from __future__ import annotations

import hashlib
import zlib

import numpy as np
from numpy.typing import NDArray

from cicada.errors import IndexCorrupt
from cicada.index.manifest import SegmentEntry, TombstonesEntry, new_tombstones_key
from cicada.index.store import ObjectMissing, ObjectStore, put


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
