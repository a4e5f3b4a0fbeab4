"""Writing a version of the index: embed what is new, write it as segments, delete what is gone, publish."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.corpus.indexable import Indexable
from cicada.errors import CorpusInvalid, IndexCorrupt, IndexMismatch, IndexMissing, PublishConflict
from cicada.index.change import Change, InMemory, Intake, Places, addition, checked, removal, replacement
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

Declares = CollectionDeclaration | Literal["as before"] | None
"""What a collection declares of itself from a version on; None for nothing."""


def declared(manifest: Manifest, collection: str, declares: Declares) -> tuple[tuple[CollectionDeclaration, ...], bool]:
    """The declarations of a version in which a collection declares this; and whether they are those of ``manifest``."""
    if declares == "as before" or declares == manifest.declaration(collection):
        return manifest.declarations, True
    others = tuple(one for one in manifest.declarations if one.collection != collection)
    return (*others, *((declares,) if isinstance(declares, CollectionDeclaration) else ())), False


def refuse_foreign(collection: str, declares: Declares) -> None:
    """Raise CorpusInvalid if a collection would declare something of another one."""
    if isinstance(declares, CollectionDeclaration) and declares.collection != collection:
        raise CorpusInvalid(f"the declaration is of collection {declares.collection}, not {collection}")


@dataclass(frozen=True)
class Making:
    """Makes the manifests of versions that hold vectors of one model, and words by today's rules of text analysis."""

    embedder: Embedder
    now: Callable[[], datetime]

    def fits(self, manifest: Manifest) -> bool:
        """Whether a version is of this model and these rules."""
        return (manifest.embedding_model_id, manifest.dimensions, manifest.analyzer_version) == (
            self.embedder.model_id,
            self.embedder.dimensions,
            ANALYZER_VERSION,
        )

    def refuse_others(self, current: Manifest | None, replaced: str | None) -> None:
        """Refuse to mix models, or rules of text analysis, in a version; a collection that is replaced is no matter.

        Raises:
            IndexMismatch: other collections of the version are of another model, or other rules.
        """
        if current is None or self.fits(current):
            return
        if others := sorted({entry.collection for entry in current.segments} - {replaced}):
            raise IndexMismatch(
                f"{', '.join(others)} are embedded with {current.embedding_model_id} at {current.dimensions} "
                f"dimensions, text analysis {current.analyzer_version}: start over, and load them again, to change to "
                f"{self.embedder.model_id} at {self.embedder.dimensions}, text analysis {ANALYZER_VERSION}"
            )

    def manifest(
        self,
        number: int,
        segments: tuple[SegmentEntry, ...],
        declarations: tuple[CollectionDeclaration, ...],
        *,
        previous: str | None,
        kept_from: int,
        allow_partial: bool = False,
    ) -> Manifest:
        """A version's manifest; see :class:`cicada.index.manifest.Manifest` for what it says."""
        return Manifest.create(
            number=number,
            created_at=self.now(),
            embedding_model_id=self.embedder.model_id,
            dimensions=self.embedder.dimensions,
            analyzer_version=ANALYZER_VERSION,
            allow_partial=allow_partial,
            segments=segments,
            previous=previous,
            kept_from=kept_from,
            declarations=declarations,
        )


def write_segments(
    store: ObjectStore,
    embedder: Embedder,
    intake: Intake,
    chosen: Places,
    *,
    collection: str,
    known: Callable[[Collection[bytes]], dict[bytes, Vector]],
    segment_rows: int,
    progress: Progress,
) -> tuple[tuple[SegmentEntry, ...], int]:
    """Write the chosen passages, piece by piece.

    Args:
        store: where to.
        embedder: makes the vectors that are not known.
        intake: the passages.
        chosen: which of them.
        collection: whose they are.
        known: finds vectors by recipe that the intake does not bring.
        segment_rows: passages in one segment at most.
        progress: told after each batch of texts, and of each segment.

    Returns:
        The segments, and the number of texts that the model was asked for.

    Raises:
        CorpusInvalid: the passages of a segment have more fields, or more text, than it can hold.
        IndexCorrupt, IndexUnavailable: the intake cannot be read, or the store does not respond.
        IndexMismatch, ModelBusy, ModelUnavailable, ModelRefused: a text could not be embedded.
    """
    slices = intake.slices(chosen, segment_rows)
    entries: list[SegmentEntry] = []
    asked = done = 0

    def contents_of(places: Places) -> SegmentContents:  # what it is made of is let go of before it is written
        nonlocal asked
        supply = intake.supply(places)
        vectors = {**known({item.recipe() for item in supply.items} - supply.known.keys()), **supply.known}
        embedded = passage_vectors(embedder, supply.items, vectors, _part(progress, done, len(places), len(chosen)))
        asked += embedded.asked
        progress("writing", len(entries), len(slices))
        return SegmentContents.of(collection, supply.items, embedded.vectors)

    for places in slices:
        entries.append(write_segment(store, contents_of(places), embedder.model_id))
        done += len(places)
    if slices:
        progress("writing", len(slices), len(slices))
    return tuple(entries), asked


