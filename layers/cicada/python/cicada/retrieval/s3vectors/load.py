"""Copy the current version of the index into S3 Vectors: ``cicada engine load s3vectors``.

A load lists the vector index, puts missing vectors, and then deletes extra ones. So it resumes after an interruption,
and writes little after a small change. The state record says ``loading`` from before the first write until after the
last.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from cicada.corpus.passages import Passage
from cicada.errors import IndexCorrupt, IndexMissing, IndexUnavailable, PublishConflict
from cicada.index.manifest import CURRENT_KEY, parse_manifest
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed, put
from cicada.index.segment import SegmentFile
from cicada.index.segment_reader import read_tombstones
from cicada.retrieval.s3vectors.collection_state import HELD_KEY, CollectionState, parse_collection_state
from cicada.retrieval.s3vectors.setup import IndexCalls, VectorIndexSettings
from cicada.retrieval.s3vectors.vector_records import OVERFLOW_PREFIX, VectorRecord, record_of

BATCH = 500
"""Vectors of one PutVectors or DeleteVectors at most. Source: Amazon S3 User Guide, "Limitations and restrictions"."""
BATCH_BYTES = 16 * 2**20
"""Bytes of one request at most, as estimated; the service's limit is 20 MiB."""
PARALLEL_CALLS = 4
"""Requests at once: the service takes 2,500 vectors a second in all, and throttles beyond."""
LIST_SEGMENTS = 4
"""Parts that the listing is cut into, each listed by a thread of its own; the service allows 16."""
LIST_PAGE = 1000
Progress = Callable[[int, int], None]
"""Takes the number of written passages, and of all."""

_OVERTAKEN = "another load of S3 Vectors has begun meanwhile"


class Version(Protocol):
    """One version of the index, as a load reads it."""

    version: str
    count: int
    embedding_model_id: str
    dimensions: int

    def passages(self) -> Iterable[tuple[Passage, NDArray[np.float32]]]:
        """Every passage with its unit vector, shape ``(d,)``."""


@dataclass(frozen=True)
class Loaded:
    """What a load did."""

    version: str
    passages: int
    put: int
    kept: int
    """Were there already."""
    deleted: int


class Loader:
    """Loads versions into one vector index."""

    def __init__(
        self, calls: IndexCalls, store: ObjectStore, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """``store`` is the index's bucket, where the record of what is held lies."""
        self._calls = calls
        self._store = store
        self._now = now
        self._settings = VectorIndexSettings(calls)

    def load(self, source: Version, progress: Progress = lambda *_: None, *, language: str | None = None) -> Loaded:
        """Make the vector index hold exactly the passages of a version.

        ``language`` is that of the analyzer for full-text search; None for the service's standard one.

        Raises:
            IndexMismatch, IndexMissing: the vector index was created with other settings, or does not exist.
            IndexUnavailable: the service or the store does not respond; the next load resumes from what was written.
            PublishConflict: another load has begun.
            IndexCorrupt: the version cannot be read.
        """
        self._settings.prepare(source.dimensions, language)
        claim = _Claim.take(self._store, self._calls.index_arn, source, self._now)
        present = self._list()
        loaded = self._put_missing(source, present, claim, progress)
        claim.check()
        self._delete(sorted(present))
        held = len(self._list())
        if held != source.count:
            raise IndexUnavailable(
                f"the S3 Vectors index holds {held:,} passages where version {source.version} has {source.count:,}: "
                "another process wrote to it; load again"
            )
        self._settings.wait_for_words()
        claim.complete()
        for entry in list(self._store.entries(OVERFLOW_PREFIX)):
            if entry.key not in loaded.overflow:
                self._store.delete(entry.key)
        return Loaded(source.version, source.count, loaded.put, loaded.kept, len(present))

    def _list(self) -> set[str]:
        with ThreadPoolExecutor(LIST_SEGMENTS, thread_name_prefix="s3vectors-list") as pool:
            return set().union(*pool.map(self._list_segment, range(LIST_SEGMENTS)))

    def _list_segment(self, segment: int) -> set[str]:
        keys: set[str] = set()
        request: dict[str, Any] = {"maxResults": LIST_PAGE, "segmentCount": LIST_SEGMENTS, "segmentIndex": segment}
        while True:
            page = self._calls("list_vectors", **request)
            keys.update(vector["key"] for vector in page["vectors"])
            if not page.get("nextToken"):
                return keys
            request["nextToken"] = page["nextToken"]

    def _put_missing(self, source: Version, present: set[str], claim: _Claim, progress: Progress) -> _Put:
        """Put missing vectors, and remove those of the version from ``present``."""
        done = _Put()

        def missing() -> Iterator[VectorRecord]:
            for passage, vector in source.passages():
                record = record_of(passage, vector)
                if record.overflow is not None:
                    key, data = record.overflow
                    try:
                        self._store.read(key)
                    except ObjectMissing:
                        put(self._store, key, data)
                    done.overflow.add(key)
                if record.key in present:
                    present.discard(record.key)
                    done.kept += 1
                else:
                    yield record

        def put_batch(batch: Sequence[VectorRecord]) -> int:
            claim.check()
            self._calls("put_vectors", vectors=[record.put_input() for record in batch])
            return len(batch)

        progress(0, source.count)
        for written in self._in_parallel(put_batch, batches(missing())):
            done.put += written
            if done.put + done.kept < source.count:
                progress(done.put + done.kept, source.count)
        progress(done.put + done.kept, source.count)
        return done

    def _delete(self, keys: Sequence[str]) -> None:
        def delete(batch: Sequence[str]) -> int:
            self._calls("delete_vectors", keys=list(batch))
            return len(batch)

        for _ in self._in_parallel(delete, (keys[at : at + BATCH] for at in range(0, len(keys), BATCH))):
            pass

    @staticmethod
    def _in_parallel(work: Callable[[Any], int], pieces: Iterable[Any]) -> Iterator[int]:
        """The results of the work on each piece, as they come; no more pieces are made than are under way."""
        with ThreadPoolExecutor(PARALLEL_CALLS, thread_name_prefix="s3vectors-write") as pool:
            under_way: set[Future[int]] = set()
            for piece in pieces:
                under_way.add(pool.submit(work, piece))
                if len(under_way) > PARALLEL_CALLS:
                    finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in finished)
            yield from (future.result() for future in under_way)


