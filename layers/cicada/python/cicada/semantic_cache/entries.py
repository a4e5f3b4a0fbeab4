"""What is stored of an answer: a small entry, which is searched, and a body; and the port of their store."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from cicada.protocol.events import Citation, Source

MAX_BODY_BYTES = 350 * 1024
"""The limit of a packed body: a DynamoDB item is at most 400 KB, including names and keys."""
MAX_UNPACKED_BYTES = 4 * 1024 * 1024
"""The limit of an unpacked body: a larger one is damaged."""
_STEPS = 127

Vector = NDArray[np.float32]
"""Shape ``(d,)``, of unit length."""


class BodyUnreadable(ValueError):
    """A stored body is damaged or has another layout."""


class BodyTooLarge(ValueError):
    """A body does not fit into one item."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """An earlier question, as lookups compare it."""

    id: str
    """Sorts by time: epoch milliseconds in 13 digits, ``-`` and a random suffix."""
    question: str
    vector: bytes
    """See :func:`pack_vector`; empty in a :class:`~cicada.semantic_cache.entry_lists.Snapshot`."""
    answered_at_ms: int
    expires_at: int
    """Epoch seconds; afterwards the entry counts as deleted, whether or not it is still stored."""


class CachedAnswer(BaseModel):
    """An earlier answer with its sources."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    text: str
    sources: tuple[Source, ...]
    citations: tuple[Citation, ...]
    model_id: str
    stop_reason: str
    found: int
    """How many passages the search had found."""


def pack_body(body: CachedAnswer) -> bytes:
    """A body as it is stored: compressed JSON. Raises BodyTooLarge."""
    plain = body.model_dump_json(by_alias=True, exclude_none=True).encode()
    packed = zlib.compress(plain, 6)
    if len(packed) > MAX_BODY_BYTES or len(plain) > MAX_UNPACKED_BYTES:
        raise BodyTooLarge(f"{len(packed)} bytes, {len(plain)} unpacked")
    return packed


def unpack_body(data: bytes) -> CachedAnswer:
    """Read a stored body. Raises BodyUnreadable."""
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(data, MAX_UNPACKED_BYTES)
        if not unpacking.eof:
            raise BodyUnreadable("the body is truncated or too large")
        return CachedAnswer.model_validate_json(plain)
    except (zlib.error, ValidationError) as error:
        raise BodyUnreadable(str(error)) from error


def pack_vector(vector: Vector) -> bytes:
    """A unit vector as int8, one byte per dimension. Changes a cosine by less than 0.01."""
    largest = float(np.abs(vector).max()) or 1.0
    steps: NDArray[np.int8] = np.rint(vector * (_STEPS / largest)).astype(np.int8)
    return steps.tobytes()


def unpack_vector(data: bytes, dimensions: int) -> Vector | None:
    """The unit vector that :func:`pack_vector` packed; None if it has other dimensions."""
    if len(data) != dimensions:
        return None
    steps = np.frombuffer(data, np.int8).astype(np.float32)
    unit: Vector = steps / np.float32(np.linalg.norm(steps) or 1.0)
    return unit


class CacheStore(Protocol):
    """Stores entries and bodies by scope. Every method raises CacheUnavailable if the store fails.

    Reads of entries may lag behind writes: an entry that is not visible yet only costs a cache hit.
    """

    def entries(self, scope: str, *, after: str, limit: int) -> list[CacheEntry]:
        """The newest entries of a scope with an id above ``after`` (empty: all), at most ``limit``, newest first."""
        ...

    def older(self, scope: str, *, before: str, limit: int) -> list[str]:
        """The ids of the oldest entries of a scope that lie below ``before``, at most ``limit``, oldest first."""
        ...

    def body(self, scope: str, entry_id: str) -> bytes | None:
        """An entry's body; None if it was deleted."""
        ...

    def put(self, scope: str, entry: CacheEntry, body: bytes, *, owner: str) -> None:
        """Store an answer: its body first, so that no entry is visible without one.

        ``owner`` is whose question it answers, whoever shares it.
        """
        ...

    def delete(self, scope: str, entry_ids: Sequence[str]) -> None:
        """Delete entries and their bodies, the entries first. Deleted ones are ignored."""
        ...
