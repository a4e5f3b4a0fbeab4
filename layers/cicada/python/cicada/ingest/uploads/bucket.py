"""A collection's folder of uploads in S3, as its uploaders use it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.errors import IndexUnavailable
from cicada.ingest.incoming.listed import Upload, listed_upload
from cicada.ingest.incoming.places import collection_and_source, folder, run_folder, runs_folder

CLIENT_CONFIG = Config(
    connect_timeout=2,
    read_timeout=5,
    retries={"mode": "standard", "total_max_attempts": 3},
    signature_version="s3v4",  # the form's, which botocore would sign with version 2 in some Regions
)
"""For the S3 client; timeouts in seconds."""


@dataclass(frozen=True)
class UploadPage:
    """Some of a folder's documents, in the order of their names' bytes."""

    uploads: tuple[tuple[Upload, datetime], ...]
    """Each with the time of its upload."""
    next: str | None
    """The name to continue after; None on the last page."""


@dataclass(frozen=True)
class ReportPlace:
    """Where the newest report of a collection is."""

    run: str
    round: int
    key: str


class UploadFolders(Protocol):
    """The folders of all collections. Every method raises IndexUnavailable if the store does not respond."""

    def form(self, key: str, *, size: int, sha256: str, lifetime_s: int) -> dict[str, str]:
        """The fields of a form that uploads just this object; ``sha256`` of its ``size`` bytes, in hexadecimal."""
        ...

    def page(self, collection: str, after: str, at_most: int) -> UploadPage:
        """The documents whose names come after a name."""
        ...

    def holds(self, collection: str, name: str) -> bool:
        """Whether there is such a document."""
        ...

    def count(self, collection: str, at_most: int) -> int:
        """The documents of a folder, counted up to a number."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object."""
        ...

    def newest_report(self, collection: str) -> ReportPlace | None:
        """The report of the newest run that has one, if any is kept."""
        ...


class S3UploadFolders:
    """:class:`UploadFolders` in S3."""

    def __init__(self, client: Any, bucket: str) -> None:
        """Take an S3 client made with :data:`CLIENT_CONFIG`."""
        self._client = client
        self._bucket = bucket

    def form(self, key: str, *, size: int, sha256: str, lifetime_s: int) -> dict[str, str]:  # noqa: D102 (the port's)
        checked = {
            "x-amz-checksum-algorithm": "SHA256",
            "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(sha256)).decode(),
        }
        with _failures("sign a form"):
            signed = self._client.generate_presigned_post(
                self._bucket,
                key,
                Fields=checked,
                Conditions=[["content-length-range", size, size], *({name: value} for name, value in checked.items())],
                ExpiresIn=lifetime_s,
            )
        return {str(name): str(value) for name, value in signed["fields"].items()}

    def page(self, collection: str, after: str, at_most: int) -> UploadPage:  # noqa: D102
        prefix = folder(collection)
        start = {"StartAfter": f"{prefix}{after}"} if after else {}
        with _failures(f"list {prefix}"):
            listed = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix, MaxKeys=at_most, **start)
        found = listed.get("Contents", [])
        uploads = ((listed_upload(one), one["LastModified"]) for one in found)
        return UploadPage(
            uploads=tuple((upload, at) for upload, at in uploads if upload is not None),
            next=str(found[-1]["Key"]).removeprefix(prefix) if listed["IsTruncated"] else None,
        )

    def holds(self, collection: str, name: str) -> bool:  # noqa: D102
        key = f"{folder(collection)}{name}"
        with _failures(f"list {folder(collection)}"):
            listed = self._client.list_objects_v2(Bucket=self._bucket, Prefix=key, MaxKeys=1)
        return any(one["Key"] == key for one in listed.get("Contents", []))  # it sorts before its continuations

    def count(self, collection: str, at_most: int) -> int:  # noqa: D102
        found = 0
        pages = self._client.get_paginator("list_objects_v2")
        with _failures(f"list {folder(collection)}"):
            for page in pages.paginate(Bucket=self._bucket, Prefix=folder(collection)):
                found += sum(collection_and_source(one["Key"]) is not None for one in page.get("Contents", []))
                if found >= at_most:
                    break
        return min(found, at_most)

    def delete(self, key: str) -> None:  # noqa: D102
        with _failures("delete an upload"):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def newest_report(self, collection: str) -> ReportPlace | None:  # noqa: D102
        runs = runs_folder(collection)
        with _failures(f"list {runs}"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=runs, Delimiter="/"
            )
            names = [one["Prefix"].removeprefix(runs).rstrip("/") for p in pages for one in p.get("CommonPrefixes", [])]
            # A run that has just begun has no report yet: then the one before it counts.
            for run in sorted(names, key=_window, reverse=True)[:2]:
                prefix = f"{run_folder(collection, run)}report-"
                found = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix).get("Contents", [])
                if found:
                    key = str(found[-1]["Key"])
                    return ReportPlace(run, int(key.removeprefix(prefix).removesuffix(".json")), key)
        return None


def _window(run: str) -> int:
    """The window of time that a run's name ends with: later runs have higher ones."""
    number = run.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() else -1


@contextmanager
def _failures(doing: str) -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise IndexUnavailable(f"S3 could not {doing}: {error}") from error
