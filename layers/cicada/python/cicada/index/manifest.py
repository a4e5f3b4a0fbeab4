"""The manifest: a small JSON object that names the segments of one version of the index."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.errors import IndexCorrupt, IndexMismatch, IndexNewer
from cicada.rights import Readable

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # A SHA-256 digest in lower-case hexadecimal
Count = Annotated[int, Field(ge=0)]


class IndexModel(BaseModel):
    """Immutable, strict about types and unknown fields, camelCase in the store."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
        defer_build=True,
    )


FORMAT_VERSION = 2
PREFIX = "index/"
CURRENT_KEY = PREFIX + "current.json"  # The manifest that searches use. Replacing it is what publishes a version.
VERSIONS_PREFIX = PREFIX + "versions/"  # every manifest that was published, under its version's id
SEGMENTS_PREFIX = PREFIX + "segments/"
TOMBSTONES_PREFIX = PREFIX + "tombstones/"

_NOT_IN_VERSION_ID = {"version", "kept_from", "digest"}
_DERIVED = {"format_version", "version", "digest"}
_NONCE_BYTES = 8
_UNKNOWN = ("extra_forbidden", "literal_error", "union_tag_invalid", "enum")
"""What is wrong with something that a newer release has added."""


class TombstonesEntry(IndexModel):
    """The object that marks a segment's deleted rows in a version."""

    key: str
    bytes: int = Field(ge=1)
    count: int = Field(ge=1)  # deleted rows
    sha256: Sha256  # of the object


class SegmentEntry(IndexModel):
    """A segment of a version."""

    key: str
    collection: str
    count: int = Field(ge=1)  # rows, the deleted ones included
    live: int = Field(ge=1)  # rows that the version has
    bytes: int = Field(ge=1)
    head_bytes: int = Field(ge=1)
    sha256: Sha256  # of the segment's head, which has the digests of the rest
    tombstones: TombstonesEntry | None

    @model_validator(mode="after")
    def _rows_add_up(self) -> Self:
        if self.live + (self.tombstones.count if self.tombstones else 0) != self.count:
            raise ValueError(f"the live and deleted rows of {self.key} are inconsistent")
        return self


class Manifest(IndexModel):
    """One version of the index. Make it with :meth:`create`, which gives it its id."""

    format_version: Literal[2] = 2
    version: str  # the number, then a digest of all fields below but ``kept_from`` and ``digest``
    number: int = Field(ge=1)  # each published version has a higher one than those before
    created_at: Annotated[AwareDatetime, Field(strict=False)]
    embedding_model_id: str
    dimensions: int = Field(ge=1)
    analyzer_version: int = Field(ge=1)  # of the text analysis that the lexical part was written with
    allow_partial: bool  # whether a reader may answer from the rest, and say so, when a segment cannot be read
    segments: tuple[SegmentEntry, ...]
    declarations: tuple[CollectionDeclaration, ...] = Field((), exclude_if=lambda declarations: not declarations)
    """Of collections with segments, by name. Left out if empty, so that such a version keeps its id from before
    declarations existed."""
    previous: str | None  # the version that this one replaced
    kept_from: int = Field(ge=1)
    """Garbage collection may have deleted objects of lower versions. It can grow while the version stays."""
    digest: Sha256  # of everything else

    @model_validator(mode="after")
    def _segments_differ(self) -> Self:
        if len({segment.key for segment in self.segments}) < len(self.segments):
            raise ValueError("duplicate segment")
        return self

    @model_validator(mode="after")
    def _declarations_are_of_its_collections(self) -> Self:
        declared = [one.collection for one in self.declarations]
        if declared != sorted(set(declared)) or not set(declared) <= set(self.collections):
            raise ValueError("declarations must be unique, belong to the version's collections and be sorted by name")
        return self

    @classmethod
    def create(
        cls,
        *,
        segments: tuple[SegmentEntry, ...],
        declarations: Iterable[CollectionDeclaration] = (),
        kept_from: int = 1,
        **fields: Any,
    ) -> Self:
        """Make a manifest with its id and digest; declarations of collections without segments are left out."""
        held = {segment.collection for segment in segments}
        declared = sorted((one for one in declarations if one.collection in held), key=lambda one: one.collection)
        unnamed = cls(
            version="", segments=segments, declarations=tuple(declared), kept_from=kept_from, digest="0" * 64, **fields
        )
        return unnamed.model_copy(update={"version": unnamed.derived_version()})._sealed()

    def keeping_from(self, number: int) -> Self:
        """The same version after versions below this number are given up."""
        return self.model_copy(update={"kept_from": number})._sealed()

    def derive(self, **changes: Any) -> Self:
        """A new version with these arguments of :meth:`create`, and this version's for the rest."""
        same = {name: getattr(self, name) for name in type(self).model_fields if name not in _DERIVED}
        return self.create(**same | changes)

    def successor(self, *, created_at: datetime, **changes: Any) -> Self:
        """The next version, with these arguments of :meth:`create` changed."""
        return self.derive(number=self.number + 1, created_at=created_at, previous=self.version, **changes)

    def limited_to(self, collections: frozenset[str]) -> Self:
        """What the version says of some of its collections, under the version's own name. Not for the store."""
        return self.model_copy(
            update={
                "segments": tuple(one for one in self.segments if one.collection in collections),
                "declarations": tuple(one for one in self.declarations if one.collection in collections),
            }
        )

    def derived_version(self) -> str:
        """The id that belongs to this content."""
        return f"{self.number:06d}-{self._sha256_without(_NOT_IN_VERSION_ID)[:16]}"

    def derived_digest(self) -> str:
        """The digest that belongs to this content."""
        return self._sha256_without({"digest"})

    def to_bytes(self) -> bytes:
        """The stored form."""
        return self.model_dump_json(by_alias=True, indent=1).encode()

    @property
    def count(self) -> int:
        """Passages in the version."""
        return sum(segment.live for segment in self.segments)

    @property
    def collections(self) -> tuple[str, ...]:
        """The version's collections in the order of their first segments."""
        return tuple(dict.fromkeys(segment.collection for segment in self.segments))

    def readable_by(self, readable: Readable) -> frozenset[str]:
        """Those of the version's collections that an asker may read."""
        declared = {one.collection: one.readers for one in self.declarations}
        return frozenset(name for name in self.collections if readable.allows_declared(name, declared.get(name)))

    def of_collection(self, collection: str) -> tuple[SegmentEntry, ...]:
        """The segments of one collection, in order."""
        return tuple(segment for segment in self.segments if segment.collection == collection)

    def declaration(self, collection: str) -> CollectionDeclaration | None:
        """A collection's declaration, or None."""
        return next((one for one in self.declarations if one.collection == collection), None)

    def _sealed(self) -> Self:
        return self.model_copy(update={"digest": self.derived_digest()})

    def _sha256_without(self, fields: set[str]) -> str:
        return hashlib.sha256(self.model_dump_json(by_alias=True, exclude=fields).encode()).hexdigest()


