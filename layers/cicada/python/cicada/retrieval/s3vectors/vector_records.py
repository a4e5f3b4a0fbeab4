"""How a passage lies in a vector index: its key, its metadata, and the labels that it is filtered by.

Keys of the filterable metadata:

- ``collection``, and the locator's own fields: ``episode`` and ``speaker``, or ``source``;
- ``labels``: the passage's metadata as a list of strings, ``key=value`` or, where that is long, a digest of it. A
  filter asks by equality alone, so a digest does as well as the value, and any number of entries costs one key;
- ``entities`` and ``codes``: lists of short digests, as many as there is room for. A list for which there is none is
  :data:`ANY`, which every filter of its key lets pass. Short digests may be equal by chance, too (one pair in 2^36): so
  what was found by these keys is looked at once more, see :func:`passes`.

A vector's key is ``<collection>/<passage id>/<digest>``. The digest is of the vector and of all metadata, so that equal
keys mean equal content: what an interrupted load has written already can be told from the keys alone.

The metadata holds, beside what can be filtered by (:mod:`cicada.retrieval.s3vectors.vector_records`), ``_text`` and
``_context``, which are searched by words, and ``_passage``, all else of the passage as JSON. A passage that is larger
than the service takes lies whole in an object beside the index's own, which ``_passage`` names; ``_text`` and
``_context`` hold as much of it as there is room for.
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
    for key, values in ((CODES, passage.codes), (ENTITIES, passage.entities)):
        if values:
            listed = {**found, key: sorted({_short_digest(value) for value in values})}
            room = MAX_FILTERABLE_BYTES - (_MARKER_BYTES if key == CODES and passage.entities else 0)
            found = listed if bytes_of(listed) <= room else {**found, key: [ANY]}
    return found


def passes(passage: Passage, filters: Filters) -> bool:
    """Whether a passage that was found has what the filters ask of its lists."""
    return all(
        not asked or not set(asked).isdisjoint(values)
        for asked, values in ((filters.entities, passage.entities), (filters.codes, passage.codes))
    )


def metadata_filter(filters: Filters) -> dict[str, Any] | None:
    """Filters for QueryVectors, None for no filter; raises IndexMismatch beyond the service's number of values."""
    places: dict[str, Sequence[str]] = {
        COLLECTION: filters.collections,
        "episode": filters.episodes,
        "speaker": filters.speakers,
        "source": filters.metadata.get("source", ()),
    }
    constraints = [
        _any_of(name, [_short(value, MAX_VALUE_BYTES) for value in values]) for name, values in places.items() if values
    ]
    labels = {key: values for key, values in filters.metadata.items() if values and key != "source"}
    for key, values in labels.items():
        # Of a list the guide promises equality with any element, so each value is a constraint of its own.
        alternatives = [{LABELS: {"$eq": _label(key, value)}} for value in values]
        constraints.append({"$or": alternatives} if len(alternatives) > 1 else alternatives[0])
    lists = {key: values for key, values in ((ENTITIES, filters.entities), (CODES, filters.codes)) if values}
    for key, values in lists.items():
        listed = [*dict.fromkeys(map(_short_digest, values)), ANY]
        constraints.append({"$or": [{key: {"$eq": value}} for value in listed]})
    asked = sum(len(one["$or"]) if "$or" in one else 1 for one in constraints)
    if asked > MAX_CONSTRAINTS:
        raise IndexMismatch(f"S3 Vectors takes {MAX_CONSTRAINTS} constraints in a filter, this one has {asked}")
    if len(constraints) > 1:
        return {"$and": constraints}
    return constraints[0] if constraints else None


def _any_of(name: str, values: Sequence[str]) -> dict[str, Any]:
    condition: Mapping[str, Any] = {"$eq": values[0]} if len(values) == 1 else {"$in": list(values)}
    return {name: condition}


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
"""What full-text queries look into: a passage's own words, and those of its neighbours with them."""
NON_FILTERABLE_KEYS = (TEXT_KEY, CONTEXT_KEY, PASSAGE_KEY)
"""What the vector index must be created with: this cannot be changed later."""

MAX_METADATA_BYTES = 40_000
"""Of all metadata of a vector. The service's limit is "40 KB"; this stays below it however that is counted."""
OVERFLOW_PREFIX = PREFIX + "engines/passages/"
"""Where passages lie that are larger."""

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
    """Read a passage back from metadata as QueryVectors returned it; ``store`` holds those too large for the service.

    Raises:
        IndexCorrupt: this was not written by :func:`record_of`, or the passage's object is missing or another one.
        IndexUnavailable: the store does not respond.
    """
    try:
        if not isinstance(metadata, Mapping):
            raise TypeError("no metadata")
        rest = json.loads(metadata[PASSAGE_KEY])
        if _OBJECT in rest:
            return _stored(str(rest[_OBJECT]), store)
        return Passage.model_validate({**rest, "text": metadata[TEXT_KEY], "context": metadata[CONTEXT_KEY]})
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise IndexCorrupt(f"a vector of the S3 Vectors index carries no passage of ours: {error}") from error


def _stored(key: str, store: ObjectStore) -> Passage:
    try:
        data = store.read(key).data
    except ObjectMissing as error:
        raise IndexCorrupt(f"{key}, a passage of the S3 Vectors index, is missing") from error
    if key != f"{OVERFLOW_PREFIX}{hashlib.sha256(data).hexdigest()}.json":
        raise IndexCorrupt(f"{key} is not the passage that was written")
    return Passage.model_validate_json(data)


def _shortened(searched: Mapping[str, str], room_bytes: int) -> dict[str, str]:
    """The beginnings of the texts, which share the room."""
    each_bytes = room_bytes // len(searched) - 64  # what the keys and quotes take
    return {key: _beginning(text, each_bytes) for key, text in searched.items()}


def _beginning(text: str, max_bytes: int) -> str:
    """As many characters as have that many bytes as JSON."""
    low, high = 0, min(len(text), max_bytes)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if bytes_of(text[:middle]) <= max_bytes else (low, middle - 1)
    return text[:low]
