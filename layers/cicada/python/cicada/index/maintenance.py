"""Maintenance of the index: garbage collection, the integrity check, and the scheduled run.

Garbage collection is safe beside writers and readers. Whatever was written or current within the grace period stays. No
writer reuses a key, see :func:`cicada.index.manifest.new_segment_key`. Before the objects of old versions are deleted,
the current manifest records it by compare-and-swap, so that a concurrent roll-back to one of them fails.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from cicada.errors import IndexCorrupt, IndexMismatch, PublishConflict
from cicada.index.collection_snapshot import IdDigests, SegmentSnapshot
from cicada.index.compaction import Compacted, compact, compaction_due
from cicada.index.manifest import (
    CURRENT_KEY,
    SEGMENTS_PREFIX,
    TOMBSTONES_PREFIX,
    VERSIONS_PREFIX,
    Manifest,
    SegmentEntry,
    parse_manifest,
    version_key,
)
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed, Progress, StoredEntry, silent
from cicada.index.versions import (
    GRACE_S,
    PUBLISH_ATTEMPTS,
    PastVersion,
    Published,
    history,
    must_be_published,
    read_current,
    utc_now,
    version_number,
)
from cicada.index.writer import SEGMENT_ROWS

logger = logging.getLogger(__name__)

KEEP_VERSIONS = 10  # versions to roll back to, the current one included

_OURS = re.compile(
    rf"{SEGMENTS_PREFIX}[0-9a-f]{{64}}(-[0-9a-f]{{16}})?\.segment"
    rf"|{TOMBSTONES_PREFIX}[0-9a-f]{{64}}-[0-9a-f]{{16}}\.bits"
    rf"|{VERSIONS_PREFIX}\d{{6,}}-[0-9a-f]{{16}}\.json"
)
"""Keys that may be deleted; other objects below these prefixes are not the index's."""


@dataclass(frozen=True)
class Collected:
    """The result of a garbage collection."""

    objects: int  # deleted objects
    bytes: int  # of the deleted objects
    versions: int  # kept, the current one included


def collect_garbage(
    store: ObjectStore,
    *,
    keep_versions: int = KEEP_VERSIONS,
    grace_s: float = GRACE_S,
    now: Callable[[], datetime] = utc_now,
    progress: Progress = silent,
) -> Collected:
    """Delete segments, tombstones and manifests that no kept version needs and that are older than the grace.

    Kept are the newest ``keep_versions`` versions, and those that were current within the grace. ``grace_s`` must cover
    the time a writer takes and a reader holds a version. The process can be killed at any point. Nothing is deleted if
    nothing is published.

    Raises IndexCorrupt or IndexMismatch if the current manifest cannot be read; PublishConflict if others publish all
    the time.
    """
    if keep_versions < 1:
        raise ValueError("keep_versions must be at least 1: the current version")
    for _ in range(PUBLISH_ATTEMPTS):
        current = read_current(store)
        if current is None:
            return Collected(0, 0, 0)
        horizon = now() - timedelta(seconds=grace_s)
        kept, given_up = _kept(store, current, keep_versions, horizon)
        if given_up and not _give_up_below(store, current, version_number(kept[-1].version)):
            continue
        needed = frozenset[str]().union(*(past.references() for past in kept), {version_key(p.version) for p in kept})
        return _delete(store, needed, horizon, len(kept), progress)
    raise PublishConflict("too many concurrent publications; run the collection again later")


def _kept(
    store: ObjectStore, current: Published, keep_versions: int, horizon: datetime
) -> tuple[list[PastVersion], bool]:
    """The versions to keep, newest first, and whether older ones are given up."""
    kept: list[PastVersion] = []
    for past in history(store, current.manifest):
        if len(kept) >= keep_versions and kept[-1].written_at <= horizon:  # so its predecessor was replaced before
            return kept, True
        kept.append(past)
    return kept, False


def _give_up_below(store: ObjectStore, current: Published, number: int) -> bool:
    """Record that older versions cannot be rolled back to. False if another version was published meanwhile."""
    try:
        store.write(CURRENT_KEY, current.manifest.keeping_from(number).to_bytes(), replaces=current.etag)
    except PreconditionFailed:
        return False
    return True


def _delete(
    store: ObjectStore, needed: frozenset[str], horizon: datetime, versions: int, progress: Progress
) -> Collected:
    garbage: list[StoredEntry] = [
        entry
        for prefix in (SEGMENTS_PREFIX, TOMBSTONES_PREFIX, VERSIONS_PREFIX)
        for entry in store.entries(prefix)
        if entry.key not in needed and entry.modified_at < horizon and _OURS.fullmatch(entry.key)
    ]
    for done, entry in enumerate(garbage):
        progress("collecting", done, len(garbage))
        store.delete(entry.key)
    progress("collecting", len(garbage), len(garbage))
    freed = sum(entry.bytes for entry in garbage)
    logger.info("garbage collected", extra={"objects": len(garbage), "bytes": freed, "versions": versions})
    return Collected(len(garbage), freed, versions)


@dataclass(frozen=True)
class Damage:
    """A damaged object."""

    key: str
    collection: str | None  # of its passages
    reason: str


@dataclass(frozen=True)
class Checked:
    """The result of a check."""

    version: str
    objects: int
    bytes: int  # of the objects
    damaged: tuple[Damage, ...]


