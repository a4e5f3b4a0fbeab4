"""What is kept of an answer, and the store it is kept in: a small entry that is searched, and a body."""

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
"""A packed body above this is not kept: DynamoDB's items end at 400 KB, names and keys included."""
MAX_UNPACKED_BYTES = 4 * 1024 * 1024
"""No body unpacks to more: what claims to is damaged."""
_STEPS = 127

Vector = NDArray[np.float32]
"""Shape ``(d,)``, of unit length."""


class BodyUnreadable(ValueError):
    """A stored body is damaged, or of another layout."""


class BodyTooLarge(ValueError):
    """A body does not fit into one item."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """An earlier question, as look-ups compare it."""

    id: str
    """In the order of appending: epoch milliseconds in 13 digits, ``-``, and a part that tells writers apart."""
    question: str
    vector: bytes
    """See :func:`pack_vector`; empty where the unpacked one is held beside the entry."""
    answered_at_ms: int
    expires_at: int
    """Epoch seconds; past it the entry counts as gone, whether it is still stored or not."""


class CachedAnswer(BaseModel):
    """An earlier answer with what it rests on."""

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
    """A body as it is stored: compressed JSON.

    Raises:
        BodyTooLarge: it has more than :data:`MAX_BODY_BYTES`.
    """
    plain = body.model_dump_json(by_alias=True, exclude_none=True).encode()
    packed = zlib.compress(plain, 6)
    if len(packed) > MAX_BODY_BYTES or len(plain) > MAX_UNPACKED_BYTES:
        raise BodyTooLarge(f"{len(packed)} bytes, {len(plain)} unpacked")
    return packed


def unpack_body(data: bytes) -> CachedAnswer:
    """Read a stored body.

    Raises:
        BodyUnreadable: it is damaged, or of another layout.
    """
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(data, MAX_UNPACKED_BYTES)
        if not unpacking.eof:
            raise BodyUnreadable("a body does not end where it should")
        return CachedAnswer.model_validate_json(plain)
    except (zlib.error, ValidationError) as error:
        raise BodyUnreadable(str(error)) from error


def pack_vector(vector: Vector) -> bytes:
    """A vector as int8, a byte a dimension, without its length, which is 1. Moves a cosine by less than 0.01."""
    largest = float(np.abs(vector).max()) or 1.0
    steps: NDArray[np.int8] = np.rint(vector * (_STEPS / largest)).astype(np.int8)
    return steps.tobytes()


def unpack_vector(data: bytes, dimensions: int) -> Vector | None:
    """The vector that :func:`pack_vector` packed, of unit length again; None if it is none of these dimensions."""
    if len(data) != dimensions:
        return None
    steps = np.frombuffer(data, np.int8).astype(np.float32)
    unit: Vector = steps / np.float32(np.linalg.norm(steps) or 1.0)
    return unit


class CacheStore(Protocol):
    """Keeps entries and bodies by scope. Every method raises CacheUnavailable if the store does not do it.

    Reads of entries may lag behind writes: an entry that is not seen yet is a missed saving and nothing else.
    """

    def entries(self, scope: str, *, after: str, limit: int) -> list[CacheEntry]:
        """The newest entries of a scope with an id above ``after`` (empty: all), at most ``limit``, newest first."""
        ...

    def older(self, scope: str, *, before: str, limit: int) -> list[str]:
        """The ids of the oldest entries of a scope that lie below ``before``, at most ``limit``, oldest first."""
        ...

    def body(self, scope: str, entry_id: str) -> bytes | None:
        """An entry's body; None if it is gone."""
        ...

    def put(self, scope: str, entry: CacheEntry, body: bytes) -> None:
        """Keep an answer: its body first, so that no entry is ever seen without one."""
        ...

    def delete(self, scope: str, entry_ids: Sequence[str]) -> None:
        """Delete entries and their bodies, the entries first; those that are gone already are no fault."""
        ...
