"""The index in an S3 bucket, accessed by the SDK."""

from __future__ import annotations

import base64
import hashlib
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from cicada.errors import IndexUnavailable
from cicada.index.ports import PARALLEL_READS, ObjectMissing, PreconditionFailed, StoredEntry, StoredObject

CLIENT_CONFIG = Config(
    connect_timeout=2,
    read_timeout=10,
    retries={"mode": "standard", "total_max_attempts": 4},
    max_pool_connections=PARALLEL_READS + 1,  # the refresh reads during a load
)
"""For the S3 client; timeouts in seconds."""
WORKER_CONFIG = CLIENT_CONFIG.merge(
    Config(connect_timeout=1, read_timeout=4, retries={"mode": "standard", "total_max_attempts": 2})
)
"""The same for a worker whose user waits: it gives up early, so that another strategy can answer."""

BODY_ATTEMPTS = 3  # the SDK retries requests, but not responses that break off in their body
CONFLICT_ATTEMPTS = 5  # S3 answers 409 to a conditional write during another one in flight: it asks for a retry

_FAILURES = (BotoCoreError, ClientError, HTTPError, OSError)


class S3Store:
    """:class:`~cicada.index.ports.ObjectStore` over one bucket."""

    def __init__(self, client: Any, bucket: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take an S3 client made with :data:`CLIENT_CONFIG` or :data:`WORKER_CONFIG`."""
        self._client = client
        self._bucket = bucket
        self._sleep = sleep

    def read(self, key: str) -> StoredObject:  # noqa: D102 (the port's contract)
        found = self._get(key)
        if found is None:
            raise IndexUnavailable(f"S3 answered an unconditional read of {key} with 304 Not Modified")
        return found

    def read_if_changed(self, key: str, etag: str) -> StoredObject | None:  # noqa: D102
        return self._get(key, IfNoneMatch=etag)

    def read_range(self, key: str, start: int, length: int) -> bytes:  # noqa: D102
        try:
            found = self._get(key, Range=f"bytes={start}-{start + length - 1}")
        except _RangeBeyondEndError:
            return b""
        return b"" if found is None else found.data

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:  # noqa: D102
        condition = {"IfNoneMatch": "*"} if replaces is None else {"IfMatch": replaces}
        checksum = base64.b64encode(hashlib.sha256(data).digest()).decode()
        for attempt in range(CONFLICT_ATTEMPTS):
            with self._faults("write", key):
                try:
                    written = self._client.put_object(
                        Bucket=self._bucket, Key=key, Body=data, ChecksumSHA256=checksum, **condition
                    )
                    return str(written["ETag"])
                except ClientError as error:
                    match _status(error):
                        case 412 | 404 if _code(error) != "NoSuchBucket":  # 404: If-Match on an object that is gone
                            raise PreconditionFailed(key) from error
                        case 409 if attempt + 1 < CONFLICT_ATTEMPTS:
                            self._sleep(random.uniform(0, 0.05 * 2**attempt))  # noqa: S311 (jitter, no secret)
                        case 409:
                            raise PreconditionFailed(key) from error
                        case _:
                            raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def entries(self, prefix: str) -> Iterator[StoredEntry]:  # noqa: D102
        with self._faults("list", prefix):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix):
                for found in page.get("Contents", ()):
                    yield StoredEntry(str(found["Key"]), int(found["Size"]), found["LastModified"])

    def delete(self, key: str) -> None:  # noqa: D102
        with self._faults("delete", key):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def _get(self, key: str, **conditions: str) -> StoredObject | None:
        """The object or its range; None if S3 answers that it has not changed."""
        for attempt in range(BODY_ATTEMPTS):
            with self._faults("read", key):
                try:
                    found = self._client.get_object(Bucket=self._bucket, Key=key, **conditions)
                except ClientError as error:
                    match _status(error):
                        case 304:
                            return None
                        case 404 if _code(error) != "NoSuchBucket":
                            raise ObjectMissing(key) from error
                        case 416:
                            raise _RangeBeyondEndError from error
                        case _:
                            raise
                try:
                    with found["Body"] as body:
                        return StoredObject(body.read(), str(found["ETag"]))
                except _FAILURES:
                    if attempt + 1 == BODY_ATTEMPTS:
                        raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    @contextmanager
    def _faults(self, what: str, key: str) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            raise IndexUnavailable(f"S3 could not {what} s3://{self._bucket}/{key}: {error}") from error


class _RangeBeyondEndError(Exception):
    """The range begins at or after the object's end."""


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