def check_index(store: ObjectStore, *, progress: Progress = silent) -> Checked:
    """Read every object of the current version and verify every digest; one segment is in memory at a time.

    Raises IndexMissing, IndexUnavailable, or IndexCorrupt or IndexMismatch if the current manifest cannot be read.
    """
    manifest = must_be_published(store).manifest
    damaged = kept_manifest_damage(store, manifest)
    ids_of: dict[str, IdDigests] = {}
    for done, entry in enumerate(manifest.segments):
        progress("checking", done, len(manifest.segments))
        before = ids_of.get(entry.collection, np.empty(0, dtype=np.uint64))
        try:
            segment = SegmentSnapshot.read(store, manifest, entry)
            segment.verify(store)
            if twice := np.intersect1d(before, segment.ids).size:
                raise IndexCorrupt(f"{twice} of its passages are also in another segment of {entry.collection}")
        except (IndexCorrupt, IndexMismatch) as error:
            damaged.append(Damage(entry.key, entry.collection, str(error)))
        else:
            ids_of[entry.collection] = np.concatenate([before, segment.ids])
    progress("checking", len(manifest.segments), len(manifest.segments))
    tombstones = [entry.tombstones.bytes for entry in manifest.segments if entry.tombstones]
    return Checked(
        version=manifest.version,
        objects=2 + len(manifest.segments) + len(tombstones),
        bytes=2 * len(manifest.to_bytes()) + sum(entry.bytes for entry in manifest.segments) + sum(tombstones),
        damaged=tuple(damaged),
    )


def kept_manifest_damage(store: ObjectStore, manifest: Manifest) -> list[Damage]:
    """Damage to the copy of the manifest that a roll-back would read."""
    key = version_key(manifest.version)
    try:
        kept = parse_manifest(store.read(key).data)
    except ObjectMissing:
        return [Damage(key, None, "it is missing")]
    except (IndexCorrupt, IndexMismatch) as error:
        return [Damage(key, None, str(error))]
    return [] if kept.version == manifest.version else [Damage(key, None, f"it is version {kept.version}")]


COMPACTION_S = 420.0
"""Seconds that must be left to start a collection's compaction. A merge takes about 0.2 ms of CPU time per row of 150
words, which is 50 s for a full segment."""
COLLECTION_S = 60.0  # seconds that must be left to start garbage collection, which can be killed at any point

RUNTIME_BYTES = 200 * 2**20  # the interpreter, the SDK and numpy
USED_SHARE = 0.75  # of the rest, for a merge's expected memory: texts compress differently
VECTOR_COPIES = 2  # peak memory of a merge, as a multiple of its stored vectors
TEXT_COPIES = 32  # the same of the compressed rest; 25 was measured on abstracts, 33 on random words


@dataclass
class Maintained:
    """The result of a run."""

    compactions: list[Compacted] = field(default_factory=list)  # one publication each
    collected: Collected | None = None  # None if nothing is published, no time was left, or others kept publishing
    put_off: list[str] = field(default_factory=list)  # collections left to the next run
    too_large: list[str] = field(default_factory=list)  # due collections with segments too large for this memory
    failures: list[Exception] = field(default_factory=list)  # of damaged collections; the run went on with the others

    @property
    def merged(self) -> int:
        """Segments that were replaced."""
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
    """Compact each due collection, one publication each, and collect garbage.

    ``memory_bytes`` of the process bound the segments to merge. The process can be killed at any point. Raises
    IndexCorrupt or IndexMismatch if the current manifest cannot be read; IndexUnavailable.
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
            logger.info("garbage collection deferred", extra={"why": str(error)})
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
        logger.warning("segments are too large to merge here", extra={"collection": collection, "rows": rows})
        done.too_large.append(collection)
    elif not compaction_due(manifest, collection, segment_rows=rows):
        return
    elif remaining_s() < COMPACTION_S:
        done.put_off.append(collection)
    else:
        try:
            compacted = compact(
                store, collection=collection, segment_rows=rows, go_on=lambda: remaining_s() >= COMPACTION_S, now=now
            )
        except PublishConflict as error:
            logger.info("compaction deferred", extra={"collection": collection, "why": str(error)})
            done.put_off.append(collection)
        except (IndexCorrupt, IndexMismatch) as error:
            logger.warning("cannot compact a collection", extra={"collection": collection}, exc_info=error)
            done.failures.append(error)
        else:
            done.compactions += [compacted] if compacted else []  # None: another run was faster


def rows_within(memory_bytes: int, entries: Sequence[SegmentEntry], dimensions: int) -> int:
    """How many rows of such segments a process's memory can merge; at least 1."""
    rows = sum(entry.count for entry in entries)
    vectors = dimensions / 8 + dimensions + 2 * dimensions  # sign, int8, float16: the layout of a segment's vectors
    others = max(0.0, sum(entry.bytes for entry in entries) / rows - vectors)
    usable = USED_SHARE * (memory_bytes - RUNTIME_BYTES)
    return max(1, min(SEGMENT_ROWS, int(usable / (VECTOR_COPIES * vectors + TEXT_COPIES * others))))


def _needs_more(manifest: Manifest, collection: str, rows: int) -> bool:
    """Whether compaction would read a segment of more rows, one with many deleted rows."""
    larger = tuple(entry for entry in manifest.of_collection(collection) if entry.count > rows)
    return compaction_due(manifest.model_copy(update={"segments": larger}), collection, segment_rows=rows)
