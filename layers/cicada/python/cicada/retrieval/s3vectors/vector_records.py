"""A passage in a vector index: its key and its metadata.

Keys of the filterable metadata:

- ``collection``, and the locator's own fields: ``episode`` and ``speaker``, or ``source``;
- ``labels``: the passage's metadata as a list of strings, ``key=value`` or a digest of a long one. Filters test
  equality only, so digests suffice, and any number of entries takes one key;
- ``entities`` and ``codes``: lists of short digests, or :data:`ANY`, which every filter of the key lets pass, for a
  list that is too long. Short digests can collide (one pair in 2^36), so :func:`passes` checks the results again.

A vector's key is ``<collection>/<passage id>/<digest>``. The digest covers the vector and all metadata, so the keys
alone show what an interrupted load has already written.

Other metadata are ``_text`` and ``_context``, searched by words, and ``_passage``, the rest of the passage as JSON. A
passage beyond the service's limit is an object in the store, which ``_passage`` names; ``_text`` and ``_context`` hold
as much of it as fits.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from cicada.corpus.passages import Passage
from cicada.errors import IndexCorrupt, IndexMismatch
from cicada.index.manifest import PREFIX
from cicada.index.ports import ObjectMissing, ObjectStore
from cicada.retrieval.ports import Filters
from cicada.rights import Readable

COLLECTION, LABELS, ENTITIES, CODES = "collection", "labels", "entities", "codes"
ANY = "*"
"""Stands for a list that is too long."""
MAX_FILTERABLE_BYTES = 2_000
"""Of all filterable metadata of a vector. The service's limit is 2,048, however that is counted."""
MAX_VALUE_BYTES = 96
MAX_LABEL_BYTES = 20
MAX_CONSTRAINTS = 100
"""Of one filter, for an index in ENHANCED mode. Source: Amazon S3 User Guide, "Changing a vector index's mode"."""

_LABEL_DIGEST_CHARS = 18
_SHORT_DIGEST_CHARS = 6
_MARKER_BYTES = len(f',"{ENTITIES}":["{ANY}"]')
_PLACES = ("episode", "speaker", "source")

Filterable = dict[str, str | list[str]]


def labels_of(passage: Passage) -> Filterable:
    """The passage's filterable metadata."""
    fields = passage.locator.fields()
    if "source" in passage.metadata:
        fields.setdefault("source", passage.metadata["source"])
    places = {name: _short(value, MAX_VALUE_BYTES) for name, value in fields.items() if value and name in _PLACES}
    labels = sorted({_label(key, value) for key, value in passage.metadata.items() if key != "source"})
    found: Filterable = {COLLECTION: passage.collection, **places, **({LABELS: labels} if labels else {})}
    found = _with_list(found, CODES, passage.codes, MAX_FILTERABLE_BYTES - (_MARKER_BYTES if passage.entities else 0))
    return _with_list(found, ENTITIES, passage.entities, MAX_FILTERABLE_BYTES)


def _with_list(found: Filterable, key: str, values: Sequence[str], room_bytes: int) -> Filterable:
    """The metadata with a list of digests, or :data:`ANY` without room for it."""
    if not values:
        return found
    listed: Filterable = {**found, key: sorted({_short_digest(value) for value in values})}
    return listed if bytes_of(listed) <= room_bytes else {**found, key: [ANY]}


def passes(passage: Passage, filters: Filters, readable: Readable) -> bool:
    """Whether a found passage may be read, and passes the filters of its lists."""
    return readable.allows(passage.collection) and all(
        not asked or not set(asked).isdisjoint(values)
        for asked, values in ((filters.entities, passage.entities), (filters.codes, passage.codes))
    )


def metadata_filter(filters: Filters, readable: Readable) -> dict[str, Any] | None:
    """Filters for QueryVectors, None without any. Raises IndexMismatch beyond the service's number of values, and for
    sections, which its vectors do not have.

    Something must be readable among what the question asks for: an empty list would filter nothing.
    """
    if filters.sections:
        raise IndexMismatch("S3 Vectors does not support filters by section")
    wanted, unwanted = readable.among(filters.collections)
    places: dict[str, Sequence[str]] = {
        COLLECTION: wanted or (),
        "episode": filters.episodes,
        "speaker": filters.speakers,
        "source": filters.sources,
    }
    constraints = [_any_of(name, values) for name, values in places.items() if values]
    if unwanted:
        constraints.append({COLLECTION: {"$nin": list(unwanted)}})
    for key, values in filters.metadata.items():
        if values and key != "source":
            constraints.append(_equals_any(LABELS, [_label(key, value) for value in values]))
    for key, values in ((ENTITIES, filters.entities), (CODES, filters.codes)):
        if values:
            constraints.append(_equals_any(key, [*dict.fromkeys(map(_short_digest, values)), ANY]))
    return _all_of(constraints)


