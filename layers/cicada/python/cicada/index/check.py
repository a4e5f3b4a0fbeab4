"""Checking an index: every object of the current version is read, and every digest verified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.held import HeldSegment, IdDigests
from cicada.index.manifest import Manifest, SegmentEntry, parse_manifest, version_key
from cicada.index.progress import Progress, silent
from cicada.index.publish import must_be_published
from cicada.index.store import ObjectMissing, ObjectStore


@dataclass(frozen=True)
class Damage:
    """An object that is not what was written."""

    key: str
    collection: str | None
    """The one whose passages it holds."""
    reason: str


@dataclass(frozen=True)
class Checked:
    """What a check came to."""

    version: str
    objects: int
    bytes: int
    """Of the objects."""
    damaged: tuple[Damage, ...]


def check_index(store: ObjectStore, *, progress: Progress = silent) -> Checked:
    """Read every object of the current version and verify every digest; one segment is in memory at a time.

    Raises:
        IndexMissing: nothing is published.
        IndexCorrupt, IndexMismatch: the current manifest is damaged, or of another format.
        IndexUnavailable: the store does not respond.
    """
    manifest = must_be_published(store).manifest
    damaged = _kept_manifest(store, manifest)
    held: dict[str, IdDigests] = {}
    for done, entry in enumerate(manifest.segments):
        progress("checking", done, len(manifest.segments))
        before = held.get(entry.collection, np.empty(0, dtype=np.uint64))
        try:
            ids = _verified_ids(store, manifest, entry)
            if twice := np.intersect1d(before, ids).size:
                raise IndexCorrupt(f"{twice} of its passages are in another segment of {entry.collection} too")
        except (IndexCorrupt, IndexMismatch) as error:
            damaged.append(Damage(entry.key, entry.collection, str(error)))
        else:
            held[entry.collection] = np.concatenate([before, ids])
    progress("checking", len(manifest.segments), len(manifest.segments))
    tombstones = [entry.tombstones.bytes for entry in manifest.segments if entry.tombstones]
    return Checked(
        version=manifest.version,
        objects=2 + len(manifest.segments) + len(tombstones),
        bytes=2 * len(manifest.to_bytes()) + sum(entry.bytes for entry in manifest.segments) + sum(tombstones),
        damaged=tuple(damaged),
    )


def _verified_ids(store: ObjectStore, manifest: Manifest, entry: SegmentEntry) -> IdDigests:
    segment = HeldSegment.read(
        store, entry, embedding_model_id=manifest.embedding_model_id, dimensions=manifest.dimensions
    )
    segment.verify(store)
    return segment.ids


def _kept_manifest(store: ObjectStore, manifest: Manifest) -> list[Damage]:
    """What is wrong with the copy of the manifest that a later roll-back would read."""
    key = version_key(manifest.version)
    try:
        kept = parse_manifest(store.read(key).data)
    except ObjectMissing:
        return [Damage(key, None, "it is missing")]
    except (IndexCorrupt, IndexMismatch) as error:
        return [Damage(key, None, str(error))]
    return [] if kept.version == manifest.version else [Damage(key, None, f"it is version {kept.version}")]
