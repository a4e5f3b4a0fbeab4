"""Uploaded documents as S3 lists them. The function that serves uploads imports it: nothing here may import numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cicada.ingest.incoming.places import collection_and_source


@dataclass(frozen=True)
class Upload:
    """An object below ``incoming/``."""

    source: str
    key: str
    etag: str
    size: int
    stamp: str  # changes with every write, even of the same bytes


def listed_upload(found: Mapping[str, Any]) -> Upload | None:
    """An entry of S3's list of objects as an upload; None if it is not a document."""
    place = collection_and_source(found["Key"])
    if place is None:
        return None
    etag, written_at = str(found["ETag"]), found["LastModified"].isoformat()
    return Upload(place[1], found["Key"], etag, int(found["Size"]), f"{etag} {written_at}")
