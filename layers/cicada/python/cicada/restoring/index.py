"""Restores the index: damaged objects from their earlier versions, or a whole version from a copy of the bucket.

Both are planned first, by reading alone. Carrying a plan out changes the current version last, by compare-and-swap, so
that it can be interrupted and repeated at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from cicada.errors import IndexCorrupt, IndexMissing, PublishConflict
from cicada.index.access_rules import ACCESS_KEY, StoredAccessRules
from cicada.index.collection_snapshot import SegmentSnapshot
from cicada.index.maintenance import Damage, kept_manifest_damage
from cicada.index.manifest import (
    CURRENT_KEY,
    SEGMENTS_PREFIX,
    TOMBSTONES_PREFIX,
    Manifest,
    SegmentEntry,
    parse_manifest,
    version_key,
)
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed, Progress, silent
from cicada.index.segment_reader import read_tombstones
from cicada.index.versions import Published, keep, next_number, publish, read_current, utc_now
from cicada.restoring.object_versions import EarlierView, ObjectVersion, VersionedBucket, read_or_none

_Check = Callable[[EarlierView], object]


@dataclass(frozen=True)
class PutBackPlan:
    """How damaged or deleted objects of the current version come back."""

    manifest: Manifest
    """Of the version that is current then."""
    put_back: tuple[ObjectVersion, ...]
    """The newest sound version of each damaged object."""
    rewritten: tuple[str, ...]
    """Keys whose content is known without an earlier version."""
    lost: tuple[Damage, ...]
    """Damaged objects without a sound version."""

    @property
    def due(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.put_back or self.rewritten)


def plan_put_back(store: ObjectStore, bucket: VersionedBucket, *, progress: Progress = silent) -> PutBackPlan:
    """Verify every object of the current version, and find a sound version of each damaged one.

    Raises IndexMissing if nothing was ever published; IndexCorrupt if no version of the current manifest can be read;
    IndexMismatch or IndexNewer if another release wrote it; IndexUnavailable.
    """
    view, put_back, lost = EarlierView(store, bucket), list[ObjectVersion](), list[Damage]()

    def mend(key: str, size: int | None, check: _Check, collection: str | None = None) -> bool:
        nonlocal view
        try:
            version = _sound_version(view, key, size, check)
        except IndexCorrupt as error:
            lost.append(Damage(key, collection, str(error)))
            return False
        if version is not None:
            view = view.showing(version)
            put_back.append(version)
        return True

    if not mend(CURRENT_KEY, None, _manifest):
        if not bucket.versions(CURRENT_KEY):
            raise IndexMissing("no version has ever been published")
        raise IndexCorrupt(lost[0].reason)
    manifest = _manifest(view)
    if read_or_none(store, ACCESS_KEY) is not None or bucket.versions(ACCESS_KEY):
        mend(ACCESS_KEY, None, _rules)
    for done, entry in enumerate(manifest.segments):
        progress("checking", done, len(manifest.segments))
        for key, size, check in _objects(manifest, entry):
            if not mend(key, size, check, entry.collection):
                break
    progress("checking", len(manifest.segments), len(manifest.segments))
    rewritten = tuple(damage.key for damage in kept_manifest_damage(view, manifest))
    return PutBackPlan(manifest, tuple(put_back), rewritten, tuple(lost))


def put_back(store: ObjectStore, bucket: VersionedBucket, plan: PutBackPlan, *, progress: Progress = silent) -> None:
    """Carry a plan out. Raises PublishConflict if another version was published meanwhile; IndexUnavailable."""
    last = {CURRENT_KEY: 2, ACCESS_KEY: 1}
    if plan.rewritten:
        keep(store, version_key(plan.manifest.version), plan.manifest.to_bytes())
    for done, version in enumerate(sorted(plan.put_back, key=lambda one: last.get(one.key, 0))):
        progress("writing", done, len(plan.put_back))
        if version.key in last:
            _replace(store, version.key, bucket.read(version))
        else:
            bucket.copy_from(bucket.name, version)  # in S3, whatever its size
    progress("writing", len(plan.put_back), len(plan.put_back))


def _sound_version(view: EarlierView, key: str, size: int | None, check: _Check) -> ObjectVersion | None:
    """The newest sound version of an object; None if the object is sound as it is. Raises IndexCorrupt."""
    try:
        check(view)
        return None
    except IndexCorrupt as error:
        damage = error
    for version in view.bucket.versions(key):
        if size is None or version.bytes == size:
            try:
                check(view.showing(version))
                return version
            except IndexCorrupt:
                continue
    raise damage


def _manifest(view: EarlierView) -> Manifest:
    return parse_manifest(_must_read(view, CURRENT_KEY))


def _rules(view: EarlierView) -> None:
    _must_read(view, ACCESS_KEY)
    StoredAccessRules(view).rules()


def _must_read(view: EarlierView, key: str) -> bytes:
    try:
        return view.read(key).data
    except ObjectMissing as error:
        raise IndexCorrupt(f"{key} is missing") from error


def _objects(manifest: Manifest, entry: SegmentEntry) -> Iterator[tuple[str, int, _Check]]:
    """A segment's objects, each with its size and its check: tombstones first, because the segment's reads them."""
    if entry.tombstones is not None:
        yield entry.tombstones.key, entry.tombstones.bytes, lambda view: read_tombstones(view, entry)
    yield entry.key, entry.bytes, lambda view: SegmentSnapshot.read(view, manifest, entry).verify(view)


def _replace(store: ObjectStore, key: str, data: bytes) -> None:
    present = read_or_none(store, key)
    if present is not None and present.data == data:
        return
    try:
        store.write(key, data, replaces=None if present is None else present.etag)
    except PreconditionFailed as error:
        raise PublishConflict(f"{key} was written concurrently") from error


@dataclass(frozen=True)
class CopyPlan:
    """How a copy of the bucket becomes the index of this one."""

    manifest: Manifest
    """The newest version of which every object is in the copy."""
    incomplete: tuple[str, ...]
    """Newer versions whose objects had not all arrived there."""
    objects: tuple[ObjectVersion, ...]
    """To be copied."""
    present: int
    """Objects that were copied before."""
    rules: bytes | None
    """Who may read which collections."""
    replaces: Published | None
    """This bucket's own version."""

    @property
    def due(self) -> bool:
        """Whether there is anything to do."""
        held = self.replaces
        return held is None or held.manifest.segments != self.manifest.segments


