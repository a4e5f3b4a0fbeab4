"""Reading what is published, and making a version the current one by compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from cicada.errors import IndexMissing, PublishConflict
from cicada.index.manifest import CURRENT_KEY, Manifest, SegmentEntry, parse_manifest, version_key
from cicada.index.store import ObjectMissing, ObjectStore, PreconditionFailed

PUBLISH_ATTEMPTS = 10
"""How often a publication is made again on top of others that it does not touch."""
KEEP_ATTEMPTS = 3
"""Write, replace what is damaged, and once more if that one is gone meanwhile."""
GRACE_S = 86_400.0
"""Seconds (24 hours) for which nothing that was written, or was current, is deleted: writers publish what they wrote
within it, and readers may hold on to a version that long."""
MAX_WRITE_S = GRACE_S / 2
"""Seconds between a writer's first object and its publication: well within the grace."""


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Published:
    """The current version, and the entity tag that the next publication must find."""

    manifest: Manifest
    etag: str


def read_current(store: ObjectStore) -> Published | None:
    """What is published now; None if nothing is.

    Raises:
        IndexCorrupt, IndexMismatch, IndexUnavailable: as their names say.
    """
    try:
        found = store.read(CURRENT_KEY)
    except ObjectMissing:
        return None
    return Published(parse_manifest(found.data), found.etag)


def must_be_published(store: ObjectStore) -> Published:
    """What is published now.

    Raises:
        IndexMissing: nothing is.
        IndexCorrupt, IndexMismatch, IndexUnavailable: as their names say.
    """
    current = read_current(store)
    if current is None:
        raise IndexMissing("no version is published")
    return current


def successor(current: Manifest, segments: tuple[SegmentEntry, ...], *, created_at: datetime) -> Manifest:
    """The version after ``current`` that differs from it in its segments alone."""
    return Manifest.create(
        number=current.number + 1,
        created_at=created_at,
        embedding_model_id=current.embedding_model_id,
        dimensions=current.dimensions,
        analyzer_version=current.analyzer_version,
        allow_partial=current.allow_partial,
        segments=segments,
        previous=current.version,
        kept_from=current.kept_from,
        declarations=current.declarations,
    )


def keep(store: ObjectStore, key: str, data: bytes) -> None:
    """Write an object whose key follows from its content: an equal one may be there, a damaged one is replaced.

    Raises:
        PublishConflict: somebody else keeps writing another content there.
        IndexUnavailable: the store does not respond.
    """
    replaces: str | None = None
    for _ in range(KEEP_ATTEMPTS):
        try:
            store.write(key, data, replaces=replaces)
        except PreconditionFailed:
            try:
                found = store.read(key)
            except ObjectMissing:
                replaces = None
                continue
            if found.data == data:
                return
            replaces = found.etag
        else:
            return
    raise PublishConflict(f"{key} is being written with another content")


def publish(store: ObjectStore, manifest: Manifest, *, replaces: str | None) -> None:
    """Make a version the current one; readers see the old one or this one, never a mixture.

    Args:
        store: where the version's objects already are.
        manifest: the version.
        replaces: the entity tag of the current manifest that this version was made from; None if there was none.

    Raises:
        PublishConflict: another version was published in between.
        IndexUnavailable: the store does not respond; the version may or may not be current.
    """
    data = manifest.to_bytes()
    keep(store, version_key(manifest.version), data)
    try:
        store.write(CURRENT_KEY, data, replaces=replaces)
    except PreconditionFailed as error:
        # a write whose response was lost is refused when it is tried again, and may have been built upon since
        current = read_current(store)
        if current is None or manifest.version not in (current.manifest.version, current.manifest.previous):
            raise PublishConflict(f"version {manifest.version} was overtaken") from error


def publish_on_top(
    store: ObjectStore, base: Published | None, make: Callable[[Published | None], Manifest]
) -> Manifest:
    """Publish a version, made again on top of others' publications while ``make`` agrees to that.

    Args:
        store: where the version's objects already are.
        base: what was published when the change was planned.
        make: makes the version's manifest on top of what is published; raises PublishConflict if that stands against
            the change.

    Raises:
        PublishConflict: ``make`` raised it, or others publish all the time.
        IndexUnavailable: the store does not respond; the version may or may not be current.
    """
    current = base
    for _ in range(PUBLISH_ATTEMPTS):
        manifest = make(current)
        try:
            publish(store, manifest, replaces=None if current is None else current.etag)
        except PublishConflict:
            current = read_current(store)
        else:
            return manifest
    raise PublishConflict(f"{PUBLISH_ATTEMPTS} other versions were published meanwhile")


def set_allow_partial(store: ObjectStore, allowed: bool, *, now: Callable[[], datetime] = utc_now) -> Manifest:
    """Publish whether readers may answer from the rest of the index when a segment of it cannot be read.

    Returns:
        The version that is current now; it is the one before if that said so already.

    Raises:
        IndexMissing, IndexCorrupt, IndexMismatch, IndexUnavailable, PublishConflict: as their names say.
    """
    base = must_be_published(store)
    if base.manifest.allow_partial == allowed:
        return base.manifest

    def on_top_of(current: Published | None) -> Manifest:
        if current is None:
            raise PublishConflict("what was published is gone")
        return successor(current.manifest, current.manifest.segments, created_at=now()).allowing_partial(allowed)

    return publish_on_top(store, base, on_top_of)


def refuse_late(began_at: datetime, now: datetime) -> None:
    """Refuse to publish what was written so long ago that it may have been collected as garbage.

    Raises:
        PublishConflict: that is so.
    """
    if (now - began_at).total_seconds() > MAX_WRITE_S:
        raise PublishConflict(
            f"writing took more than {MAX_WRITE_S / 3600:.0f} hours: what was written first may be gone"
        )
