"""Uploads of the page to its bucket, as a stack asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from botocore.config import Config
from botocore.exceptions import ClientError

from cicada.custom_resources import ResourceRequest
from cicada.page.files import ASSETS, CONFIG, INDEX, PageFile, assets_of, config_file, page_files

FILES, CONFIGURATION = "Custom::PageFiles", "Custom::PageConfig"
"""The types of the stacks' custom resources: the page without its configuration, and that."""
UPLOAD_ORIGIN = "Custom::UploadOrigin"
"""The type of the custom resource that lets the page upload to the index's bucket."""

CLIENT_CONFIG = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 4})
"""For the S3 client; timeouts in seconds."""

ACCESS_ATTEMPTS = 6
ACCESS_PAUSE_S = 5.0
"""A policy that was created a moment ago may not be known everywhere yet: the first call is repeated for so long."""
PREFLIGHT_S = 3600
"""How long a browser may remember that the bucket accepts the page's uploads."""


class PageBucket(Protocol):
    """Where the page lies."""

    def keys(self, prefix: str) -> list[str]:
        """The keys that begin so."""
        ...

    def put(self, file: PageFile) -> None:
        """Store a file, whole or not at all."""
        ...

    def delete(self, key: str) -> None:
        """Delete a file; one that is not there is no error."""
        ...


class CrossOrigin(Protocol):
    """Which origins' pages may upload to a bucket."""

    def accept(self, bucket: str, origin: str) -> None:
        """Accept forms of one origin's pages, and of no other."""
        ...

    def accept_none(self, bucket: str) -> None:
        """Accept none."""
        ...


class S3CrossOrigin:
    """:class:`CrossOrigin` in S3."""

    def __init__(self, client: Any, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take an S3 client made with :data:`CLIENT_CONFIG`."""
        self._client = client
        self._sleep = sleep

    def accept(self, bucket: str, origin: str) -> None:  # noqa: D102 (the port's contract)
        rule = {"AllowedOrigins": [origin], "AllowedMethods": ["POST"], "MaxAgeSeconds": PREFLIGHT_S}
        _once_allowed(
            lambda: self._client.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [rule]}), self._sleep
        )

    def accept_none(self, bucket: str) -> None:  # noqa: D102
        try:
            self._client.delete_bucket_cors(Bucket=bucket)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":  # its stack was deleted before the page's
                raise


T = TypeVar("T")


def _once_allowed(call: Callable[[], T], sleep: Callable[[float], None]) -> T:
    """Repeat a first call while it is denied."""
    for _ in range(ACCESS_ATTEMPTS - 1):
        try:
            return call()
        except ClientError as error:
            if error.response["Error"]["Code"] != "AccessDenied":
                raise
            sleep(ACCESS_PAUSE_S)
    return call()


class S3PageBucket:
    """:class:`PageBucket` in S3."""

    def __init__(self, client: Any, name: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take an S3 client made with :data:`CLIENT_CONFIG`."""
        self._client = client
        self._name = name
        self._sleep = sleep

    def keys(self, prefix: str) -> list[str]:  # noqa: D102 (the port's contract)
        return _once_allowed(lambda: self._list(prefix), self._sleep)

    def put(self, file: PageFile) -> None:  # noqa: D102
        self._client.put_object(
            Bucket=self._name,
            Key=file.key,
            Body=file.body,
            ContentType=file.content_type,
            CacheControl=file.cache_control,
        )

    def delete(self, key: str) -> None:  # noqa: D102
        self._client.delete_object(Bucket=self._name, Key=key)

    def _list(self, prefix: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


class PagePublisher:
    """Does what the stacks' custom resources ask for. Every step can be repeated."""

    def __init__(self, bucket: PageBucket, folder: Path, cross_origin: CrossOrigin) -> None:
        """Publish to a bucket.

        Args:
            bucket: the page's own.
            folder: the bundled page.
            cross_origin: lets the page upload to the index's bucket.
        """
        self._bucket = bucket
        self._cross_origin = cross_origin
        self._folder = folder

    def handle(self, request: ResourceRequest) -> None:
        """Carry out a request.

        Raises:
            ValueError: it is for another kind of resource, or names no version.
        """
        match request.resource_type, request.kind:
            case ("Custom::PageFiles", "Delete"):
                if request.properties.get("OnDelete") == "destroy":
                    self._delete([*self._bucket.keys(ASSETS), INDEX])
            case ("Custom::PageFiles", _):
                self._publish(request.properties["Version"], request.old_properties.get("Version"))
            case ("Custom::PageConfig", "Delete"):
                self._delete([CONFIG])
            case ("Custom::PageConfig", _):
                self._bucket.put(config_file(request.properties["Config"]))
            case ("Custom::UploadOrigin", "Delete"):
                self._cross_origin.accept_none(request.properties["Bucket"])
            case ("Custom::UploadOrigin", _):
                self._cross_origin.accept(request.properties["Bucket"], request.properties["Origin"])
            case (other, _):
                raise ValueError(f"unsupported resource type {other}")

    def _publish(self, version: str, previous: str | None) -> None:
        """Upload a version, and delete all but it and the previous one, which open pages were loaded from."""
        kept = tuple(assets_of(one) for one in (version, previous) if one)
        before = self._bucket.keys(ASSETS)
        for file in page_files(self._folder, version):
            self._bucket.put(file)
        self._delete(key for key in before if not key.startswith(kept))

    def _delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._bucket.delete(key)
