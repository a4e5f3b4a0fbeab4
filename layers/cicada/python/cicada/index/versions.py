"""Versions of the index: reads the current one, publishes by compare-and-swap, lists old versions, rolls back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from cicada.errors import IndexCorrupt, IndexMissing, PublishConflict
from cicada.index.access_rules import change_readers
from cicada.index.manifest import (
    CURRENT_KEY,
    SEGMENTS_PREFIX,
    TOMBSTONES_PREFIX,
    VERSIONS_PREFIX,
    Manifest,
    parse_manifest,
    version_key,
)
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed
from cicada.rights import Readers

PUBLISH_ATTEMPTS = 10  # of a publication, on top of others that it does not conflict with
KEEP_ATTEMPTS = 3  # write; replace a damaged object; write again if that object is gone meanwhile
GRACE_S = 86_400.0  # seconds for which objects stay after they were written or current: readers may hold a version
MAX_WRITE_S = GRACE_S / 2  # seconds between a writer's first object and its publication, well within the grace


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Published:
    """The current version, and the entity tag that the next publication must find."""

    manifest: Manifest
    etag: str


def read_current(store: ObjectStore) -> Published | None:
    """The current version, or None. Raises IndexCorrupt, IndexMismatch or IndexUnavailable."""
    try:
        found = store.read(CURRENT_KEY)
    except ObjectMissing:
        return None
    return Published(parse_manifest(found.data), found.etag)


def must_be_published(store: ObjectStore) -> Published:
    """The current version. Raises IndexMissing, IndexCorrupt, IndexMismatch or IndexUnavailable."""
    current = read_current(store)
    if current is None:
        raise IndexMissing("no version has been published")
    return current


def keep(store: ObjectStore, key: str, data: bytes) -> None:
    """Write an object whose key derives from its content: an equal one may exist, a damaged one is replaced.

    Raises PublishConflict if another writer keeps writing other content there.
    """
    replaces: str | None = None
    for _ in range(KEEP_ATTEMPTS):
        try:
            store.write(key, data, replaces=replaces)
            return
        except PreconditionFailed:
            try:
                found = store.read(key)
            except ObjectMissing:
                replaces = None
                continue
        if found.data == data:
            return
        replaces = found.etag
    raise PublishConflict(f"another writer is writing different content to {key}")


def publish(store: ObjectStore, manifest: Manifest, *, replaces: str | None) -> None:
    """Make a version the current one, atomically.

    ``replaces`` is the entity tag of the manifest that this version is based on, None for none. Raises PublishConflict
    if another version was published concurrently. After IndexUnavailable the version may be current.
    """
    data = manifest.to_bytes()
    keep(store, version_key(manifest.version), data)
    try:
        store.write(CURRENT_KEY, data, replaces=replaces)
    except PreconditionFailed as error:
        # If S3's response to a successful write was lost, the SDK's retry of it is refused: then this version, or one
        # that was built upon it since, is current.
        current = read_current(store)
        if current is None or manifest.version not in (current.manifest.version, current.manifest.previous):
            raise PublishConflict(f"a newer version than {manifest.version} was published first") from error


def publish_on_top(
    store: ObjectStore, base: Published | None, make: Callable[[Published | None], Manifest]
) -> Manifest:
    """Publish a version; if others published meanwhile, make its manifest again on top of theirs.

    ``base`` was current when the change was planned. ``make`` raises PublishConflict if the change does not apply to
    the given version. After IndexUnavailable the version may be current.
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
    raise PublishConflict(f"{PUBLISH_ATTEMPTS} other versions were published concurrently")


def set_allow_partial(store: ObjectStore, allowed: bool, *, now: Callable[[], datetime] = utc_now) -> Manifest:
    """Publish whether readers may answer without unreadable segments; returns the current version.

    Raises IndexMissing, IndexCorrupt, IndexMismatch, IndexUnavailable or PublishConflict.
    """
    base = must_be_published(store)
    if base.manifest.allow_partial == allowed:
        return base.manifest

    def on_top_of(current: Published | None) -> Manifest:
        if current is None:
            raise PublishConflict("the published version no longer exists")
        return current.manifest.successor(created_at=now(), allow_partial=allowed)

    return publish_on_top(store, base, on_top_of)


def refuse_late(began_at: datetime, now: datetime) -> None:
    """Raises PublishConflict if the first object was written so long ago that it may have been deleted as garbage."""
    if (now - began_at).total_seconds() > MAX_WRITE_S:
        raise PublishConflict(
            f"writing took more than {MAX_WRITE_S / 3600:.0f} hours: the first objects may already be deleted"
        )


_VERSION_KEY = re.compile(version_key(r"(?P<version>\d{6,}-[0-9a-f]{16})"))
_REFERENCE = re.compile(rf'"((?:{SEGMENTS_PREFIX}|{TOMBSTONES_PREFIX})[^"\\]+)"')


