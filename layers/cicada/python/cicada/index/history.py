"""The versions before the current one: listing them, and rolling back to one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from cicada.errors import IndexCorrupt, IndexMissing, PublishConflict
from cicada.index.manifest import (
    CURRENT_KEY,
    SEGMENTS_PREFIX,
    TOMBSTONES_PREFIX,
    VERSIONS_PREFIX,
    Manifest,
    parse_manifest,
    version_key,
)
from cicada.index.publish import PUBLISH_ATTEMPTS, must_be_published, publish, utc_now
from cicada.index.store import ObjectMissing, ObjectStore

_VERSION_KEY = re.compile(version_key(r"(?P<version>\d{6,}-[0-9a-f]{16})"))
_REFERENCE = re.compile(rf'"((?:{SEGMENTS_PREFIX}|{TOMBSTONES_PREFIX})[^"\\]+)"')


@dataclass(frozen=True)
class PastVersion:
    """A version as it is kept; it may be damaged, or of another format."""

    version: str
    written_at: datetime
    data: bytes
    """The stored manifest; empty if it is gone."""

    def manifest(self) -> Manifest:
        """The version.

        Raises:
            IndexCorrupt, IndexMismatch: it cannot be read.
        """
        manifest = parse_manifest(self.data)
        if manifest.version != self.version:
            raise IndexCorrupt(f"{version_key(self.version)} holds version {manifest.version}")
        return manifest

    def previous(self) -> str | None:
        """The version that it replaced, as far as it can be told."""
        try:
            found = json.loads(self.data)
        except (ValueError, RecursionError):
            return None
        told = found.get("previous") if isinstance(found, dict) else None
        return told if isinstance(told, str) else None

    def references(self) -> frozenset[str]:
        """The keys of all objects that it names, whatever its format."""
        return frozenset(_REFERENCE.findall(self.data.decode("utf-8", "replace")))


def version_number(version: str) -> int:
    """The number at the head of a version's id."""
    return int(version.partition("-")[0])


def stored_versions(store: ObjectStore) -> dict[str, datetime]:
    """The versions whose manifests are in the store, oldest first, and when they were written.

    Among them may be some that never became current: their writers were overtaken, or died.
    """
    found = {
        match["version"]: entry.modified_at
        for entry in store.entries(VERSIONS_PREFIX)
        if (match := _VERSION_KEY.fullmatch(entry.key))
    }
    return dict(sorted(found.items(), key=lambda each: version_number(each[0])))


def next_number(store: ObjectStore) -> int:
    """A version's number that is higher than all in the store."""
    return 1 + max(map(version_number, stored_versions(store)), default=0)


def history(store: ObjectStore, newest: Manifest) -> Iterator[PastVersion]:
    """A version and those before it that can still be rolled back to, newest first.

    Each names the one before. Where that is not told, or is gone, the next lower number that is in the store follows.

    Raises:
        IndexUnavailable: the store does not respond.
    """
    stored = stored_versions(store)
    past = PastVersion(newest.version, stored.get(newest.version, newest.created_at), newest.to_bytes())
    while True:
        yield past
        number = version_number(past.version)
        lower = [version for version in stored if newest.kept_from <= version_number(version) < number]
        if not lower:
            return
        told = past.previous()
        version = told if told in lower else lower[-1]
        try:
            data = store.read(version_key(version)).data
        except ObjectMissing:
            data = b""
        past = PastVersion(version, stored[version], data)


def restore(store: ObjectStore, version: str, *, now: Callable[[], datetime] = utc_now) -> Manifest:
    """Roll back: publish an old version's content as a new version. A damaged current manifest is mended by it.

    Returns:
        The version that is current now; it is the one before if that was rolled back to.

    Raises:
        IndexMissing: there is no such version, not any more, or none at all.
        IndexCorrupt: the version lacks an object, or its manifest is damaged.
        IndexMismatch: it has a format that this version of Cicada does not read.
        PublishConflict: another version was published in between.
        IndexUnavailable: the store does not respond.
    """
    began = _standing(store)
    for _ in range(PUBLISH_ATTEMPTS):
        standing = _standing(store)
        if standing.newest.version != began.newest.version:
            raise PublishConflict(f"version {standing.newest.version} was published in between")
        past = next((past for past in history(store, standing.newest) if past.version == version), None)
        if past is None:
            raise IndexMissing(f"there is no version {version} to roll back to")
        old = past.manifest()
        if standing.sound and old.version == standing.newest.version:
            return old
        _refuse_incomplete(store, old)
        manifest = Manifest.create(
            number=standing.next_number,
            created_at=now(),
            embedding_model_id=old.embedding_model_id,
            dimensions=old.dimensions,
            analyzer_version=old.analyzer_version,
            allow_partial=old.allow_partial,
            segments=old.segments,
            previous=standing.newest.version,
            kept_from=standing.newest.kept_from,
            declarations=old.declarations,
        )
        try:
            publish(store, manifest, replaces=standing.etag)
        except PublishConflict:
            continue  # older versions may have been given up meanwhile, this one among them
        return manifest
    raise PublishConflict("the current version's manifest is being written all the time")


@dataclass(frozen=True)
class _Standing:
    """What a roll-back begins from."""

    newest: Manifest
    sound: bool
    """Whether it is the current version, and not the newest that can be read in place of a damaged one."""
    etag: str | None
    next_number: int


def _standing(store: ObjectStore) -> _Standing:
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
            return _Standing(newest, False, etag, next_number(store))
        raise
    return _Standing(current.manifest, True, current.etag, current.manifest.number + 1)


def _refuse_incomplete(store: ObjectStore, manifest: Manifest) -> None:
    present = {entry.key for prefix in (SEGMENTS_PREFIX, TOMBSTONES_PREFIX) for entry in store.entries(prefix)}
    for segment in manifest.segments:
        for key in (segment.key, *((segment.tombstones.key,) if segment.tombstones else ())):
            if key not in present:
                raise IndexCorrupt(f"version {manifest.version} cannot be rolled back to: {key} is missing")
