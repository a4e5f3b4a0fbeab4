"""Committing prepared documents: one version of the index that has them all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.errors import (
    CorpusInvalid,
    DeclarationChanged,
    DocumentConflict,
    DocumentInvalid,
    DocumentUnknown,
    IndexCorrupt,
    IndexMismatch,
    IndexMissing,
    PublishConflict,
)
from cicada.index.access_rules import change_readers
from cicada.index.change import CollectionChange, exchange, replacement
from cicada.index.collection_snapshot import CollectionSnapshot
from cicada.index.columns import METADATA
from cicada.index.manifest import Manifest
from cicada.index.ports import ObjectStore, Progress, silent
from cicada.index.versions import read_current
from cicada.index.writer import Declares, IndexWriter, WriteResult
from cicada.ingest.arrivals import PARALLEL_READS, Arrivals, admit, counted_sections, notes_of_kept, sum_of_costs
from cicada.ingest.contracts import WORKFLOW_ID, IngestReport, Owner, Prepared, Quarantined
from cicada.ingest.declaring import refuse_divided_otherwise
from cicada.ingest.prepared import PreparedFile
from cicada.models.ports import Embedder
from cicada.rights import Readers

logger = logging.getLogger(__name__)

MAX_COMMIT_PASSAGES = 2_000_000
"""Of one commit. Beside one slice of their texts it holds their digests, 28 bytes a passage, and several copies of
these: about 0.4 GB at this bound."""
COMMIT_ROWS = 16_384
"""Passages in one segment of a commit at most: with vectors of 1,024 numbers 64 MiB of them are in memory at once."""
COMMIT_ATTEMPTS = 3  # plans of one commit, while other writers change the same documents


def commit(
    store: ObjectStore,
    embedder: Embedder,
    collection: str,
    prepared: Sequence[Prepared],
    *,
    gone: Collection[str] = (),
    owner: Owner | None = None,
    exactly: bool = False,
    quarantined: Sequence[Quarantined] = (),
    start_over: bool = False,
    verify: bool = False,
    declares: Declares = "as before",
    joins: bool = False,
    progress: Progress = silent,
) -> IngestReport:
    """Publish one version with the prepared documents in place of what the collection had of their sources.

    Nothing is embedded, and only the texts of changed passages are read. A document is quarantined if an earlier one
    has one of its passage ids, or if its prepared object is damaged. The passages that the collection already has of
    quarantined documents stay. A commit without changes publishes nothing.

    Args:
        embedder: the model that the documents were prepared with.
        gone: sources whose passages are deleted.
        owner: whose documents may be replaced or deleted; None for everybody's.
        exactly: the collection holds only these documents afterwards, and its passages of quarantined ones. Damaged
            segments are left out. If nothing would be left, nothing changes.
        quarantined: documents that could not be prepared.
        start_over: as ``exactly``, and the index holds no other collection: for another embedding model, or a damaged
            index. Nothing stays of quarantined documents.
        verify: with ``exactly``, read every byte of the collection to find all damage.
        declares: the collection's declaration; published even if no document is new. Its readers become the rule of
            access: what narrows it before the version is published, the rest afterwards. "as before" changes no rule.
        joins: the documents join others, so ``declares`` must not change the sections.

    Raises:
        CorpusInvalid: more passages than one commit may have.
        DocumentConflict, DocumentUnknown: a document to replace or to delete is not the owner's; nothing was changed.
        IndexMismatch: the index, or a document, is embedded with another model.
        IndexCorrupt: the collection is damaged, without ``exactly``; or the manifest is.
        IndexUnavailable: the store does not respond.
        PublishConflict: others kept changing the same documents (with ``exactly``: the collection).
        DeclarationChanged: the collection's sections or names changed since the documents were prepared.
    """
    files, refused = _open(store, embedder, prepared)
    everything = exactly or start_over
    plan = _Plan(
        store,
        collection,
        files,
        [*quarantined, *refused],
        frozenset(gone),
        owner=owner,
        exactly=everything,
        declares=declares != "as before",
    )
    writer = IndexWriter(store, embedder, progress=progress, segment_rows=COMMIT_ROWS)

    def check(current: Manifest | None) -> None:
        if joins or declares == "as before":
            refuse_divided_otherwise(prepared, current, collection, declares)

    def write() -> WriteResult:
        if start_over:
            declaration = declares if isinstance(declares, CollectionDeclaration) else None
            return writer.start_over_with(collection, plan(CollectionSnapshot()).stream, declaration=declaration)
        return writer.change(collection, plan, mend=exactly, verify=verify and exactly, declares=declares, check=check)

    if declares != "as before":  # before the new passages can be found, and not more open than for the old ones
        change_readers(store, collection, lambda before: _narrowed(before, readers_of(declares)))
    written = _with_retries(write, plan, attempts=1 if everything else COMMIT_ATTEMPTS) or _unchanged(store, collection)
    if declares != "as before":
        settle_readers(store, collection, readers_of(declares))
    report = _report(collection, prepared, len(quarantined), plan, written, declares)
    logger.info(
        "ingest committed",
        extra={"collection": collection, "loaded": report.loaded, "quarantined": len(report.quarantined)},
    )
    return report


def readers_of(declaration: CollectionDeclaration | None) -> Readers | None:
    """The rule of access that a collection declares; None for none."""
    return None if declaration is None else declaration.readers


def settle_readers(store: ObjectStore, collection: str, readers: Readers | None) -> None:
    """Make the readers of a declaration that was published a moment ago the rule of access.

    If another writer has published the collection with other readers since, the rule only becomes narrower. Raises as
    :func:`cicada.index.access_rules.change_readers`.
    """

    def settled(before: Readers | None) -> Readers | None:
        current = read_current(store)
        held = current is not None and collection in current.manifest.collections
        if held and current is not None and readers_of(current.manifest.declaration(collection)) != readers:
            return _narrowed(before, readers)
        return readers

    change_readers(store, collection, settled)


def _narrowed(before: Readers | None, after: Readers | None) -> Readers | None:
    """Who may read both what the collection holds and what it is about to hold."""
    if before is None or after is None:
        return after if before is None else before
    return tuple(group for group in after if group in before)


def _report(
    collection: str,
    prepared: Sequence[Prepared],
    not_prepared: int,
    plan: _Plan,
    written: WriteResult,
    declares: Declares,
) -> IngestReport:
    used = {file.source for file in plan.files}
    return IngestReport(
        collection=collection,
        documents=len(prepared) + not_prepared,
        loaded=len(plan.files),
        unchanged=plan.unchanged,
        quarantined=tuple(plan.quarantined),
        removed=plan.removed,
        passages=written.passages,
        added=written.added,
        deleted=written.removed,
        embedded=sum(one.embedded for one in prepared) + written.embedded,
        version=written.version,
        published=written.published,
        cost_usd=sum_of_costs([one.cost_usd for one in prepared]),
        notes={one.source: one.notes for one in prepared if one.notes and one.source in used}
        | notes_of_kept(plan.kept, declares, written.declared),
        sections=counted_sections([file.sections for file in plan.files], declares),
        undeclared=written.declared is not None and (declares is None or not written.passages),
    )


class _NothingToWriteError(Exception):
    """Not one document is left to commit."""


@dataclass
class _Plan:
    """Plans the collection's change from what it holds. Called again for each attempt to publish."""

    store: ObjectStore
    collection: str
    candidates: list[PreparedFile]
    refused: list[Quarantined]
    gone: frozenset[str]
    owner: Owner | None
    exactly: bool
    declares: bool
    files: list[PreparedFile] = field(default_factory=list)  # to be committed
    quarantined: list[Quarantined] = field(default_factory=list)
    removed: tuple[str, ...] = ()
    kept: frozenset[str] = frozenset()  # quarantined documents whose earlier passages stay
    unchanged: int = 0

    def __call__(self, held: CollectionSnapshot) -> CollectionChange:
        """The change of the collection. Raises _NothingToWriteError if nothing would be left or changed, and
        DocumentConflict or DocumentUnknown if a document is not the owner's."""
        self._check_owner(held)
        self._admit(held)
        sources = {file.source for file in self.files}
        if not (self.files or (self.kept if self.exactly else self.gone or self.declares)):
            raise _NothingToWriteError
        counts = held.counts
        self.unchanged = sum(
            counts[file.source] == file.count and np.array_equal(held.states(file.ids), file.contents)
            for file in self.files
        )
        stream = Arrivals(self.store, self.files)
        if self.exactly:
            self.removed = tuple(sorted(held.sources - self.kept - sources))
            return replacement(self.collection, stream, held, kept=self.kept)
        self.removed = tuple(sorted(held.sources & self.gone))
        return exchange(self.collection, stream, sources | self.gone, held)

    def set_aside(self, error: IndexCorrupt) -> bool:
        """Quarantine the document whose prepared object is damaged. False if the damaged key is not a document's."""
        damaged = next((file for file in self.candidates if file.key == error.key), None)
        if damaged is None:
            return False
        self.candidates.remove(damaged)
        self.refused.append(_damaged(damaged.source, error))
        return True

    def _admit(self, held: CollectionSnapshot) -> None:
        """Choose the files to commit. Repeated, since the earlier passages of a refused one stay, and may conflict."""
        self.files, self.quarantined = list(self.candidates), list(self.refused)
        refused = self.quarantined
        while True:
            self.kept = held.sources & {one.source for one in self.quarantined}
            replaced = {file.source for file in self.files} | self.gone
            staying = held.ids_of(self.kept) if self.exactly else np.setdiff1d(held.ids, held.ids_of(replaced))
            fields = held.fields if len(staying) else ()
            self.files, refused = admit(self.store, self.files, held, staying, fields)
            if not refused:
                return
            self.quarantined += refused

    def _check_owner(self, held: CollectionSnapshot) -> None:
        if self.owner is None:
            return
        own = {self.owner.workflow_id}
        if not held.values_of({file.source for file in self.candidates}, METADATA + WORKFLOW_ID) <= own:
            raise DocumentConflict(f"{self.collection} already has a document of this source with another workflow_id")
        if not held.values_of(self.gone, METADATA + WORKFLOW_ID) <= own:
            raise DocumentUnknown(f"{self.collection} has no document of this source with this workflow_id")