def _part(progress: Progress, start: int, count: int, passages: int) -> Progress:
    """Progress with one of several segments' texts, as progress with all passages."""

    def told(stage: Stage, done: int, total: int) -> None:
        progress(stage, start + (done * count // total if total else count), passages)

    return told


logger = logging.getLogger(__name__)

SEGMENT_ROWS = 262_144
"""Passages in one segment at most."""


@dataclass(frozen=True)
class Written:
    """What writing a collection came to."""

    version: str
    """The version that is current now."""
    published: bool
    """False if the collection was in the index already, just so."""
    passages: int
    """That the collection has now."""
    added: int
    """Passages that are new, or that were changed."""
    removed: int
    """Passages that are gone, or that were changed."""
    embedded: int
    """Texts that the model was asked for: the rest had their vectors in the previous version."""
    segments: int
    """That the collection has now."""
    declared: CollectionDeclaration | None = None
    """What the collection declared before."""


class IndexWriter:
    """Writes collections into the index of one embedding model. Nothing is visible until the last step of each.

    Work and written bytes follow what changes, not what the index holds: new and changed passages become a segment of
    their own, and tombstones tell which rows of older segments do not count any more.
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
        """Take the store to write to and the model whose vectors searches will compare with."""
        self._store = store
        self._embedder = embedder
        self._progress = progress
        self._segment_rows = segment_rows
        self._now = now
        self._making = Making(embedder, now)

    def replace(
        self,
        collection: str,
        passages: Iterable[Indexable],
        *,
        verify: bool = False,
        known: Mapping[bytes, Vector] | None = None,
        declaration: CollectionDeclaration | None = None,
    ) -> Written:
        """Publish a version in which the collection holds exactly these passages, and the others what they held.

        What is unchanged stays where it is; a collection that is unchanged as a whole publishes nothing. Segments of
        the collection that turn out to be damaged are written anew.

        Args:
            collection: its name.
            passages: at least one.
            verify: read every byte that the collection has, to find all damage.
            known: vectors by recipe: what is made by one of these is not embedded again.
            declaration: what the collection declares of itself; None for nothing, whatever it declared before.

        Raises:
            CorpusInvalid: there is no passage, or two have one id.
            IndexMismatch: the other collections are embedded with another model, or analysed by other rules.
            IndexCorrupt: the published manifest is damaged; :meth:`start_over` helps.
            IndexUnavailable: the store does not respond.
            PublishConflict: somebody else changed the same collection meanwhile.
            ModelBusy, ModelUnavailable, ModelRefused: a text could not be embedded.
        """
        intake = InMemory(checked(collection, passages, empty=False), known or {})
        return self.change(
            collection,
            lambda held: replacement(collection, intake, held),
            mend=True,
            verify=verify,
            declares=declaration,
        )

    def add(self, collection: str, passages: Iterable[Indexable]) -> Written:
        """Publish a version that has these passages, in place of those of the same ids; the rest stays.

        Raises:
            CorpusInvalid: two have one id.
            IndexMissing: there is no passage, and no version is published.
            IndexMismatch: the index is embedded with another model, or analysed by other rules.
            IndexCorrupt: the collection is damaged; :meth:`replace` it.
            IndexUnavailable: the store does not respond.
            PublishConflict: somebody else changed the same passages meanwhile.
            ModelBusy, ModelUnavailable, ModelRefused: a text could not be embedded.
        """
        intake = InMemory(checked(collection, passages), {})
        return self.change(collection, lambda held: addition(collection, intake, held))

    def delete(self, collection: str, ids: Collection[str]) -> Written:
        """Publish a version without these passages of a collection. Ids that it does not have are left alone.

        Raises:
            IndexMissing: no version is published.
            IndexMismatch: the index is embedded with another model, or analysed by other rules.
            IndexCorrupt: the collection is damaged.
            IndexUnavailable: the store does not respond.
            PublishConflict: somebody else changed the same passages meanwhile.
        """
        nothing = InMemory([], {})
        return self.change(collection, lambda held: removal(collection, ids, nothing, held))

    def change(
        self,
        collection: str,
        plan: Callable[[CollectionSnapshot], Change],
        *,
        mend: bool = False,
        verify: bool = False,
        declares: Declares = "as before",
        check: Callable[[Manifest | None], None] | None = None,
    ) -> Written:
        """Publish a version with a change of one collection: what the other methods are made of.

        Args:
            collection: its name.
            plan: makes the change upon what the collection holds.
            mend: the change replaces the collection: segments that are damaged, or of another model where the index
                holds no other collection, are left out of what it holds, and of the new version.
            verify: read every byte that the collection has, to find all damage.
            declares: what the collection declares of itself. A change of it alone is published, too; a collection
                without passages declares nothing.
            check: raises if the change is not to be made upon a version; called with each that it could be made upon.

        Raises:
            CorpusInvalid: as ``plan`` raises it.
            IndexMissing: there is nothing to write, and no version is published.
            IndexMismatch: the index is embedded with another model, or analysed by other rules.
            IndexCorrupt: the collection is damaged, and that is not to be mended.
            IndexUnavailable: the store does not respond.
            PublishConflict: somebody else changed the same passages meanwhile.
            ModelBusy, ModelUnavailable, ModelRefused: a text could not be embedded.
        """
        refuse_foreign(collection, declares)
        base = read_current(self._store)
        check = check or _nothing
        current = None if base is None else base.manifest
        check(current)
        self._making.refuse_others(current, collection if mend else None)
        if mend and current is not None and not self._making.fits(current):
            held = CollectionSnapshot(unusable=current.of_collection(collection))
        else:
            held = self._held(base, collection, leave_out_damaged=mend, verify=verify)
        return self._carry_out(plan(held), base, held, declares, check)

    def start_over(self, collection: str, passages: Iterable[Indexable]) -> Written:
        """Publish a version that holds this collection only: for another embedding model, or a damaged index.

        Raises:
            CorpusInvalid, IndexUnavailable, PublishConflict, ModelBusy, ModelUnavailable, ModelRefused: as
                :meth:`replace` does.
        """
        return self.start_over_with(collection, InMemory(checked(collection, passages, empty=False), {}))

    def start_over_with(
        self, collection: str, intake: Intake, *, declaration: CollectionDeclaration | None = None
    ) -> Written:
        """:meth:`start_over` with at least one passage, which need not all be in memory at a time.

        Args:
            collection: its name.
            intake: the passages.
            declaration: what the collection declares of itself.

        Raises:
            IndexCorrupt: the passages cannot be read.
            CorpusInvalid, IndexUnavailable, PublishConflict, ModelBusy, ModelUnavailable, ModelRefused: as
                :meth:`replace` does.
        """
        refuse_foreign(collection, declaration)
        began_at = self._now()
        base: Published | None = None
        replaces: str | None = None
        try:
            found = self._store.read(CURRENT_KEY)
            replaces = found.etag
            base = Published(parse_manifest(found.data), found.etag)
        except ObjectMissing:
            pass
        except (IndexCorrupt, IndexMismatch) as error:
            logger.warning("the index is started over", exc_info=error)
        everything = np.arange(len(intake.ids))
        entries, asked = self._write(collection, intake, everything, CollectionSnapshot())
        stored = list(stored_versions(self._store))
        number = max(map(version_number, stored), default=0) + 1
        declarations = () if declaration is None else (declaration,)

        def in_place_of(current: Published | None) -> Manifest:
            refuse_late(began_at, self._now())
            if base is None:
                return self._making.manifest(
                    number, entries, declarations, previous=next(reversed(stored), None), kept_from=1
                )
            if current is None or current.manifest.version != base.manifest.version:
                raise PublishConflict("somebody else published meanwhile")
            return self._making.manifest(
                number, entries, declarations, previous=current.manifest.version, kept_from=current.manifest.kept_from
            )

        self._progress("publishing", 0, 1)
        if base is None:
            manifest = in_place_of(None)
            publish(self._store, manifest, replaces=replaces)
        else:  # the collection of garbage may rewrite the manifest while the version stays
            manifest = publish_on_top(self._store, base, in_place_of)
        self._progress("publishing", 1, 1)
        before = None if base is None else base.manifest.declaration(collection)
        return Written(manifest.version, True, len(everything), len(everything), 0, asked, len(entries), before)

    def _carry_out(
        self,
        change: Change,
        base: Published | None,
        held: CollectionSnapshot,
        declares: Declares,
        check: Callable[[Manifest | None], None],
    ) -> Written:
        before = None if base is None else base.manifest.declaration(change.collection)
        same = base is None or not held.count or declared(base.manifest, change.collection, declares)[1]
        if same and not (len(change.chosen) or len(change.gone) or held.unusable):
            if base is None:
                raise IndexMissing("no version is published, and there is nothing to publish")
            return Written(base.manifest.version, False, held.count, 0, 0, 0, len(held.segments), before)
        began_at = self._now()
        new, asked = self._write(change.collection, change.intake, change.chosen, held)

        def on_top_of(current: Published | None) -> Manifest:
            refuse_late(began_at, self._now())
            check(None if current is None else current.manifest)
            now_held = held if current == base else self._rebased(change, base, current, held)
            segments: list[SegmentEntry] = []
            kept = {segment.entry.key: segment for segment in now_held.segments}
            for entry in current.manifest.segments if current else ():
                if entry.collection != change.collection:
                    segments.append(entry)
                elif entry.key in kept and (left := kept[entry.key].without(self._store, change.gone)):
                    segments.append(left)
            if current is None:
                first = (declares,) if isinstance(declares, CollectionDeclaration) else ()
                return self._making.manifest(
                    next_number(self._store), (*segments, *new), first, previous=None, kept_from=1
                )
            return self._making.manifest(
                current.manifest.number + 1,
                (*segments, *new),
                declared(current.manifest, change.collection, declares)[0],
                previous=current.manifest.version,
                kept_from=current.manifest.kept_from,
                allow_partial=current.manifest.allow_partial,
            )

        self._progress("publishing", 0, 1)
        manifest = publish_on_top(self._store, base, on_top_of)
        self._progress("publishing", 1, 1)
        entries = manifest.of_collection(change.collection)
        return Written(
            version=manifest.version,
            published=True,
            passages=sum(entry.live for entry in entries),
            added=len(change.chosen),
            removed=len(change.gone),
            embedded=asked,
            segments=len(entries),
            declared=before,
        )

    def _rebased(
        self, change: Change, base: Published | None, current: Published | None, held: CollectionSnapshot
    ) -> CollectionSnapshot:
        """The collection as others have published it meanwhile.

        Raises:
            PublishConflict: what they did stands against the change.
        """
        overtaken = PublishConflict(f"somebody else changed {change.collection} meanwhile")
        if current is None:
            raise overtaken
        self._making.refuse_others(current.manifest, change.collection if held.unusable else None)
        entries = current.manifest.of_collection(change.collection)
        before = () if base is None else base.manifest.of_collection(change.collection)
        if entries == before:
            return held
        if held.unusable:  # there is no telling what was changed
            raise overtaken
        now_held = self._held(current, change.collection, opened=held)
        if not change.stands(now_held):
            raise overtaken
        return now_held

    def _held(
        self,
        published: Published | None,
        collection: str,
        *,
        opened: CollectionSnapshot | None = None,
        leave_out_damaged: bool = False,
        verify: bool = False,
    ) -> CollectionSnapshot:
        return read_snapshot(
            self._store,
            published.manifest.of_collection(collection) if published else (),
            embedding_model_id=self._embedder.model_id,
            dimensions=self._embedder.dimensions,
            opened=opened.segments if opened else (),
            leave_out_damaged=leave_out_damaged,
            verify=verify,
        )

    def _write(
        self, collection: str, intake: Intake, chosen: Places, held: CollectionSnapshot
    ) -> tuple[tuple[SegmentEntry, ...], int]:
        return write_segments(
            self._store,
            self._embedder,
            intake,
            chosen,
            collection=collection,
            known=held.known_vectors,
            segment_rows=self._segment_rows,
            progress=self._progress,
        )


def _nothing(current: Manifest | None) -> None:
    """No version is refused."""
