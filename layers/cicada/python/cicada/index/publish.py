"""Reading what is published, and making a version the current one by compare-and-swap."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from cicada.errors import IndexMissing, PublishConflict
from cicada.index.manifest import (
    CURRENT_KEY,
    VERSIONS_PREFIX,
    Manifest,
    SegmentEntry,
    parse_manifest,
    version_key,
)
from cicada.index.store import ObjectMissing, ObjectStore, PreconditionFailed

PUBLISH_ATTEMPTS = 5
"""How often a publication is made again on top of another one that it does not touch."""
KEEP_ATTEMPTS = 3
"""Write, replace what is damaged, and once more if that one is gone meanwhile."""

_VERSION_KEY = re.compile(version_key(r"(?P<version>\d{6,}-[0-9a-f]{16})"))


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


def published_versions(store: ObjectStore) -> list[str]:
    """The ids of all versions that were ever published, oldest first."""
    found = (_VERSION_KEY.fullmatch(key) for key in store.keys(VERSIONS_PREFIX))
    return sorted((match["version"] for match in found if match), key=version_number)


def version_number(version: str) -> int:
    """The number at the head of a version's id."""
    return int(version.partition("-")[0])


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
        store: where the version's segments already are.
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
        current = read_current(store)  # a write whose response was lost is refused when it is tried again
        if current is None or current.manifest != manifest:
            raise PublishConflict(f"version {manifest.version} was overtaken") from error


def publish_collection(
    store: ObjectStore,
    base: Published | None,
    collection: str,
    make: Callable[[Published | None], Manifest],
) -> Manifest:
    """Publish a version that changes one collection, again on top of others' publications if those do not touch it.

    Args:
        store: where the version's segments already are.
        base: what was published when the collection was read.
        collection: the one that changes.
        make: makes the version's manifest on top of what is published.

    Raises:
        PublishConflict: the same collection was published in between, or the index was started over.
    """
    current = base
    for _ in range(PUBLISH_ATTEMPTS):
        manifest = make(current)
        try:
            publish(store, manifest, replaces=None if current is None else current.etag)
        except PublishConflict:
            current = read_current(store)
            if _touches(base, current, collection):
                raise
        else:
            return manifest
    raise PublishConflict(f"{PUBLISH_ATTEMPTS} other versions were published meanwhile")


def restore(store: ObjectStore, version: str, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Manifest:
    """Roll back: publish an old version's content as a new version.

    Raises:
        IndexMissing: there is no such version, or none at all.
        PublishConflict: another version was published in between.
    """
    current = read_current(store)
    try:
        old = parse_manifest(store.read(version_key(version)).data)
    except ObjectMissing as error:
        raise IndexMissing(f"there is no version {version}") from error
    if current is None:
        raise IndexMissing("no version is published")
    manifest = Manifest.create(
        number=current.manifest.number + 1,
        created_at=now(),
        embedding_model_id=old.embedding_model_id,
        dimensions=old.dimensions,
        segments=old.segments,
        previous=current.manifest.version,
    )
    publish(store, manifest, replaces=current.etag)
    return manifest


def _touches(base: Published | None, current: Published | None, collection: str) -> bool:
    """Whether what was published since ``base`` stands against a change of the collection."""
    if current is None:
        return True
    before: tuple[SegmentEntry, ...] = ()
    if base is not None:
        before = base.manifest.of_collection(collection)
        if (base.manifest.embedding_model_id, base.manifest.dimensions) != (
            current.manifest.embedding_model_id,
            current.manifest.dimensions,
        ):
            return True
    return current.manifest.of_collection(collection) != before
