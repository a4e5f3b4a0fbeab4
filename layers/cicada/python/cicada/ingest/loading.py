"""Load documents from files in this process: ``cicada load``."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from cicada.corpus.declared.declaration import DECLARATION
from cicada.corpus.readers.detect import HEAD_BYTES, doc_type_of
from cicada.corpus.readers.sandbox import read_safely
from cicada.errors import DeclarationChanged, DocumentRefused, DocumentUnsupported, ModelError, ModelRefused
from cicada.index.ports import ObjectStore, Progress, silent
from cicada.ingest.committing import commit
from cicada.ingest.contracts import IngestReport, Prepared, Quarantined, Recipe, SourceItem
from cicada.ingest.declaring import declaration_of, published_declaration, refuse_own_section, settled
from cicada.ingest.enrichment.enricher import Enricher
from cicada.ingest.known_sources import IndexVectors
from cicada.ingest.preparing import Preparer, Read
from cicada.ingest.scripts import checked_collection
from cicada.ingest.sources import SourceFile, SourceFiles, checked_metadata, source_files
from cicada.models.ports import Embedder

logger = logging.getLogger(__name__)

WORKERS = 4  # documents prepared in parallel: one is read in its own process while others are embedded
EMBEDDINGS_AT_ONCE = 2
"""Batches of texts being embedded, over all workers. Bedrock takes one text a call, and the embedder makes eight calls
at a time: sixteen in all."""
DIVIDING_ATTEMPTS = 3  # preparations of added documents, while others change the collection's declaration
MODEL_FAILURES = 3  # consecutive documents for which a model failed, retries included, that end the load


def load_documents(
    paths: Sequence[Path],
    collection: str,
    store: ObjectStore,
    embedder: Embedder,
    recipe: Recipe,
    *,
    enricher: Enricher | None = None,
    exactly: bool = True,
    metadata: Mapping[str, str] | None = None,
    start_over: bool = False,
    verify: bool = False,
    progress: Progress = silent,
    workers: int = WORKERS,
    read: Read = read_safely,
) -> IngestReport:
    """Prepare each document by itself, and publish all that could be prepared as one version.

    A document that cannot be loaded is quarantined with its reason, and the collection keeps what it held of it. A load
    that was killed leaves nothing visible; run again it finds what was prepared in the bucket. A load without changes
    publishes nothing.

    A ``collection.yaml`` at the top of a folder declares the collection's sections, and is published with the
    documents. Without one, documents added to a collection follow its published declaration, and a collection that is
    to hold exactly these documents declares nothing any more.

    Args:
        paths: files, and folders of files, see :func:`cicada.ingest.sources.source_files`.
        collection: its name: letters, digits, '_' and '-', at most 64.
        enricher: for the recipe's enrichment options; None to add nothing.
        exactly: the collection holds nothing else afterwards; False to add or replace these documents.
        metadata: of every passage.
        start_over: as ``exactly``, and all other collections are dropped.
        verify: with ``exactly``, read every byte of the collection to find and repair all damage.
        progress: receives each finished document, and the steps of publishing.
        workers: documents prepared at a time.

    Raises:
        CorpusInvalid: a path, a name or the declaration is invalid, there is no document, two have one name, or
            documents would be added to others with different sections.
        ModelBusy, ModelUnavailable: a model failed for one document after another.
        ModelRefused: a model refuses every call.
        IndexMismatch, IndexCorrupt, IndexUnavailable, PublishConflict: as
            :func:`cicada.ingest.committing.commit` does.
    """
    checked_collection(collection)
    given = checked_metadata(metadata or {})
    found = source_files(paths)
    everything = exactly or start_over
    declaration = declaration_of(found, collection)

    def attempt() -> IngestReport:
        settled_recipe, declares = settled(recipe, declaration, store, collection, exactly=everything)
        refuse_own_section(settled_recipe, given)
        preparer = Preparer(
            store,
            embedder,
            settled_recipe,
            enricher=enricher,
            read=read,
            known=IndexVectors(store, collection, embedder.model_id, embedder.dimensions),
            turn=threading.BoundedSemaphore(EMBEDDINGS_AT_ONCE),
        )
        outcomes = prepare_all(preparer, items_of(found.files, collection, given), workers=workers, progress=progress)
        return commit(
            store,
            embedder,
            collection,
            [one for one in outcomes if isinstance(one, Prepared)],
            exactly=exactly,
            quarantined=[*found.refused, *(one for one in outcomes if isinstance(one, Quarantined))],
            start_over=start_over,
            verify=verify,
            declares=declares,
            joins=not everything,
            progress=progress,
        )

    for _ in range(DIVIDING_ATTEMPTS - 1):
        try:
            return attempt()
        except DeclarationChanged as error:
            logger.warning("the collection's declaration changed; preparing again", exc_info=error)
    return attempt()


def unload(store: ObjectStore, embedder: Embedder, collection: str, sources: Collection[str]) -> IngestReport:
    """Delete documents from a collection; the report's ``removed`` names those that it held. Raises as
    :func:`cicada.ingest.committing.commit`. Deleting ``collection.yaml`` withdraws the declaration."""
    if DECLARATION not in sources:
        return commit(store, embedder, collection, [], gone=sources)
    before = published_declaration(store, collection)
    documents = [source for source in sources if source != DECLARATION]
    report = commit(store, embedder, collection, [], gone=documents, declares=None)
    return report if before is None else report.model_copy(update={"removed": (DECLARATION, *report.removed)})


def items_of(
    files: Sequence[SourceFile], collection: str, metadata: Mapping[str, str]
) -> list[tuple[SourceItem, Path]]:
    """What a preparer takes, for files on this machine."""

    def item(file: SourceFile) -> SourceItem:
        return SourceItem(collection=collection, source=file.source, key="", size=file.size, metadata=dict(metadata))

    return [(item(file), file.path) for file in files]


def scripts_alone(found: SourceFiles) -> bool:
    """Whether all files are scripts, which are loaded as one, whole or not at all."""
    return bool(found.files) and not (found.refused or found.declaration) and all(map(_is_script, found.files))


def prepare_all(
    preparer: Preparer, items: Sequence[tuple[SourceItem, Path]], *, workers: int, progress: Progress
) -> list[Prepared | Quarantined]:
    """Prepare documents in parallel; the outcomes in order. Raises ModelError if a model failed for
    :data:`MODEL_FAILURES` consecutive documents, or refuses every call, and IndexFailure from the store."""
    outcomes: dict[int, Prepared | Quarantined] = {}
    waiting = iter(enumerate(items))
    running: dict[Future[Prepared], int] = {}
    failed_in_a_row = 0
    progress("preparing", 0, len(items))
    pool = ThreadPoolExecutor(workers, thread_name_prefix="prepare")
    try:
        while True:
            for number, (item, path) in waiting:
                running[pool.submit(preparer.prepare, item, path)] = number
                if len(running) == 2 * workers:  # one waits for each that is at work
                    break
            if not running:
                return [outcomes[number] for number in range(len(items))]
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                number = running.pop(future)
                try:
                    outcomes[number] = future.result()
                    failed_in_a_row = 0
                except (DocumentRefused, ModelError) as error:
                    of_model = isinstance(error, ModelError)
                    failed_in_a_row += of_model
                    if isinstance(error, ModelRefused) or failed_in_a_row == MODEL_FAILURES:
                        raise
                    logger.warning("document quarantined", extra={"code": error.code}, exc_info=of_model)
                    source = items[number][0].source
                    outcomes[number] = Quarantined(source=source, code=error.code, message=str(error))
                progress("preparing", len(outcomes), len(items))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _is_script(file: SourceFile) -> bool:
    try:
        with file.path.open("rb") as opened:
            return doc_type_of(file.source, opened.read(HEAD_BYTES)) == "script"
    except (DocumentUnsupported, OSError):
        return False
