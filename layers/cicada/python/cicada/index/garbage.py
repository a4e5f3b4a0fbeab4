"""Deleting what no version needs any more.

Three things make it safe beside writers and readers. Whatever was written or current within the grace period stays.
No writer takes the place of an object again, see :func:`cicada.index.manifest.new_segment_key`. And before the objects
of old versions are deleted the current manifest says so, by compare-and-swap: a roll-back to one of them, begun
before, finds the manifest changed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cicada.errors import PublishConflict
from cicada.index.history import PastVersion, history, version_number
from cicada.index.manifest import CURRENT_KEY, SEGMENTS_PREFIX, TOMBSTONES_PREFIX, VERSIONS_PREFIX, version_key
from cicada.index.progress import Progress, silent
from cicada.index.publish import GRACE_S, PUBLISH_ATTEMPTS, Published, read_current, utc_now
from cicada.index.store import ObjectStore, PreconditionFailed, StoredEntry

logger = logging.getLogger(__name__)

KEEP_VERSIONS = 10
"""Versions that can be rolled back to, the current one included."""

_OURS = re.compile(
    rf"{SEGMENTS_PREFIX}[0-9a-f]{{64}}(-[0-9a-f]{{16}})?\.segment"
    rf"|{TOMBSTONES_PREFIX}[0-9a-f]{{64}}-[0-9a-f]{{16}}\.bits"
    rf"|{VERSIONS_PREFIX}\d{{6,}}-[0-9a-f]{{16}}\.json"
)
"""What may be deleted; anything else below these prefixes is somebody else's."""


@dataclass(frozen=True)
class Collected:
    """What a collection of garbage came to."""

    objects: int
    """Deleted."""
    bytes: int
    """Of the deleted objects."""
    versions: int
    """That can still be rolled back to, the current one included."""


def collect_garbage(
    store: ObjectStore,
    *,
    keep_versions: int = KEEP_VERSIONS,
    grace_s: float = GRACE_S,
    now: Callable[[], datetime] = utc_now,
    progress: Progress = silent,
) -> Collected:
    """Delete the segments, tombstones and manifests that no kept version needs and that are older than the grace.

    Kept are the newest ``keep_versions`` versions, and those that were current at any time within the grace. It can be
    killed at any point, and run beside writers, readers and itself. While nothing is published nothing is deleted.

    Args:
        store: the index.
        keep_versions: at least 1.
        grace_s: seconds; not shorter than a writer may take and a reader may hold on to a version.
        now: the time.
        progress: told of each object.

    Raises:
        IndexCorrupt, IndexMismatch: the current manifest cannot be read, so nobody knows what is needed.
        PublishConflict: others publish all the time.
        IndexUnavailable: the store does not respond; it can be run again.
    """
    if keep_versions < 1:
        raise ValueError("the current version is always kept")
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
    raise PublishConflict("others publish all the time; collect again later")


def _kept(
    store: ObjectStore, current: Published, keep_versions: int, horizon: datetime
) -> tuple[list[PastVersion], bool]:
    """The versions to keep, newest first, and whether there are older ones."""
    kept: list[PastVersion] = []
    for past in history(store, current.manifest):
        if len(kept) >= keep_versions and kept[-1].written_at <= horizon:  # its successor replaced it before that
            return kept, True
        kept.append(past)
    return kept, False


def _give_up_below(store: ObjectStore, current: Published, number: int) -> bool:
    """Make it known that older versions cannot be rolled back to. False if another version was published meanwhile."""
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
