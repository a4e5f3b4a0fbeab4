"""Which version of the index an S3 Vectors index holds: a small object beside the manifests, written by the load.

A vector index has no versions, and a load of a million passages takes minutes. The record names the version that is
being loaded, and the complete one before.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, ValidationError

from cicada.errors import IndexCorrupt, IndexMissing
from cicada.index.manifest import PREFIX, IndexModel
from cicada.index.ports import ObjectMissing, ObjectStore, StoredObject

logger = logging.getLogger(__name__)

HELD_KEY = PREFIX + "engines/s3vectors.json"
CHECK_INTERVAL_S = 5.0
"""Seconds between a running function's checks for another version."""


class CollectionState(IndexModel):
    """What a vector index holds."""

    index_arn: str
    status: Literal["loading", "ready"]
    version: str
    """The version of the index that it holds, or is being loaded with."""
    previous: str | None
    """While it is being loaded: the version that it held before, if any."""
    passages: int = Field(ge=0)
    """Passages of the version."""
    embedding_model_id: str
    dimensions: int = Field(ge=1)
    run: str
    """Of the load that wrote this."""
    updated_at: Annotated[AwareDatetime, Field(strict=False)]

    def to_bytes(self) -> bytes:
        """As it is stored."""
        return self.model_dump_json(by_alias=True, indent=1).encode()


def parse_collection_state(data: bytes) -> CollectionState:
    """Read a stored record; raises IndexCorrupt if it is malformed."""
    try:
        return CollectionState.model_validate_json(data)
    except ValidationError as error:
        raise IndexCorrupt(f"cannot parse the record of the version loaded into S3 Vectors: {error}") from error


class CollectionStateReader:
    """Knows what a vector index holds; reads the record during searches. Thread-safe."""

    def __init__(
        self,
        store: ObjectStore,
        index_arn: str,
        *,
        check_interval_s: float = CHECK_INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._index_arn = index_arn
        self._check_interval_s = check_interval_s
        self._clock = clock
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="held-version")
        self._reading: Future[None] | None = None
        self._read_at = float("-inf")
        self._found: StoredObject | None = None
        self._held: CollectionState | None = None

    def refresh_soon(self) -> None:
        """Begin to read the record, unless that was just done. Returns at once."""
        with self._lock:
            under_way = self._reading is not None and not self._reading.done()
            if not under_way and self._clock() - self._read_at >= self._check_interval_s:
                self._read_at = self._clock()
                self._reading = self._pool.submit(self._read)

    def known(self) -> CollectionState | None:
        """What was read last; None before the first read."""
        return self._held

    def current(self) -> CollectionState:
        """What the index holds. Only the first call can wait for the store.

        Raises IndexMissing if nothing was loaded, or IndexCorrupt or IndexUnavailable if no record was ever read.
        """
        reading = self._reading
        if self._held is None:
            if reading is None:
                self.refresh_soon()
                reading = self._reading
            if reading is not None:
                try:
                    reading.result()
                except BaseException:
                    self._read_at = float("-inf")  # the next search tries again
                    raise
        held = self._held
        if held is None:
            raise IndexMissing("the version loaded into S3 Vectors is unknown")
        return held

    def _read(self) -> None:
        try:
            held = self._changed()
        except Exception as error:
            if self._held is None:
                raise
            logger.warning("could not refresh the version loaded into S3 Vectors", extra={"why": str(error)})
            return
        if held is not None:
            self._held = held

    def _changed(self) -> CollectionState | None:
        """The record, or None if it has not changed since it was last read."""
        try:
            if self._found is None:
                found = self._store.read(HELD_KEY)
            else:
                newer = self._store.read_if_changed(HELD_KEY, self._found.etag)
                if newer is None:
                    return None
                found = newer
        except ObjectMissing as error:
            raise IndexMissing("S3 Vectors is empty: run `cicada engine load s3vectors`") from error
        held = parse_collection_state(found.data)
        if held.index_arn != self._index_arn:
            raise IndexMissing(
                f"version {held.version} was loaded into {held.index_arn}, nothing into {self._index_arn}: "
                "run `cicada engine load s3vectors`"
            )
        self._found = found
        return held
