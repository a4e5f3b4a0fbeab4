"""Uploaded documents in their S3 bucket."""

from __future__ import annotations

from collections.abc import Iterator
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from pathlib import Path
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import CorpusInvalid, DocumentInvalid, DocumentTooLarge, IndexUnavailable
from cicada.ingest.contracts import WORKFLOW_ID, SourceItem
from cicada.ingest.incoming.listed import Upload, listed_upload
from cicada.ingest.incoming.places import folder, is_ignored
from cicada.ingest.sources import checked_metadata

_TITLE, _WORKFLOW = "title", "workflow-id"  # an upload's metadata (``x-amz-meta-…``) that is used
_CHUNK_BYTES = 1 << 20
_FAILURES = (BotoCoreError, ClientError, HTTPError, OSError)
_GONE = frozenset({404, 412})  # deleted, or overwritten since it was listed (If-Match)
_REFUSED = frozenset({400, 403})  # denied by a KMS key or a policy, or archived (Glacier)


class UploadChanged(Exception):
    """The object was replaced or deleted since it was listed."""


class UploadUnreadable(Exception):
    """The object may not be read; an immediate retry would not help."""


class Uploads(Protocol):
    """Uploaded documents, see :class:`IncomingBucket`."""

    def uploads(self, collection: str) -> Iterator[Upload]:
        """A collection's documents."""

    def ignored(self, collection: str) -> Iterator[str]:
        """Keys in a collection's folder that cannot be documents."""

    def download(self, item: SourceItem, path: Path) -> SourceItem:
        """Write a document's bytes to a file. Raises UploadChanged, UploadUnreadable, DocumentRefused."""


class IncomingBucket:
    """The uploads of one bucket."""

    def __init__(self, client: Any, bucket: str, *, max_bytes: int = ReadLimits().max_bytes) -> None:
        """``client``: of S3."""
        self._client = client
        self._bucket = bucket
        self._max_bytes = max_bytes

    def uploads(self, collection: str) -> Iterator[Upload]:
        """A collection's documents, in byte order of their keys. Raises IndexUnavailable."""
        for found in self._listed(collection):
            upload = listed_upload(found)
            if upload is not None:
                yield upload

    def ignored(self, collection: str) -> Iterator[str]:
        """Keys in a collection's folder that cannot be documents, except hidden files. Raises IndexUnavailable."""
        return (found["Key"] for found in self._listed(collection) if is_ignored(found["Key"]))

    def _listed(self, collection: str) -> Iterator[Any]:
        pages = self._client.get_paginator("list_objects_v2")
        try:
            for page in pages.paginate(Bucket=self._bucket, Prefix=folder(collection)):
                yield from page.get("Contents", ())
        except _FAILURES as error:
            raise IndexUnavailable(f"S3 could not list {folder(collection)}: {error}") from error

    def download(self, item: SourceItem, path: Path) -> SourceItem:
        """Write the document's bytes to a file; the item with the uploader's ``title`` and ``workflow_id``.

        Raises:
            UploadChanged: the object was replaced or deleted.
            UploadUnreadable: it may not be read.
            DocumentTooLarge: it exceeds the limit of all documents.
            DocumentInvalid: the uploader's metadata is invalid.
            IndexUnavailable: S3 does not respond.
        """
        if item.size > self._max_bytes:
            raise DocumentTooLarge(f"has {item.size:,} bytes; the limit is {self._max_bytes:,}")
        condition = {} if item.etag is None else {"IfMatch": item.etag}  # the listed version, and no later one
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=item.key, **condition)
            with found["Body"] as body, path.open("wb") as file:
                while piece := body.read(_CHUNK_BYTES):
                    file.write(piece)
        except _FAILURES as error:
            raise _failure(item.key, error) from error
        said = {name: _decoded(value) for name, value in found.get("Metadata", {}).items()}
        try:
            ours = checked_metadata({WORKFLOW_ID: said[_WORKFLOW]} if _WORKFLOW in said else {})
        except CorpusInvalid as error:
            raise DocumentInvalid(f"x-amz-meta-{_WORKFLOW}: {error}") from error
        return item.model_copy(update={"title": said.get(_TITLE, item.title), "metadata": {**ours, **item.metadata}})


def _failure(key: str, error: Exception) -> Exception:
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        if status in _GONE:
            return UploadChanged(key)
        if status in _REFUSED:
            return UploadUnreadable(f"S3 refuses to read it: {error.response.get('Error', {}).get('Code')}")
    return IndexUnavailable(f"S3 could not read {key}: {error}")


def _decoded(value: str) -> str:
    """An uploader's metadata value. S3 returns non-ASCII values as encoded words (RFC 2047)."""
    try:
        text = str(make_header(decode_header(value)))
    except (HeaderParseError, LookupError, ValueError):
        return value
    try:
        return text.encode("latin-1").decode()  # S3 takes each byte of raw UTF-8 for a letter
    except UnicodeError:
        return text
