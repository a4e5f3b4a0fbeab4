"""Reading large objects as a few large ranges, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from cicada.errors import IndexCorrupt
from cicada.index.store import ObjectMissing, ObjectStore

PART_BYTES = 4 * 2**20
"""One range. Below about 1 MiB a read costs its first byte's latency, not its bytes."""
PARALLEL_READS = 16
"""Ranges read at a time."""


def fetch(store: ObjectStore, objects: Sequence[tuple[str, int]]) -> list[bytearray]:
    """Read objects of known sizes.

    Args:
        store: where from.
        objects: ``(key, bytes)`` pairs.

    Returns:
        One buffer an object, in order, each of exactly the size asked for.

    Raises:
        IndexCorrupt: an object is missing or has another size.
        IndexUnavailable: the store does not respond.
    """
    buffers = [bytearray(size) for _, size in objects]
    parts = [
        (key, buffer, start)
        for (key, size), buffer in zip(objects, buffers, strict=True)
        # one byte beyond the end is asked for, so that an object that is too long is found out as well
        for start in range(0, size + 1, PART_BYTES)
    ]

    def read(part: tuple[str, bytearray, int]) -> None:
        key, buffer, start = part
        asked = min(PART_BYTES, len(buffer) + 1 - start)
        due = min(PART_BYTES, len(buffer) - start)
        try:
            data = store.read_range(key, start, asked)
        except ObjectMissing as error:
            raise IndexCorrupt(f"{key} is missing") from error
        if len(data) != due:
            raise IndexCorrupt(f"{key} is not the {len(buffer)} bytes that it was written as")
        buffer[start : start + due] = data

    with ThreadPoolExecutor(min(PARALLEL_READS, max(1, len(parts))), thread_name_prefix="index-fetch") as pool:
        for _ in pool.map(read, parts):
            pass
    return buffers