@dataclass
class _Put:
    put: int = 0
    kept: int = 0
    overflow: set[str] = field(default_factory=set)


class _Claim:
    """A load's right to the vector index: the last writer of the state record has it."""

    def __init__(self, store: ObjectStore, held: CollectionState, etag: str, now: Callable[[], datetime]) -> None:
        self._store = store
        self._held = held
        self._etag = etag
        self._now = now

    @classmethod
    def take(cls, store: ObjectStore, index_arn: str, source: Version, now: Callable[[], datetime]) -> _Claim:
        """Record that a load begins."""
        etag: str | None = None
        previous: str | None = None
        try:
            found = store.read(HELD_KEY)
        except ObjectMissing:
            pass
        else:
            etag, before = found.etag, parse_collection_state(found.data)
            if before.index_arn == index_arn:
                previous = before.version if before.status == "ready" else before.previous
        held = CollectionState(
            index_arn=index_arn,
            status="loading",
            version=source.version,
            previous=previous,
            passages=source.count,
            embedding_model_id=source.embedding_model_id,
            dimensions=source.dimensions,
            run=secrets.token_hex(8),
            updated_at=now(),
        )
        return cls(store, held, cls._write(store, held, etag), now)

    def check(self) -> None:
        """Raise PublishConflict if another load has begun."""
        try:
            other = self._store.read_if_changed(HELD_KEY, self._etag)
        except ObjectMissing as error:
            raise PublishConflict(f"{HELD_KEY} was deleted concurrently") from error
        if other is not None:
            raise PublishConflict(_OVERTAKEN)

    def complete(self) -> None:
        """Record that the load is complete. Raises PublishConflict if another load has begun."""
        whole = self._held.model_copy(update={"status": "ready", "previous": None, "updated_at": self._now()})
        self._write(self._store, whole, self._etag)

    @staticmethod
    def _write(store: ObjectStore, held: CollectionState, replaces: str | None) -> str:
        data = held.to_bytes()
        try:
            return store.write(HELD_KEY, data, replaces=replaces)
        except PreconditionFailed as error:
            try:
                found = store.read(HELD_KEY)
            except ObjectMissing:
                found = None
            if found is not None and found.data == data:  # our own write, whose response was lost
                return found.etag
            raise PublishConflict(_OVERTAKEN) from error


def batches(records: Iterable[VectorRecord]) -> Iterator[list[VectorRecord]]:
    """Cut records into requests of at most :data:`BATCH` vectors and :data:`BATCH_BYTES` bytes."""
    batch: list[VectorRecord] = []
    size_bytes = 0
    for record in records:
        record_bytes = record.most_bytes
        if batch and (len(batch) == BATCH or size_bytes + record_bytes > BATCH_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(record)
        size_bytes += record_bytes
    if batch:
        yield batch


class CurrentVersion:
    """The version that was current when this was made. One segment is in memory at a time."""

    def __init__(self, store: ObjectStore) -> None:
        """Read the manifest; raises IndexMissing if no version is published, else IndexFailure if unreadable."""
        try:
            found = store.read(CURRENT_KEY)
        except ObjectMissing as error:
            raise IndexMissing("no version has been published") from error
        self._store = store
        self._manifest = manifest = parse_manifest(found.data)
        self.version, self.count = manifest.version, manifest.count
        self.embedding_model_id, self.dimensions = manifest.embedding_model_id, manifest.dimensions

    def passages(self) -> Iterator[tuple[Passage, NDArray[np.float32]]]:
        """Every passage with its unit vector as stored, by segment; raises IndexFailure if one is unreadable."""
        for entry in self._manifest.segments:
            contents = SegmentFile.open(self._store, entry).contents()
            deleted = read_tombstones(self._store, entry)
            alive = None if deleted is None else ~deleted[contents.rows]
            for place, (line, vector) in enumerate(zip(contents.lines, contents.vectors, strict=True)):
                if alive is None or alive[place]:
                    yield _passage(line, entry.key), vector


def _passage(line: bytes, key: str) -> Passage:
    try:
        return Passage.model_validate_json(line)
    except ValidationError as error:
        raise IndexCorrupt(f"{key} contains an unreadable passage") from error
