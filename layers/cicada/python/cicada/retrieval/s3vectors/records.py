"""How a passage lies in a vector index: its key, and its metadata.

A vector's key is ``<collection>/<passage id>/<digest>``. The digest is of the vector and of all metadata, so that equal
keys mean equal content: what an interrupted load has written already can be told from the keys alone.

The metadata holds, beside what can be filtered by (:mod:`cicada.retrieval.s3vectors.labels`), ``_text`` and
``_context``, which are searched by words, and ``_passage``, all else of the passage as JSON. A passage that is larger
than the service takes lies whole in an object beside the index's own, which ``_passage`` names; ``_text`` and
``_context`` hold as much of it as there is room for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from cicada.corpus.passages import Passage
from cicada.errors import IndexCorrupt
from cicada.index.manifest import PREFIX
from cicada.index.ports import ObjectMissing, ObjectStore
from cicada.retrieval.s3vectors.labels import Filterable, bytes_of, labels_of

TEXT_KEY, CONTEXT_KEY, PASSAGE_KEY = "_text", "_context", "_passage"
SEARCHED_KEYS = (TEXT_KEY, CONTEXT_KEY)
"""What full-text queries look into: a passage's own words, and those of its neighbours with them."""
NON_FILTERABLE_KEYS = (TEXT_KEY, CONTEXT_KEY, PASSAGE_KEY)
"""What the vector index must be created with: this cannot be changed later."""

MAX_METADATA_BYTES = 40_000
"""Of all metadata of a vector. The service's limit is "40 KB"; this stays below it however that is counted."""
OVERFLOW_PREFIX = PREFIX + "engines/passages/"
"""Where passages lie that are larger."""

_DIGEST_CHARS = 24
_BYTES_A_NUMBER = 24
_OBJECT = "object"


@dataclass(frozen=True)
class Record:
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


def record_of(passage: Passage, vector: NDArray[np.float32]) -> Record:
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
    key = f"{passage.collection}/{passage.id}/{digest.hexdigest()[:_DIGEST_CHARS]}"
    return Record(key, vector, metadata, overflow)


def passage_of(metadata: object, store: ObjectStore) -> Passage:
    """Read a passage back from a record's metadata.

    Args:
        metadata: as QueryVectors returned it.
        store: holds the passages that are larger than the service takes.

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