def plan_copy(store: ObjectStore, copies: ObjectStore, bucket: VersionedBucket) -> CopyPlan:
    """Find the newest complete version in a copy of the bucket, and what of it is not here yet.

    Replication keeps no order: a manifest can arrive before its segments. Raises IndexMissing if the copy holds no
    complete version; IndexMismatch or IndexNewer if another release wrote it; IndexUnavailable.
    """
    there, incomplete = _sizes(copies), list[str]()
    for version in bucket.versions(CURRENT_KEY):
        try:
            manifest = parse_manifest(bucket.read(version))
        except IndexCorrupt:
            continue
        wanted = dict(_references(manifest))
        if wanted.items() <= there.items():
            break
        incomplete.append(manifest.version)
    else:
        raise IndexMissing(f"{bucket.name} has no complete version of the index")
    here = _sizes(store)
    missing = [key for key, size in wanted.items() if here.get(key) != size]
    rules = read_or_none(copies, ACCESS_KEY)
    return CopyPlan(
        manifest=manifest,
        incomplete=tuple(dict.fromkeys(incomplete)),
        objects=tuple(bucket.versions(key)[0] for key in missing),
        present=len(wanted) - len(missing),
        rules=None if rules is None else rules.data,
        replaces=read_current(store),
    )


def copy_index(
    store: ObjectStore,
    bucket: VersionedBucket,
    source: str,
    plan: CopyPlan,
    *,
    progress: Progress = silent,
    now: Callable[[], datetime] = utc_now,
) -> Manifest:
    """Copy the objects from a bucket named ``source`` and publish the version; returns it as it is current then.

    Raises PublishConflict if another version was published meanwhile; IndexUnavailable.
    """
    for done, version in enumerate(plan.objects):
        progress("writing", done, len(plan.objects))
        bucket.copy_from(source, version)
    progress("writing", len(plan.objects), len(plan.objects))
    if plan.rules is not None:
        _replace(store, ACCESS_KEY, plan.rules)
    manifest, held = plan.manifest, plan.replaces
    if held is not None:
        manifest = manifest.derive(number=next_number(store), created_at=now(), previous=held.manifest.version)
    publish(store, manifest, replaces=None if held is None else held.etag)
    return manifest


def _references(manifest: Manifest) -> Iterator[tuple[str, int]]:
    for entry in manifest.segments:
        yield entry.key, entry.bytes
        if entry.tombstones is not None:
            yield entry.tombstones.key, entry.tombstones.bytes


def _sizes(store: ObjectStore) -> dict[str, int]:
    return {
        entry.key: entry.bytes for prefix in (SEGMENTS_PREFIX, TOMBSTONES_PREFIX) for entry in store.entries(prefix)
    }