def parse_manifest(data: bytes) -> Manifest:
    """Parse a stored manifest. Raises IndexCorrupt if it is damaged, IndexMismatch if it has an older format, or
    IndexNewer if a newer release wrote it.
    """
    try:
        found = json.loads(data)
        written = found.get("formatVersion") if isinstance(found, dict) else None
        if isinstance(written, int) and not isinstance(written, bool) and written != FORMAT_VERSION:
            problem = f"the index has format {written}; this release of Cicada reads {FORMAT_VERSION}"
            if written > FORMAT_VERSION:
                raise IndexNewer(problem)
            advice = ": load it again with `cicada load --start-over`, then the other collections without that option"
            raise IndexMismatch(problem + advice)
        manifest = Manifest.model_validate_json(data)
    except (ValidationError, ValueError, RecursionError) as error:
        if isinstance(error, ValidationError) and _is_newer(found, error):
            raise IndexNewer("a newer release of Cicada wrote the index's manifest") from error
        raise IndexCorrupt(f"cannot parse the index's manifest: {error}") from error
    if manifest.version != manifest.derived_version() or manifest.digest != manifest.derived_digest():
        raise IndexCorrupt(f"the manifest of version {manifest.version} differs from the one that was written")
    return manifest


def _is_newer(found: Any, error: ValidationError) -> bool:
    """Whether a manifest that cannot be read is as it was written, with something that this release does not know.

    It is as it was written if its digest is that of the rest of it.
    """
    if not isinstance(found, dict) or not any(one["type"] in _UNKNOWN for one in error.errors(include_input=False)):
        return False
    rest = {name: value for name, value in found.items() if name != "digest"}
    compact = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(compact.encode("utf-8", "replace")).hexdigest() == found.get("digest")


def version_key(version: str) -> str:
    """Where a version's manifest is kept."""
    return f"{VERSIONS_PREFIX}{version}.json"


def new_segment_key(sha256: str) -> str:
    """A key for the segment with this digest that no other writer uses, not even for equal content.

    Garbage collection deletes old objects that no version names. If a writer reused such a key, the deletion could hit
    its new version.
    """
    return f"{SEGMENTS_PREFIX}{sha256}-{secrets.token_hex(_NONCE_BYTES)}.segment"


def new_tombstones_key(sha256: str) -> str:
    """A key for tombstones, unique for the same reason."""
    return f"{TOMBSTONES_PREFIX}{sha256}-{secrets.token_hex(_NONCE_BYTES)}.bits"
