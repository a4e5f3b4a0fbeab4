"""Writing a version of the index: embed what is new, write segments, publish."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cicada.corpus.indexable import Indexable
from cicada.corpus.passages import Passage
from cicada.errors import CorpusInvalid, IndexFailure, IndexMismatch
from cicada.index.embedding import passage_vectors
from cicada.index.manifest import CURRENT_KEY, Manifest, SegmentEntry, segment_key
from cicada.index.progress import Progress, silent
from cicada.index.publish import (
    Published,
    keep,
    publish,
    publish_collection,
    published_versions,
    read_current,
    version_number,
)
from cicada.index.segment import Vector, Vectors, encode
from cicada.index.segments import load_segments
from cicada.index.store import ObjectMissing, ObjectStore
from cicada.models.ports import Embedder

logger = logging.getLogger(__name__)

SEGMENT_ROWS = 20_000
"""Passages in one segment at most: 80 MB of vectors at 1,024 dimensions."""


@dataclass(frozen=True)
class Written:
    """What writing a collection came to."""

    version: str
    """The version that is current now."""
    published: bool
    """False if the collection was in the index already, just so."""
    passages: int
    embedded: int
    """Texts that the model was asked for: the rest had their vectors in the previous version."""
    segments: int


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


class IndexWriter:
    """Writes collections into the index of one embedding model. Nothing is visible until the last step of each."""

    def __init__(
        self,
        store: ObjectStore,
        embedder: Embedder,
        *,
        progress: Progress = silent,
        segment_rows: int = SEGMENT_ROWS,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Take the store to write to and the model whose vectors searches will compare with."""
        self._store = store
        self._embedder = embedder
        self._progress = progress
        self._segment_rows = segment_rows
        self._now = now

    def replace(self, collection: str, passages: Iterable[Indexable]) -> Written:
        """Publish a version in which the collection holds exactly these passages, and the others what they held.

        A vector that would be made of the same texts is kept; a collection that is unchanged publishes nothing.

        Raises:
            CorpusInvalid: there is no passage, or two have one id.
            IndexMismatch: the other collections are embedded with another model.
            IndexCorrupt: the published manifest is damaged; :meth:`start_over` helps.
            IndexUnavailable: the store does not respond.
            PublishConflict: somebody else published the same collection meanwhile.
            ModelBusy, ModelUnavailable, ModelRefused: a text could not be embedded.
        """
        items = _checked(collection, passages)
        base = read_current(self._store)
        self._refuse_other_model(base, collection)
        held = self._held(base, collection)
        if base is not None and held.holds(items):
            return Written(base.manifest.version, False, len(items), 0, held.segments)
        entries, asked = self._write_segments(collection, items, held.vector_of())

        def on_top_of(current: Published | None) -> Manifest:
            self._refuse_other_model(current, collection)
            if current is None:
                return self._manifest(1, entries, previous=None)
            others = tuple(entry for entry in current.manifest.segments if entry.collection != collection)
            return self._manifest(current.manifest.number + 1, others + entries, previous=current.manifest.version)

        self._progress("publishing", 0, 1)
        manifest = publish_collection(self._store, base, collection, on_top_of)
        self._progress("publishing", 1, 1)
        return Written(manifest.version, True, len(items), asked, len(entries))

    def start_over(self, collection: str, passages: Iterable[Indexable]) -> Written:
        """Publish a version that holds this collection only: for another embedding model, or a damaged index.

        Raises:
            CorpusInvalid, IndexUnavailable, PublishConflict, ModelBusy, ModelUnavailable, ModelRefused: as
                :meth:`replace` does.
        """
        items = _checked(collection, passages)
        try:
            replaces = self._store.read(CURRENT_KEY).etag
        except ObjectMissing:
            replaces = None
        entries, asked = self._write_segments(collection, items, {})
        number = 1 + max(map(version_number, published_versions(self._store)), default=0)
        manifest = self._manifest(number, entries, previous=None)
        self._progress("publishing", 0, 1)
        publish(self._store, manifest, replaces=replaces)
        self._progress("publishing", 1, 1)
        return Written(manifest.version, True, len(items), asked, len(entries))

    def _refuse_other_model(self, current: Published | None, collection: str) -> None:
        if current is None or self._same_model(current.manifest):
            return
        if others := sorted({entry.collection for entry in current.manifest.segments} - {collection}):
            raise IndexMismatch(
                f"{', '.join(others)} are embedded with {current.manifest.embedding_model_id} at "
                f"{current.manifest.dimensions} dimensions: start over, and load them again, to change to "
                f"{self._embedder.model_id} at {self._embedder.dimensions}"
            )

    def _same_model(self, manifest: Manifest) -> bool:
        return (manifest.embedding_model_id, manifest.dimensions) == (
            self._embedder.model_id,
            self._embedder.dimensions,
        )

    def _held(self, base: Published | None, collection: str) -> _Held:
        """What the collection holds now, as far as it can be read and used again."""
        if base is None or not self._same_model(base.manifest):
            return _Held((), 0)
        entries = base.manifest.of_collection(collection)
        try:
            segments = load_segments(self._store, entries, dimensions=self._embedder.dimensions)
            rows = tuple(
                row
                for segment in segments
                for row in zip(segment.passages(), segment.recipes(), segment.vectors, strict=True)
            )
        except IndexFailure as error:  # what is damaged is written anew
            logger.warning("previous segments cannot be used", extra={"collection": collection}, exc_info=error)
            return _Held((), 0)
        return _Held(rows, len(entries))

    def _write_segments(
        self, collection: str, items: Sequence[Indexable], known: Mapping[bytes, Vector]
    ) -> tuple[tuple[SegmentEntry, ...], int]:
        """Write the passages, and return their segments and the number of texts that the model was asked for."""
        embedded = passage_vectors(self._embedder, items, known, self._progress)
        starts = range(0, len(items), self._segment_rows)
        entries: list[SegmentEntry] = []
        for start in starts:
            self._progress("writing", len(entries), len(starts))
            rows = slice(start, start + self._segment_rows)
            entries.append(self._write_segment(collection, items[rows], embedded.vectors[rows]))
        self._progress("writing", len(starts), len(starts))
        return tuple(entries), embedded.asked

    def _write_segment(self, collection: str, items: Sequence[Indexable], vectors: Vectors) -> SegmentEntry:
        encoded = encode(collection, self._embedder.model_id, items, vectors)
        key = segment_key(encoded.sha256)
        keep(self._store, key, encoded.data)
        return SegmentEntry(
            key=key,
            collection=collection,
            count=len(items),
            bytes=len(encoded.data),
            head_bytes=encoded.head_bytes,
            sha256=encoded.sha256,
        )

    def _manifest(self, number: int, segments: tuple[SegmentEntry, ...], *, previous: str | None) -> Manifest:
        return Manifest.create(
            number=number,
            created_at=self._now(),
            embedding_model_id=self._embedder.model_id,
            dimensions=self._embedder.dimensions,
            segments=segments,
            previous=previous,
        )


@dataclass(frozen=True)
class _Held:
    """A collection's passages in the current version, each with its vector's recipe and the vector."""

    rows: tuple[tuple[Passage, bytes, Vector], ...]
    segments: int

    def holds(self, items: Sequence[Indexable]) -> bool:
        """Whether it holds just these."""
        return [row[:2] for row in self.rows] == [(item.passage, item.recipe()) for item in items]

    def vector_of(self) -> dict[bytes, Vector]:
        """The vectors by their recipes."""
        return {recipe: vector for _, recipe, vector in self.rows}


def _checked(collection: str, passages: Iterable[Indexable]) -> list[Indexable]:
    items = list(passages)
    if not items:
        raise CorpusInvalid(f"{collection} would hold no passage")
    seen: set[str] = set()
    for passage in (item.passage for item in items):
        if passage.collection != collection:
            raise CorpusInvalid(f"passage {passage.id} is of collection {passage.collection}, not {collection}")
        if passage.id in seen:
            raise CorpusInvalid(f"two passages of {collection} have the id {passage.id}")
        seen.add(passage.id)
    return items
