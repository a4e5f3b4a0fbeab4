"""Writes a version of the index: embeds new passages, writes segments, marks deleted rows, publishes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.corpus.indexable import Indexable
from cicada.errors import CorpusInvalid, IndexCorrupt, IndexMismatch, IndexMissing, IndexNewer, PublishConflict
from cicada.index.change import (
    CollectionChange,
    InMemory,
    PassageStream,
    Places,
    addition,
    checked,
    removal,
    replacement,
)
from cicada.index.collection_snapshot import CollectionSnapshot, read_snapshot
from cicada.index.embedding import Vector, passage_vectors
from cicada.index.lexical import ANALYZER_VERSION
from cicada.index.manifest import CURRENT_KEY, Manifest, SegmentEntry, parse_manifest
from cicada.index.ports import ObjectMissing, ObjectStore, Progress, Stage, silent
from cicada.index.segment import SegmentContents, write_segment
from cicada.index.versions import (
    Published,
    next_number,
    publish,
    publish_on_top,
    read_current,
    refuse_late,
    stored_versions,
    utc_now,
    version_number,
)
from cicada.models.ports import Embedder

logger = logging.getLogger(__name__)

SEGMENT_ROWS = 262_144  # passages in one segment at most

Declares = CollectionDeclaration | Literal["as before"] | None  # a collection's new declaration


@dataclass(frozen=True)
class WriteResult:
    """The result of writing a collection."""

    version: str  # the current version
    published: bool  # False if the index already held exactly this
    passages: int  # of the collection
    added: int  # new or changed passages
    removed: int  # deleted or changed passages
    embedded: int  # texts that the model embedded; the others had vectors in the previous version
    segments: int  # of the collection
    declared: CollectionDeclaration | None = None  # the previous declaration


class IndexWriter:
    """Writes collections into the index of one embedding model. Publishing is the last step of each method.

    New and changed passages become a segment of their own, and tombstones mark the deleted rows of older segments: the
    cost follows the change, not the size of the index.

    Methods raise IndexMismatch if other collections have another model or text analysis; IndexCorrupt if the collection
    or the manifest is damaged; IndexUnavailable if the store does not respond; PublishConflict if another writer
    changed the same passages; ModelBusy, ModelUnavailable or ModelRefused if a text could not be embedded.
    """

    def __init__(
        self,
        store: ObjectStore,
        embedder: Embedder,
        *,
        progress: Progress = silent,
        segment_rows: int = SEGMENT_ROWS,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Take the store to write to and the model that embeds passages; queries must use the same model."""
        self._store = store
        self._embedder = embedder
        self._progress = progress
        self._segment_rows = segment_rows
        self._now = now

    def replace(
        self,
        collection: str,
        passages: Iterable[Indexable],
        *,
        verify: bool = False,
        known: Mapping[bytes, Vector] | None = None,
        declaration: CollectionDeclaration | None = None,
    ) -> WriteResult:
        """Publish a version in which the collection holds exactly these passages and has this declaration.

        Damaged segments of the collection are written anew; ``verify`` reads every byte to find them all. ``known`` are
        vectors by recipe that need no embedding. Raises CorpusInvalid if there is no passage, or two have one id.
        """
        stream = InMemory(checked(collection, passages, empty=False), known or {})
        return self.change(
            collection,
            lambda snapshot: replacement(collection, stream, snapshot),
            mend=True,
            verify=verify,
            declares=declaration,
        )

    def add(self, collection: str, passages: Iterable[Indexable]) -> WriteResult:
        """Publish a version with these passages, which replace those of the same ids.

        Raises CorpusInvalid if two have one id; IndexMissing if there is no passage and no version.
        """
        stream = InMemory(checked(collection, passages), {})
        return self.change(collection, lambda snapshot: addition(collection, stream, snapshot))

    def delete(self, collection: str, ids: Collection[str]) -> WriteResult:
        """Publish a version without these passages; unknown ids are ignored. Raises IndexMissing if there is none."""
        return self.change(collection, lambda snapshot: removal(collection, ids, snapshot))

    def change(
        self,
        collection: str,
        plan: Callable[[CollectionSnapshot], CollectionChange],
        *,
        mend: bool = False,
        verify: bool = False,
        declares: Declares = "as before",
        check: Callable[[Manifest | None], None] = lambda _: None,
    ) -> WriteResult:
        """Publish a version with a change of one collection, planned on its current content.

        ``mend`` leaves out damaged segments, and those of another model if no other collection has it: for a change
        that replaces the collection. ``verify`` reads every byte of the collection. A new declaration alone is
        published too; a collection without passages has none. ``check`` is called with each version the change is made
        on, and raises to refuse it.

        Raises CorpusInvalid as ``plan`` does; IndexMissing if there is nothing to write and no version.
        """
        _refuse_foreign_declaration(collection, declares)
        base = read_current(self._store)
        current = None if base is None else base.manifest
        check(current)
        self._refuse_other_models(current, collection if mend else None)
        if mend and current is not None and not self._same_model(current):
            snapshot = CollectionSnapshot(unusable=current.of_collection(collection))
        else:
            snapshot = read_snapshot(self._store, current, collection, leave_out_damaged=mend, verify=verify)
        return self._carry_out(plan(snapshot), base, snapshot, declares, check)

    def start_over(self, collection: str, passages: Iterable[Indexable]) -> WriteResult:
        """Publish a version with this collection alone: for another embedding model, or a damaged index.

        Raises CorpusInvalid if there is no passage, or two have one id.
        """
        return self.start_over_with(collection, InMemory(checked(collection, passages, empty=False), {}))

    def start_over_with(
        self, collection: str, stream: PassageStream, *, declaration: CollectionDeclaration | None = None
    ) -> WriteResult:
        """:meth:`start_over` with at least one passage, without all of them in memory.

        Raises CorpusInvalid if the declaration is of another collection; IndexCorrupt if the passages cannot be read;
        IndexNewer if a newer release wrote the version.
        """
        _refuse_foreign_declaration(collection, declaration)
        began_at = self._now()
        base: Published | None = None
        replaces: str | None = None
        try:
            found = self._store.read(CURRENT_KEY)
            replaces = found.etag
            base = Published(parse_manifest(found.data), found.etag)
        except ObjectMissing:
            pass
        except IndexNewer:
            raise
        except (IndexCorrupt, IndexMismatch) as error:
            logger.warning("rebuilding the index from scratch", exc_info=error)
        passages = len(stream.ids)
        entries, asked = self._write(collection, stream, np.arange(passages), CollectionSnapshot())
        stored = list(stored_versions(self._store))
        number = max(map(version_number, stored), default=0) + 1
        declarations = () if declaration is None else (declaration,)

        def in_place_of(current: Published | None) -> Manifest:
            refuse_late(began_at, self._now())
            if base is None:
                return self._new_manifest(number, entries, declarations, previous=next(reversed(stored), None))
            if current is None or current.manifest.version != base.manifest.version:
                raise PublishConflict("another version was published concurrently")
            before = current.manifest
            return self._new_manifest(
                number, entries, declarations, previous=before.version, kept_from=before.kept_from
            )

        self._progress("publishing", 0, 1)
        if base is None:
            manifest = in_place_of(None)
            publish(self._store, manifest, replaces=replaces)
        else:  # garbage collection may rewrite the manifest while the version stays
            manifest = publish_on_top(self._store, base, in_place_of)
        self._progress("publishing", 1, 1)
        declared_before = None if base is None else base.manifest.declaration(collection)
        return WriteResult(manifest.version, True, passages, passages, 0, asked, len(entries), declared_before)

    def _carry_out(
        self,
        change: CollectionChange,
        base: Published | None,
        snapshot: CollectionSnapshot,
        declares: Declares,
        check: Callable[[Manifest | None], None],
    ) -> WriteResult:
        declared_before = None if base is None else base.manifest.declaration(change.collection)
        same = base is None or not snapshot.count or _declarations(base.manifest, change.collection, declares)[1]
        if same and not (len(change.chosen) or len(change.gone) or snapshot.unusable):
            if base is None:
                raise IndexMissing("no version has been published and there is nothing to publish")
            return WriteResult(
                base.manifest.version, False, snapshot.count, 0, 0, 0, len(snapshot.segments), declared_before
            )
        began_at = self._now()
        new, asked = self._write(change.collection, change.stream, change.chosen, snapshot)

        def on_top_of(current: Published | None) -> Manifest:
            refuse_late(began_at, self._now())
            check(None if current is None else current.manifest)
            latest = snapshot if current == base else self._rebased(change, base, current, snapshot)
            segments: list[SegmentEntry] = []
            kept = {segment.entry.key: segment for segment in latest.segments}
            for entry in current.manifest.segments if current else ():
                if entry.collection != change.collection:
                    segments.append(entry)
                elif entry.key in kept and (left := kept[entry.key].without(self._store, change.gone)):
                    segments.append(left)
            segments += new
            if current is None:
                first = (declares,) if isinstance(declares, CollectionDeclaration) else ()
                return self._new_manifest(next_number(self._store), segments, first)
            return current.manifest.successor(
                created_at=self._now(),
                segments=tuple(segments),
                declarations=_declarations(current.manifest, change.collection, declares)[0],
                **self._model,
            )

        self._progress("publishing", 0, 1)
        manifest = publish_on_top(self._store, base, on_top_of)
        self._progress("publishing", 1, 1)
        entries = manifest.of_collection(change.collection)
        return WriteResult(
            version=manifest.version,
            published=True,
            passages=sum(entry.live for entry in entries),
            added=len(change.chosen),
            removed=len(change.gone),
            embedded=asked,
            segments=len(entries),
            declared=declared_before,
        )

    def _rebased(
        self, change: CollectionChange, base: Published | None, current: Published | None, snapshot: CollectionSnapshot
    ) -> CollectionSnapshot:
        """The collection as others published it meanwhile. Raises PublishConflict if the change no longer applies."""
        overtaken = PublishConflict(f"another writer changed {change.collection} meanwhile")
        if current is None:
            raise overtaken
        self._refuse_other_models(current.manifest, change.collection if snapshot.unusable else None)
        entries = current.manifest.of_collection(change.collection)
        before = () if base is None else base.manifest.of_collection(change.collection)
        if entries == before:
            return snapshot
        if snapshot.unusable:  # the passages of unreadable segments are unknown, so their changes are too
            raise overtaken
        latest = read_snapshot(self._store, current.manifest, change.collection, opened=snapshot.segments)
        if not change.still_applies(latest):
            raise overtaken
        return latest

    def _write(
        self, collection: str, stream: PassageStream, chosen: Places, snapshot: CollectionSnapshot
    ) -> tuple[tuple[SegmentEntry, ...], int]:
        """Write the chosen passages; returns the new segments, and how many texts the model embedded."""
        slices = stream.slices(chosen, self._segment_rows)
        entries: list[SegmentEntry] = []
        asked = done = 0

        def report(stage: Stage, done_texts: int, texts: int) -> None:  # a slice's texts as the change's passages
            finished = done_texts * len(places) // texts if texts else len(places)
            self._progress(stage, done + finished, len(chosen))

        def contents_of(places: Places) -> SegmentContents:  # a function, so that its inputs are freed before writing
            nonlocal asked
            supply = stream.supply(places)
            missing = {item.recipe() for item in supply.items} - supply.known.keys()
            vectors = {**snapshot.known_vectors(missing), **supply.known}
            made, embedded = passage_vectors(self._embedder, supply.items, vectors, report)
            asked += embedded
            self._progress("writing", len(entries), len(slices))
            return SegmentContents.of(collection, supply.items, made)

        for places in slices:
            entries.append(write_segment(self._store, contents_of(places), self._embedder.model_id))
            done += len(places)
        if slices:
            self._progress("writing", len(slices), len(slices))
        return tuple(entries), asked

    def _same_model(self, manifest: Manifest) -> bool:
        """Whether a version has this embedding model and the current text analysis."""
        return all(getattr(manifest, name) == value for name, value in self._model.items())

    def _refuse_other_models(self, current: Manifest | None, replaced: str | None) -> None:
        """Raises IndexMismatch if a version has collections of another model, other than the replaced one."""
        if current is None or self._same_model(current):
            return
        if others := sorted({entry.collection for entry in current.segments} - {replaced}):
            raise IndexMismatch(
                f"{', '.join(others)} are embedded with {current.embedding_model_id} at {current.dimensions} "
                f"dimensions, text analysis {current.analyzer_version}: start over, and load them again, to change to "
                f"{self._embedder.model_id} at {self._embedder.dimensions}, text analysis {ANALYZER_VERSION}"
            )

    @property
    def _model(self) -> dict[str, Any]:
        return {
            "embedding_model_id": self._embedder.model_id,
            "dimensions": self._embedder.dimensions,
            "analyzer_version": ANALYZER_VERSION,
        }

    def _new_manifest(
        self,
        number: int,
        segments: Iterable[SegmentEntry],
        declarations: Iterable[CollectionDeclaration],
        *,
        previous: str | None = None,
        kept_from: int = 1,
    ) -> Manifest:
        return Manifest.create(
            number=number,
            created_at=self._now(),
            allow_partial=False,
            segments=tuple(segments),
            declarations=declarations,
            previous=previous,
            kept_from=kept_from,
            **self._model,
        )


def _declarations(
    manifest: Manifest, collection: str, declares: Declares
) -> tuple[tuple[CollectionDeclaration, ...], bool]:
    """A version's declarations with a collection's new one, and whether they are unchanged."""
    if declares == "as before" or declares == manifest.declaration(collection):
        return manifest.declarations, True
    others = tuple(one for one in manifest.declarations if one.collection != collection)
    return (*others, *((declares,) if isinstance(declares, CollectionDeclaration) else ())), False


def _refuse_foreign_declaration(collection: str, declares: Declares) -> None:
    if isinstance(declares, CollectionDeclaration) and declares.collection != collection:
        raise CorpusInvalid(f"the declaration belongs to collection {declares.collection}, not {collection}")
