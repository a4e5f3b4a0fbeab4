"""The uploaded documents in their bucket, by the SDK."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from cicada.errors import IndexUnavailable
from cicada.ingest.contracts import SourceItem
from cicada.ingest.incoming.places import collection_and_source, folder

WORKFLOW_ID = "workflow_id"
"""The metadata key of the tenant or workflow that a passage belongs to."""
_FROM_HEADERS = {"workflow-id": WORKFLOW_ID, "title": "title"}
"""An upload's own metadata (``x-amz-meta-…``) that is taken over."""
_CHUNK_BYTES = 1 << 20
_FAILURES = (BotoCoreError, ClientError, HTTPError, OSError)
_GONE = frozenset({404, 412})
"""The object is not there, or is another one by now."""


class UploadChanged(Exception):
    """The object was replaced or deleted since it was listed."""


@dataclass(frozen=True)
class Upload:
    """An object below ``incoming/``."""

    source: str
    key: str
    etag: str
    size: int
    stamp: str
    """Changes whenever the object is written, be it with the same bytes."""


class IncomingBucket:
    """The uploads of one bucket."""

    def __init__(self, client: Any, bucket: str) -> None:
        """Take an S3 client."""
        self._client = client
        self._bucket = bucket

    def uploads(self, collection: str) -> Iterator[Upload]:
        """A collection's documents, in byte order of their keys.

        Raises:
            IndexUnavailable: S3 does not respond.
        """
        pages = self._client.get_paginator("list_objects_v2")
        try:
            for page in pages.paginate(Bucket=self._bucket, Prefix=folder(collection)):
                for found in page.get("Contents", ()):
                    place = collection_and_source(found["Key"])
                    if place is not None:
                        etag = str(found["ETag"])
                        written_at = found["LastModified"].isoformat()
                        yield Upload(place[1], found["Key"], etag, int(found["Size"]), f"{etag} {written_at}")
        except _FAILURES as error:
            raise IndexUnavailable(f"S3 could not list {folder(collection)}: {error}") from error

    def download(self, item: SourceItem, path: Path) -> SourceItem:
        """Write the document's bytes to a file.

        Returns:
            The item with what the uploader said of it: ``title`` and ``workflow_id``.

        Raises:
            UploadChanged: the object is not the one that the item names any more.
            IndexUnavailable: S3 does not respond.
        """
        condition = {} if item.etag is None else {"IfMatch": item.etag}
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=item.key, **condition)
            with found["Body"] as body, path.open("wb") as file:
                while piece := body.read(_CHUNK_BYTES):
                    file.write(piece)
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in _GONE:
                raise UploadChanged(item.key) from error
            raise IndexUnavailable(f"S3 could not read {item.key}: {error}") from error
        except _FAILURES as error:
            raise IndexUnavailable(f"S3 could not read {item.key}: {error}") from error
        said = {
            _FROM_HEADERS[name]: value for name, value in found.get("Metadata", {}).items() if name in _FROM_HEADERS
        }
        title = said.pop("title", item.title)
        return item.model_copy(update={"title": title, "metadata": {**said, **item.metadata}})
