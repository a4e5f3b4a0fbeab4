"""The manifest: the small object that names the segments of one version of the index."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, ValidationError

from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.format import IndexModel, Sha256

FORMAT_VERSION = 1
PREFIX = "index/"
CURRENT_KEY = PREFIX + "current.json"
"""The manifest that searches use. Replacing it is what publishes a version."""
VERSIONS_PREFIX = PREFIX + "versions/"
"""Every manifest ever published, under its version's id."""
SEGMENTS_PREFIX = PREFIX + "segments/"


class SegmentEntry(IndexModel):
    """A segment, as a version names it."""

    key: str
    collection: str
    count: int = Field(ge=1)
    bytes: int = Field(ge=1)
    head_bytes: int = Field(ge=1)
    sha256: Sha256
    """Of the segment's head, which vouches for the rest."""


class Manifest(IndexModel):
    """One version of the index. Make it with :meth:`create`, which gives it its id."""

    format_version: Literal[1] = 1
    version: str
    """The number, then a digest of everything else in the manifest."""
    number: int = Field(ge=1)
    """Each published version has a higher one than those before."""
    created_at: Annotated[AwareDatetime, Field(strict=False)]
    embedding_model_id: str
    dimensions: int = Field(ge=1)
    segments: tuple[SegmentEntry, ...]
    previous: str | None
    """The version that this one replaced."""

    @classmethod
    def create(
        cls,
        *,
        number: int,
        created_at: datetime,
        embedding_model_id: str,
        dimensions: int,
        segments: tuple[SegmentEntry, ...],
        previous: str | None,
    ) -> Self:
        """Make a manifest and derive its version's id from its content."""
        unnamed = cls(
            version="",
            number=number,
            created_at=created_at,
            embedding_model_id=embedding_model_id,
            dimensions=dimensions,
            segments=segments,
            previous=previous,
        )
        return unnamed.model_copy(update={"version": unnamed.derived_version()})

    def derived_version(self) -> str:
        """The id that this content has to have."""
        content = self.model_dump_json(by_alias=True, exclude={"version"})
        return f"{self.number:06d}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"

    def to_bytes(self) -> bytes:
        """The manifest as it is stored."""
        return self.model_dump_json(by_alias=True, indent=1).encode()

    @property
    def count(self) -> int:
        """Passages in the version."""
        return sum(segment.count for segment in self.segments)

    def of_collection(self, collection: str) -> tuple[SegmentEntry, ...]:
        """The segments of one collection, in order."""
        return tuple(segment for segment in self.segments if segment.collection == collection)


def parse_manifest(data: bytes) -> Manifest:
    """Read a stored manifest.

    Raises:
        IndexCorrupt: it is no manifest, or not the one that was written.
        IndexMismatch: it has a format that this version does not read.
    """
    try:
        found = json.loads(data)
        version = found.get("formatVersion") if isinstance(found, dict) else None
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise IndexMismatch(f"the index has format {version}; this version of Cicada reads {FORMAT_VERSION}")
        manifest = Manifest.model_validate_json(data)
    except (ValidationError, ValueError, RecursionError) as error:
        raise IndexCorrupt(f"the index's manifest cannot be read: {error}") from error
    if manifest.version != manifest.derived_version():
        raise IndexCorrupt(f"the manifest of version {manifest.version} is not the one that was written")
    return manifest


def version_key(version: str) -> str:
    """Where a version's manifest is kept."""
    return f"{VERSIONS_PREFIX}{version}.json"


def segment_key(sha256: str) -> str:
    """Where the segment with this digest is kept: equal content, equal key."""
    return f"{SEGMENTS_PREFIX}{sha256}.segment"
