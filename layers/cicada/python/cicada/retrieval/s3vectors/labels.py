"""What passages can be filtered by in a vector index, in the 2,048 bytes that the service allows for it.

Keys of the filterable metadata:

- ``collection``, and the locator's own fields: ``episode`` and ``speaker``, or ``source``;
- ``labels``: the passage's metadata as a list of strings, ``key=value`` or, where that is long, a digest of it. A
  filter asks by equality alone, so a digest does as well as the value, and any number of entries costs one key;
- ``entities`` and ``codes``: lists of short digests, as many as there is room for. A list for which there is none is
  :data:`ANY`, which every filter of its key lets pass. Short digests may be equal by chance, too (one pair in 2^36): so
  what was found by these keys is looked at once more, see :func:`passes`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cicada.corpus.passages import Passage
from cicada.errors import IndexMismatch
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

_DIGEST_CHARS = 18
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
    """A search's filters as QueryVectors takes them; None when everything is allowed.

    Raises:
        IndexMismatch: they have more values than the service takes.
    """
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
    """The value, or a digest that stands for it."""
    written = value.encode()
    if len(written) <= max_bytes and not value.startswith("#"):
        return value
    return "#" + hashlib.sha256(written).hexdigest()[:_DIGEST_CHARS]
