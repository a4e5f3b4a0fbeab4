"""Earlier versions of a versioned bucket's objects, and a store that shows some objects as they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from cicada.errors import IndexUnavailable
from cicada.index.ports import ObjectMissing, ObjectStore, StoredEntry, StoredObject

_FAILURES = (BotoCoreError, ClientError, HTTPError, OSError)


@dataclass(frozen=True)
class ObjectVersion:
    """One version of an object's content."""

    key: str
    id: str
    bytes: int
    modified_at: datetime


class VersionedBucket:
    """Reads and copies versions of objects. Every method raises IndexUnavailable."""

    def __init__(self, client: Any, bucket: str) -> None:
        """``client``: an S3 client of the bucket's Region."""
        self._client = client
        self.name = bucket

    def versions(self, key: str) -> list[ObjectVersion]:
        """The stored versions of an object, newest first; deletions are left out."""
        found: list[ObjectVersion] = []
        try:
            for page in self._client.get_paginator("list_object_versions").paginate(Bucket=self.name, Prefix=key):
                found += [
                    ObjectVersion(key, str(one["VersionId"]), int(one["Size"]), one["LastModified"])
                    for one in page.get("Versions", ())
                    if one["Key"] == key
                ]
        except _FAILURES as error:
            raise IndexUnavailable(f"S3 could not list the versions of s3://{self.name}/{key}: {error}") from error
        return found

    def read(self, version: ObjectVersion, start: int = 0, length: int | None = None) -> bytes:
        """A version's bytes, or some of them."""
        if length is not None and start >= version.bytes:
            return b""
        span = {} if length is None else {"Range": f"bytes={start}-{start + length - 1}"}
        try:
            found = self._client.get_object(Bucket=self.name, Key=version.key, VersionId=version.id, **span)
            with found["Body"] as body:
                return bytes(body.read())
        except _FAILURES as error:
            raise IndexUnavailable(f"S3 could not read a version of s3://{self.name}/{version.key}: {error}") from error

    def copy_from(self, source: str, version: ObjectVersion) -> None:
        """Make a version of an object in a bucket, this one or another, the newest version of this bucket's object."""
        named = {"Bucket": source, "Key": version.key, "VersionId": version.id}
        try:
            self._client.copy_object(Bucket=self.name, Key=version.key, CopySource=named)
        except _FAILURES as error:
            raise IndexUnavailable(f"S3 could not copy s3://{source}/{version.key} to {self.name}: {error}") from error


@dataclass(frozen=True)
class EarlierView:
    """An :class:`~cicada.index.ports.ObjectStore` to read, which shows some objects as an earlier version had them."""

    store: ObjectStore
    bucket: VersionedBucket
    shown: Mapping[str, ObjectVersion] = field(default_factory=dict)

    def showing(self, *versions: ObjectVersion) -> EarlierView:
        """The same with further objects as they were."""
        return EarlierView(self.store, self.bucket, {**self.shown, **{one.key: one for one in versions}})

    def read(self, key: str) -> StoredObject:  # noqa: D102 (the port's contract)
        version = self.shown.get(key)
        return self.store.read(key) if version is None else StoredObject(self.bucket.read(version), version.id)

    def read_if_changed(self, key: str, etag: str) -> StoredObject | None:  # noqa: D102
        found = self.read(key)
        return None if found.etag == etag else found

    def read_range(self, key: str, start: int, length: int) -> bytes:  # noqa: D102
        version = self.shown.get(key)
        if version is None:
            return self.store.read_range(key, start, length)
        return self.bucket.read(version, start, length)

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:  # noqa: ARG002, D102
        raise PermissionError(f"this view is read-only: {key}")

    def entries(self, prefix: str) -> Iterator[StoredEntry]:  # noqa: D102
        return self.store.entries(prefix)

    def delete(self, key: str) -> None:  # noqa: D102
        raise PermissionError(f"this view is read-only: {key}")


def read_or_none(store: ObjectStore, key: str) -> StoredObject | None:
    """An object, or None if there is none."""
    try:
        return store.read(key)
    except ObjectMissing:
        return None
