"""What keeps an index small and quick: compaction of what is due, within bounds of time and memory, then garbage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cicada.errors import IndexCorrupt, IndexMismatch, PublishConflict
from cicada.index.compaction import Compacted, compact, compaction_due
from cicada.index.garbage import KEEP_VERSIONS, Collected, collect_garbage
from cicada.index.manifest import Manifest, SegmentEntry
from cicada.index.publish import GRACE_S, read_current, utc_now
from cicada.index.store import ObjectStore
from cicada.index.writer import SEGMENT_ROWS

logger = logging.getLogger(__name__)

COMPACTION_S = 420.0
"""Seconds that must be left for a collection's compaction to begin. A merge takes about 0.2 ms of CPU time a row of 150
words: 50 s for a full segment, so that four of them take half of this."""
COLLECTION_S = 60.0
"""Seconds that must be left for the collection of garbage to begin. It can be cut off anywhere."""

RUNTIME_BYTES = 200 * 2**20
"""The interpreter, the SDK and numpy."""
USED_SHARE = 0.75
"""Of the rest, what merges may be expected to need: texts differ in how they compress."""
VECTOR_COPIES = 2
"""Peak memory of a merge, as a multiple of the stored bytes of its vectors."""
TEXT_COPIES = 32
"""The same of all else: stored texts and postings are compressed. 25 was measured on abstracts, 33 on random words."""


@dataclass
class Maintained:
    """What a run came to."""

    compactions: list[Compacted] = field(default_factory=list)
    """One publication each."""
    collected: Collected | None = None
    """None if nothing is published, there was no time for it, or others published all the time."""
    put_off: list[str] = field(default_factory=list)
    """Collections that are still due, for want of time or because others published: the next run tries again."""
    too_large: list[str] = field(default_factory=list)
    """Collections that are due, but with segments that do not fit into this memory."""
    failures: list[Exception] = field(default_factory=list)
    """Of collections that are damaged; what is sound was gone on with."""

    @property
    def merged(self) -> int:
        """Segments that were replaced by fewer."""
        return sum(one.merged for one in self.compactions)


def maintain(
    store: ObjectStore,
    *,
    memory_bytes: int,
    remaining_s: Callable[[], float],
    keep_versions: int = KEEP_VERSIONS,
    grace_s: float = GRACE_S,
    now: Callable[[], datetime] = utc_now,
) -> Maintained:
    """Compact each collection that is due, as one publication each, and collect garbage.

    It can be killed at any point, and run beside writers, readers and itself.

    Args:
        store: the index.
        memory_bytes: of the process. It bounds the segments that are merged.
        remaining_s: seconds that are left.
        keep_versions: versions that can be rolled back to, at least 1.
        grace_s: seconds that garbage is left alone.
        now: the time.

    Raises:
        IndexCorrupt, IndexMismatch: the current manifest cannot be read.
        IndexUnavailable: the store does not respond.
    """
    done = Maintained()
    if (current := read_current(store)) is None:
        return done
    for collection in current.manifest.collections:
        _compact(store, current.manifest, collection, done, memory_bytes, remaining_s, now)
    if remaining_s() >= COLLECTION_S:
        try:
            done.collected = collect_garbage(store, keep_versions=keep_versions, grace_s=grace_s, now=now)
        except PublishConflict as error:
            logger.info("garbage is left for the next run", extra={"why": str(error)})
    return done


def _compact(
    store: ObjectStore,
    manifest: Manifest,
    collection: str,
    done: Maintained,
    memory_bytes: int,
    remaining_s: Callable[[], float],
    now: Callable[[], datetime],
) -> None:
    rows = rows_within(memory_bytes, manifest.of_collection(collection), manifest.dimensions)
    if _needs_more(manifest, collection, rows):
        logger.warning("segments are too large to be merged here", extra={"collection": collection, "rows": rows})
        done.too_large.append(collection)
    elif not compaction_due(manifest, collection, segment_rows=rows):
        return
    elif remaining_s() < COMPACTION_S:
        done.put_off.append(collection)
    else:
        try:
            compacted = compact(
                store,
                collection=collection,
                segment_rows=rows,
                go_on=lambda: remaining_s() >= COMPACTION_S,
                now=now,
            )
        except PublishConflict as error:
            logger.info("compaction is left for the next run", extra={"collection": collection, "why": str(error)})
            done.put_off.append(collection)
        except (IndexCorrupt, IndexMismatch) as error:
            logger.warning("a collection cannot be compacted", extra={"collection": collection}, exc_info=error)
            done.failures.append(error)
        else:
            done.compactions += [compacted] if compacted else []  # None: somebody else was quicker


def rows_within(memory_bytes: int, entries: Sequence[SegmentEntry], dimensions: int) -> int:
    """How many rows of such segments can be merged into one, within a process's memory; at least 1."""
    rows = sum(entry.count for entry in entries)
    vectors = dimensions / 8 + dimensions + 2 * dimensions  # sign, int8, float16: the layout of a segment's vectors
    others = max(0.0, sum(entry.bytes for entry in entries) / rows - vectors)
    usable = USED_SHARE * (memory_bytes - RUNTIME_BYTES)
    return max(1, min(SEGMENT_ROWS, int(usable / (VECTOR_COPIES * vectors + TEXT_COPIES * others))))


def _needs_more(manifest: Manifest, collection: str, rows: int) -> bool:
    """Whether compaction would read a segment of more rows: one with many deleted."""
    larger = tuple(entry for entry in manifest.of_collection(collection) if entry.count > rows)
    return compaction_due(manifest.model_copy(update={"segments": larger}), collection, segment_rows=rows)
