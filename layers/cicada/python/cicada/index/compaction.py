"""Compaction: merges small segments and drops deleted rows, in a new version with the same live content.

Every load adds a segment, and every segment costs a search a little. Segments belong to tiers by size, each
:data:`TIER_FACTOR` times the one below. A tier with more than :data:`TIER_SEGMENTS` segments is merged with the smaller
ones, so a passage is rewritten about once per tier. (O'Neil et al., The log-structured merge-tree, 1996; tiers rather
than levels, as in Lucene and Cassandra.)
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from cicada.errors import PublishConflict
from cicada.index.collection_snapshot import IdDigests, SegmentSnapshot
from cicada.index.manifest import Manifest, SegmentEntry
from cicada.index.ports import ObjectStore, Progress, silent
from cicada.index.segment import SegmentContents, write_segment
from cicada.index.versions import Published, publish_on_top, read_current, refuse_late, utc_now
from cicada.index.writer import SEGMENT_ROWS

logger = logging.getLogger(__name__)

TIER_ROWS = 1_024  # live rows of a segment in the lowest tier at most
TIER_FACTOR = 8
TIER_SEGMENTS = 8  # a tier with more segments is merged
MAX_DELETED_SHARE = 0.2  # of a segment's rows; with more, the segment is rewritten
MIN_DELETED_ROWS = 100  # fewer deleted rows are not worth a rewrite


@dataclass(frozen=True)
class Compacted:
    """The result of a compaction."""

    version: str  # the current version
    merged: int  # segments that were replaced
    segments: int  # segments that replace them
    dropped: int  # deleted rows that were dropped


def compaction_due(manifest: Manifest, collection: str | None = None, *, segment_rows: int = SEGMENT_ROWS) -> bool:
    """Whether :func:`compact` would change a collection, or any."""
    return bool(_groups(manifest, collection, segment_rows))


def compact(
    store: ObjectStore,
    *,
    collection: str | None = None,
    progress: Progress = silent,
    segment_rows: int = SEGMENT_ROWS,
    go_on: Callable[[], bool] = lambda: True,
    now: Callable[[], datetime] = utc_now,
) -> Compacted | None:
    """Merge what is due in one collection or all, and publish it as one version; None if nothing was due.

    One new segment's content is in memory at a time. The process can be killed at any point. Concurrent additions stay,
    and concurrent deletions apply to the merged segments too. When ``go_on`` returns False, what is merged so far is
    published.

    Raises IndexCorrupt or IndexMismatch if the manifest or a segment to merge cannot be read; PublishConflict if the
    same segments were merged or replaced meanwhile: try again.
    """
    base = read_current(store)
    groups = _groups(base.manifest, collection, segment_rows) if base else []
    if base is None or not groups:
        return None
    began_at = now()
    merges: list[_Merge] = []
    for done, group in enumerate(groups):
        if merges and not go_on():
            groups = groups[:done]
            break
        progress("compacting", done, len(groups))
        sources = tuple(SegmentSnapshot.read(store, base.manifest, entry) for entry in group)
        merged = write_segment(store, _live_contents(sources), base.manifest.embedding_model_id)
        merges.append(_Merge(sources, merged))
    progress("compacting", len(groups), len(groups))

    def on_top_of(current: Published | None) -> Manifest:
        refuse_late(began_at, now())
        if current is None:
            raise PublishConflict("the published version no longer exists")
        entries: dict[str, SegmentEntry | None] = {entry.key: entry for entry in current.manifest.segments}
        for merge in merges:
            merge.put_in_place(store, base.manifest, entries)
        return current.manifest.successor(created_at=now(), segments=tuple(filter(None, entries.values())))

    manifest = publish_on_top(store, base, on_top_of)
    report = Compacted(
        version=manifest.version,
        merged=sum(map(len, groups)),
        segments=len(merges),
        dropped=sum(entry.count - entry.live for group in groups for entry in group),
    )
    logger.info("index compacted", extra={"index_version": report.version, "merged": report.merged})
    return report


@dataclass(frozen=True)
class _Merge:
    """Segments, and the segment that replaces them."""

    sources: tuple[SegmentSnapshot, ...]
    merged: SegmentEntry

    def put_in_place(self, store: ObjectStore, base: Manifest, entries: dict[str, SegmentEntry | None]) -> None:
        """Replace the sources by the merged segment, without rows deleted since they were read.

        Raises PublishConflict if a source is gone, or has got deleted rows back.
        """
        gone: list[IdDigests] = []
        for source in self.sources:
            entry = entries.get(source.entry.key)
            if entry is None:
                raise PublishConflict(
                    f"segments of {self.merged.collection} were replaced while they were being merged"
                )
            current = source.as_in(store, entry)
            if (current.alive & ~source.alive).any():
                raise PublishConflict(
                    f"passages of {self.merged.collection} were restored while they were being merged"
                )
            gone.append(np.setdiff1d(source.ids, current.ids))
        merged: SegmentEntry | None = self.merged
        if (deleted := np.concatenate(gone)).size:
            logger.info("rows deleted during their merge", extra={"rows": deleted.size})
            merged = SegmentSnapshot.read(store, base, self.merged).without(store, deleted)
        first, *others = (source.entry.key for source in self.sources)
        entries[first] = merged
        for key in others:
            entries[key] = None


def _live_contents(sources: Sequence[SegmentSnapshot]) -> SegmentContents:
    """The contents of all sources. A function, so that each source's are freed before the whole is encoded."""
    if len(sources) == 1:
        return sources[0].live_contents()
    return SegmentContents.concat([source.live_contents() for source in sources])


def _groups(manifest: Manifest, collection: str | None, segment_rows: int) -> list[tuple[SegmentEntry, ...]]:
    """Groups of segments; each group is merged into one."""
    chosen = manifest.collections if collection is None else (collection,)
    return [group for name in chosen for group in _groups_of(manifest.of_collection(name), segment_rows)]


def _groups_of(entries: Sequence[SegmentEntry], segment_rows: int) -> list[tuple[SegmentEntry, ...]]:
    """One collection's due segments, as many neighbours in a group as fit into one segment."""
    groups: list[list[SegmentEntry]] = []
    for entry in _due(entries, segment_rows):
        if groups and sum(one.live for one in groups[-1]) + entry.live <= segment_rows:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return [tuple(group) for group in groups if len(group) > 1 or _worn(group[0])]


def _due(entries: Sequence[SegmentEntry], segment_rows: int) -> list[SegmentEntry]:
    """The segments of all tiers up to the highest full one, and those with many deleted rows."""
    tiers = {entry.key: _tier(entry) for entry in entries if 2 * entry.live <= segment_rows}
    full = (tier for tier, count in Counter(tiers.values()).items() if count > TIER_SEGMENTS)
    highest = max(full, default=-1)
    return [entry for entry in entries if tiers.get(entry.key, highest + 1) <= highest or _worn(entry)]


def _tier(entry: SegmentEntry) -> int:
    tier, rows = 0, TIER_ROWS
    while entry.live > rows:
        tier, rows = tier + 1, rows * TIER_FACTOR
    return tier


def _worn(entry: SegmentEntry) -> bool:
    """Whether enough rows are deleted for a rewrite."""
    deleted = entry.count - entry.live
    return deleted >= MIN_DELETED_ROWS and deleted > MAX_DELETED_SHARE * entry.count