def _all_of(constraints: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    asked = sum(len(one["$or"]) if "$or" in one else 1 for one in constraints)
    if asked > MAX_CONSTRAINTS:
        raise IndexMismatch(f"S3 Vectors takes {MAX_CONSTRAINTS} constraints in a filter, this one has {asked}")
    if len(constraints) > 1:
        return {"$and": list(constraints)}
    return constraints[0] if constraints else None


def _any_of(name: str, values: Sequence[str]) -> dict[str, Any]:
    short = [_short(value, MAX_VALUE_BYTES) for value in values]
    return {name: {"$eq": short[0]} if len(short) == 1 else {"$in": short}}


def _equals_any(key: str, values: Sequence[str]) -> dict[str, Any]:
    """The user guide promises equality with any element of a list, so each value is a constraint of its own."""
    alternatives = [{key: {"$eq": value}} for value in values]
    return {"$or": alternatives} if len(alternatives) > 1 else alternatives[0]


def _label(key: str, value: str) -> str:
    return _short(f"{key}={value}", MAX_LABEL_BYTES)


def bytes_of(value: object) -> int:
    """Bytes of a value as compact JSON, which is how metadata is taken to be counted."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _short_digest(value: str) -> str:
    digest = hashlib.sha256(value.encode()).digest()
    return base64.urlsafe_b64encode(digest)[:_SHORT_DIGEST_CHARS].decode()


def _short(value: str, max_bytes: int) -> str:
    written = value.encode()
    if len(written) <= max_bytes and not value.startswith("#"):
        return value
    return "#" + hashlib.sha256(written).hexdigest()[:_LABEL_DIGEST_CHARS]


TEXT_KEY, CONTEXT_KEY, PASSAGE_KEY = "_text", "_context", "_passage"
SEARCHED_KEYS = (TEXT_KEY, CONTEXT_KEY)
"""Searched by full-text queries: a passage's own words, and those with its neighbours."""
NON_FILTERABLE_KEYS = (TEXT_KEY, CONTEXT_KEY, PASSAGE_KEY)
"""Set when the vector index is created, and unchangeable."""

MAX_METADATA_BYTES = 40_000
"""Of all metadata of a vector. The service's limit is "40 KB"; this stays below it however that is counted."""
OVERFLOW_PREFIX = PREFIX + "engines/passages/"
"""The prefix of larger passages' objects."""

_KEY_DIGEST_CHARS = 24
_BYTES_A_NUMBER = 24
_OBJECT = "object"


@dataclass(frozen=True)
class VectorRecord:
    """A passage as the service stores it."""

    key: str
    vector: NDArray[np.float32]
    metadata: Mapping[str, str | list[str]]
    overflow: tuple[str, bytes] | None = None
    """Key and content of the object that holds the passage, if it is larger than the service takes."""

    def put_input(self) -> dict[str, Any]:
        """As PutVectors takes it."""
        return {"key": self.key, "data": {"float32": self.vector.tolist()}, "metadata": dict(self.metadata)}

    @property
    def most_bytes(self) -> int:
        """An upper bound of what it adds to a request, where a number has up to 24 characters."""
        return _BYTES_A_NUMBER * len(self.vector) + len(json.dumps(self.metadata)) + 2 * len(json.dumps(self.key))


def record_of(passage: Passage, vector: NDArray[np.float32]) -> VectorRecord:
    """Make the record of a passage and its unit vector, shape ``(d,)``."""
    labels = labels_of(passage)
    searched = {TEXT_KEY: passage.text, CONTEXT_KEY: passage.context}
    rest = passage.model_dump_json(by_alias=True, exclude={"text", "context"})
    metadata: Filterable = {**labels, **searched, PASSAGE_KEY: rest}
    overflow = None
    if bytes_of(metadata) > MAX_METADATA_BYTES:
        whole = passage.model_dump_json(by_alias=True).encode()
        overflow = (f"{OVERFLOW_PREFIX}{hashlib.sha256(whole).hexdigest()}.json", whole)
        metadata = {**labels, PASSAGE_KEY: json.dumps({_OBJECT: overflow[0]})}
        metadata |= _shortened(searched, MAX_METADATA_BYTES - bytes_of(metadata))
    digest = hashlib.sha256(np.ascontiguousarray(vector, dtype="<f4").tobytes())
    digest.update(json.dumps(metadata, sort_keys=True).encode())
    key = f"{passage.collection}/{passage.id}/{digest.hexdigest()[:_KEY_DIGEST_CHARS]}"
    return VectorRecord(key, vector, metadata, overflow)


def passage_of(metadata: object, store: ObjectStore) -> Passage:
    """A passage from QueryVectors' metadata, or from the store if it was too large for the service.

    Raises IndexCorrupt for metadata not of :func:`record_of`, or a missing or different object, or IndexUnavailable.
    """
    try:
        if not isinstance(metadata, Mapping):
            raise TypeError("missing metadata")
        rest = json.loads(metadata[PASSAGE_KEY])
        if _OBJECT in rest:
            return _stored(str(rest[_OBJECT]), store)
        return Passage.model_validate({**rest, "text": metadata[TEXT_KEY], "context": metadata[CONTEXT_KEY]})
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise IndexCorrupt(f"a vector of the S3 Vectors index has no valid passage key: {error}") from error


def _stored(key: str, store: ObjectStore) -> Passage:
    try:
        data = store.read(key).data
    except ObjectMissing as error:
        raise IndexCorrupt(f"the passage {key} of the S3 Vectors index is missing") from error
    if key != f"{OVERFLOW_PREFIX}{hashlib.sha256(data).hexdigest()}.json":
        raise IndexCorrupt(f"the passage {key} differs from the one that was written")
    return Passage.model_validate_json(data)


def _shortened(searched: Mapping[str, str], room_bytes: int) -> dict[str, str]:
    """The beginnings of the texts, with equal room for each."""
    each_bytes = room_bytes // len(searched) - 64  # what the keys and quotes take
    return {key: _beginning(text, each_bytes) for key, text in searched.items()}


def _beginning(text: str, max_bytes: int) -> str:
    """As many characters as have that many bytes as JSON."""
    low, high = 0, min(len(text), max_bytes)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if bytes_of(text[:middle]) <= max_bytes else (low, middle - 1)
    return text[:low]