@dataclass(frozen=True)
class PastVersion:
    """A stored version, which may be damaged or of another format."""

    version: str
    written_at: datetime
    data: bytes  # the stored manifest; empty if it is gone

    def manifest(self) -> Manifest:
        """Parse the manifest. Raises IndexCorrupt or IndexMismatch."""
        manifest = parse_manifest(self.data)
        if manifest.version != self.version:
            raise IndexCorrupt(f"{version_key(self.version)} contains version {manifest.version}")
        return manifest

    def previous(self) -> str | None:
        """The version that it replaced, if the stored manifest names it."""
        try:
            found = json.loads(self.data)
        except (ValueError, RecursionError):
            return None
        previous = found.get("previous") if isinstance(found, dict) else None
        return previous if isinstance(previous, str) else None

    def references(self) -> frozenset[str]:
        """The keys of all objects that it names, in any format."""
        return frozenset(_REFERENCE.findall(self.data.decode("utf-8", "replace")))


def version_number(version: str) -> int:
    """The number that a version's id starts with."""
    return int(version.partition("-")[0])


def stored_versions(store: ObjectStore) -> dict[str, datetime]:
    """The stored versions, oldest first, and when they were written. Some may never have been current."""
    found = {
        match["version"]: entry.modified_at
        for entry in store.entries(VERSIONS_PREFIX)
        if (match := _VERSION_KEY.fullmatch(entry.key))
    }
    return dict(sorted(found.items(), key=lambda each: version_number(each[0])))


def next_number(store: ObjectStore) -> int:
    """A number above those of all stored versions."""
    return 1 + max(map(version_number, stored_versions(store)), default=0)


def history(store: ObjectStore, newest: Manifest) -> Iterator[PastVersion]:
    """A version and its predecessors that can still be rolled back to, newest first.

    Each names the one before. If that is unreadable or gone, the next lower number in the store follows.
    """
    stored = stored_versions(store)
    past = PastVersion(newest.version, stored.get(newest.version, newest.created_at), newest.to_bytes())
    while True:
        yield past
        number = version_number(past.version)
        lower = [version for version in stored if newest.kept_from <= version_number(version) < number]
        if not lower:
            return
        previous = past.previous()
        version = previous if previous in lower else lower[-1]
        try:
            data = store.read(version_key(version)).data
        except ObjectMissing:
            data = b""
        past = PastVersion(version, stored[version], data)


def restore(store: ObjectStore, version: str, *, now: Callable[[], datetime] = utc_now) -> Manifest:
    """Roll back: publish an old version's content as a new version, also in place of a damaged current manifest.

    Returns the current version, which stays if it is the one to roll back to. Raises IndexMissing if the version is not
    stored; IndexCorrupt if it is damaged or lacks an object; IndexMismatch if it has another format; PublishConflict if
    another version was published concurrently.
    """
    began = _newest(store)
    for _ in range(PUBLISH_ATTEMPTS):
        newest = _newest(store)
        if newest.manifest.version != began.manifest.version:
            raise PublishConflict(f"version {newest.manifest.version} was published concurrently")
        past = next((past for past in history(store, newest.manifest) if past.version == version), None)
        if past is None:
            raise IndexMissing(f"cannot roll back: version {version} does not exist")
        old = past.manifest()
        if newest.sound and old.version == newest.manifest.version:
            return old
        _refuse_incomplete(store, old)
        for declared in old.declarations:  # a collection that is gone has lost its rule, which comes back with it
            if declared.readers is not None:
                change_readers(store, declared.collection, partial(_or, declared.readers))
        manifest = old.derive(
            number=newest.manifest.number + 1 if newest.sound else next_number(store),
            created_at=now(),
            previous=newest.manifest.version,
            kept_from=newest.manifest.kept_from,
        )
        try:
            publish(store, manifest, replaces=newest.etag)
        except PublishConflict:
            continue  # garbage collection rewrites the current manifest, and may have deleted this version
        return manifest
    raise PublishConflict("too many concurrent writes of the current version's manifest")


def _or(declared: Readers, rule: Readers | None) -> Readers:
    return declared if rule is None else rule


@dataclass(frozen=True)
class _Newest:
    """The version that a roll-back replaces."""

    manifest: Manifest
    etag: str | None  # of the object at the current manifest's key
    sound: bool  # False if the current manifest is damaged, and this is the newest readable version


def _newest(store: ObjectStore) -> _Newest:
    try:
        current = must_be_published(store)
    except (IndexMissing, IndexCorrupt):
        try:
            etag = store.read(CURRENT_KEY).etag
        except ObjectMissing:
            etag = None
        for version, written_at in reversed(stored_versions(store).items()):
            try:
                newest = PastVersion(version, written_at, store.read(version_key(version)).data).manifest()
            except (ObjectMissing, IndexCorrupt):
                continue
            return _Newest(newest, etag, sound=False)
        raise
    return _Newest(current.manifest, current.etag, sound=True)


def _refuse_incomplete(store: ObjectStore, manifest: Manifest) -> None:
    present = {entry.key for prefix in (SEGMENTS_PREFIX, TOMBSTONES_PREFIX) for entry in store.entries(prefix)}
    for segment in manifest.segments:
        for key in (segment.key, *((segment.tombstones.key,) if segment.tombstones else ())):
            if key not in present:
                raise IndexCorrupt(f"version {manifest.version} cannot be rolled back to: {key} is missing")
