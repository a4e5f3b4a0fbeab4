"""The index's store for those who change it: what makes a version or an access rule current leaves an audit record.

Publishing, rolling back and changing access rules each end in one conditional write of one object. Recorded there,
whichever command or function makes the change, none is missed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from cicada.audit.records import Action, record, utc_now
from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.access_rules import ACCESS_KEY
from cicada.index.manifest import CURRENT_KEY, Manifest, parse_manifest
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed, StoredEntry, StoredObject


@dataclass(frozen=True)
class _Found:
    """What a write changes."""

    action: Action
    subject: str | None
    details: Mapping[str, Any]


class RecordedStore:
    """An :class:`~cicada.index.ports.ObjectStore` over another one.

    A write that changes the current version or the access rules raises AuditUnavailable if it cannot be recorded;
    nothing was written then.
    """

    def __init__(
        self,
        store: ObjectStore,
        actor: str,
        *,
        publishing: Literal["version_published", "version_rolled_back"] = "version_published",
        details: Mapping[str, Any] | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Write to a store.

        Args:
            store: of the deployment's bucket.
            actor: who changes the index, see :func:`cicada.audit.records.record`.
            publishing: how a new current version is recorded.
            details: of every record.
            now: the clock.
        """
        self._store = store
        self._actor = actor
        self._publishing: Action = publishing
        self._details = details or {}
        self._now = now

    def read(self, key: str) -> StoredObject:  # noqa: D102 (the port's contract)
        return self._store.read(key)

    def read_if_changed(self, key: str, etag: str) -> StoredObject | None:  # noqa: D102
        return self._store.read_if_changed(key, etag)

    def read_range(self, key: str, start: int, length: int) -> bytes:  # noqa: D102
        return self._store.read_range(key, start, length)

    def entries(self, prefix: str) -> Iterator[StoredEntry]:  # noqa: D102
        return self._store.entries(prefix)

    def delete(self, key: str) -> None:  # noqa: D102
        self._store.delete(key)

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:  # noqa: D102
        found = self._found(key, data)
        if found is None:
            return self._store.write(key, data, replaces=replaces)
        details = {**self._details, **found.details}
        with record(
            self._store, found.action, actor=self._actor, subject=found.subject, details=details, now=self._now
        ):
            return self._write(key, data, replaces)

    def _write(self, key: str, data: bytes, replaces: str | None) -> str:
        try:
            return self._store.write(key, data, replaces=replaces)
        except PreconditionFailed:
            present = self._present(key)
            if present is None or present.data != data:
                raise
            return present.etag  # written by an attempt whose response was lost

    def _found(self, key: str, data: bytes) -> _Found | None:
        if key == CURRENT_KEY:
            return self._of_version(self._manifest(), parse_manifest(data))
        if key == ACCESS_KEY:
            return _of_rules(self._present(key), data)
        return None

    def _of_version(self, before: Manifest | None, after: Manifest) -> _Found | None:
        if before is not None and before.version == after.version:  # garbage collection notes what it kept
            return None
        changed = _changed_collections(before, after)
        details: dict[str, Any] = {
            "version": after.version,
            "replaces": None if before is None else before.version,
            "collections": changed,
        }
        if before is not None and before.allow_partial != after.allow_partial:
            details["allowPartial"] = after.allow_partial
        return _Found(self._publishing, changed[0] if len(changed) == 1 else None, details)

    def _manifest(self) -> Manifest | None:
        """The current version; None if there is none that can be read."""
        present = self._present(CURRENT_KEY)
        try:
            return None if present is None else parse_manifest(present.data)
        except (IndexCorrupt, IndexMismatch):
            return None

    def _present(self, key: str) -> StoredObject | None:
        try:
            return self._store.read(key)
        except ObjectMissing:
            return None


def _changed_collections(before: Manifest | None, after: Manifest) -> list[str]:
    if before is None:
        return sorted(after.collections)
    return sorted(
        name for name in {*before.collections, *after.collections} if _holds(before, name) != _holds(after, name)
    )


def _holds(manifest: Manifest, collection: str) -> tuple[object, ...]:
    return (manifest.of_collection(collection), manifest.declaration(collection))


def _of_rules(present: StoredObject | None, data: bytes) -> _Found:
    before, after = _readers(present.data if present else b"{}"), _readers(data)
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    told = {name: {"readers": after.get(name), "before": before.get(name)} for name in changed}
    return _Found("access_changed", changed[0] if len(changed) == 1 else None, {"collections": told})


def _readers(data: bytes) -> dict[str, Any]:
    try:
        readers = json.loads(data).get("readers", {})
    except (AttributeError, ValueError):
        return {}
    return readers if isinstance(readers, dict) else {}