def _with_retries(write: Callable[[], WriteResult], plan: _Plan, *, attempts: int) -> WriteResult | None:
    """Write; again without documents that turn out to be damaged, or upon what others have published meanwhile."""
    while True:
        try:
            return write()
        except (
            _NothingToWriteError,
            IndexMissing,
        ):  # the latter: deleting from no index
            return None
        except DeclarationChanged:  # a PublishConflict, but planning again would not help
            raise
        except PublishConflict:
            attempts -= 1
            if not attempts:
                raise
        except IndexCorrupt as error:
            if not plan.set_aside(error):
                raise


def _open(
    store: ObjectStore, embedder: Embedder, prepared: Sequence[Prepared]
) -> tuple[list[PreparedFile], list[Quarantined]]:
    def read(one: Prepared) -> PreparedFile | Quarantined:
        try:
            file = PreparedFile.open(store, one.key)
            if file.source != one.source:
                raise IndexCorrupt(f"{one.key} belongs to another document", key=one.key)
        except IndexCorrupt as error:
            return _damaged(one.source, error)
        if (file.embedding_model_id, file.dimensions) != (embedder.model_id, embedder.dimensions):
            raise IndexMismatch(f"{one.source} was prepared with {file.embedding_model_id}")
        return file

    total = sum(one.passages for one in prepared)
    if total > MAX_COMMIT_PASSAGES:
        raise CorpusInvalid(
            f"{total:,} passages exceed the limit of {MAX_COMMIT_PASSAGES:,} a commit: load them in parts"
        )
    files: dict[str, PreparedFile] = {}
    refused: list[Quarantined] = []
    with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="prepared-open") as pool:
        for found in pool.map(read, prepared):
            if isinstance(found, Quarantined):
                refused.append(found)
            elif (first := files.setdefault(found.source, found)) is not found and first.key != found.key:
                told = "another document of this load has the same name"
                refused.append(Quarantined(source=found.source, code=DocumentInvalid.code, message=told))
    return list(files.values()), refused


def _unchanged(store: ObjectStore, collection: str) -> WriteResult:
    current = read_current(store)
    entries = () if current is None else current.manifest.of_collection(collection)
    version = "" if current is None else current.manifest.version
    return WriteResult(version, False, sum(entry.live for entry in entries), 0, 0, 0, len(entries))


def _damaged(source: str, error: IndexCorrupt) -> Quarantined:
    logger.warning("a prepared document is damaged", exc_info=error)
    told = "its prepared object is damaged; load the document again to replace it"
    return Quarantined(source=source, code=error.code, message=told)
