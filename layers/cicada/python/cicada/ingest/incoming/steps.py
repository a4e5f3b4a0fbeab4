"""The three steps of the ingest workflow. Each can be repeated: it then finds its work done.

plan      lists the folder, compares it with what was mirrored, and writes the batches that are to be prepared
prepare   prepares one batch's documents, and writes what became of them
finish    commits what was prepared and what is gone, writes the report, and remembers what is mirrored now
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from cicada.errors import DocumentRefused, OutOfTime, PublishConflict
from cicada.index.store import ObjectStore, PreconditionFailed
from cicada.ingest.contracts import IngestReport, Prepared, Quarantined, Recipe, SourceItem
from cicada.ingest.incoming.bucket import Upload, UploadChanged
from cicada.ingest.incoming.kept import put_record, read_mirror, read_record, write_again
from cicada.ingest.incoming.places import (
    batches_key,
    mirror_key,
    outcomes_folder,
    plan_key,
    report_key,
    runs_folder,
)
from cicada.ingest.incoming.records import (
    Batch,
    FinishedRun,
    Mirror,
    Mirrored,
    Outcome,
    Plan,
    Planned,
    PlanSummary,
    RunReport,
)

logger = logging.getLogger(__name__)

BATCH_DOCUMENTS = 10
"""Documents of a batch at most: an invocation's start is shared, and little is done again after a crash."""
BATCH_BYTES = 64 * 2**20
"""Bytes of a batch's documents at most, but for one that is larger by itself."""
TIME_MARGIN_S = 60.0
"""With less time left than this, a batch begins no further document, and is given back to the workflow."""
MIRROR_ATTEMPTS = 5
"""Two runs of one collection may end at the same time: the later one merges."""


class Uploads(Protocol):
    """Where the uploaded documents are, see :class:`cicada.ingest.incoming.bucket.IncomingBucket`."""

    def uploads(self, collection: str) -> Iterator[Upload]:
        """A collection's documents."""
        ...

    def download(self, item: SourceItem, path: Path) -> SourceItem:
        """Write a document's bytes to a file. Raises UploadChanged."""
        ...


class Prepare(Protocol):
    """Prepares one document, see :class:`cicada.ingest.preparing.Preparer`."""

    def __call__(self, item: SourceItem, path: Path) -> Prepared:
        """Raises DocumentRefused for the document's own faults, and other CicadaErrors for everybody else's."""
        ...


class Commit(Protocol):
    """Publishes prepared documents, see :func:`cicada.ingest.committing.commit`."""

    def __call__(self, collection: str, prepared: Sequence[Prepared], gone: Collection[str]) -> IngestReport:
        """Documents that turn out to be in each other's way are quarantined in the report."""
        ...


def plan(
    uploads: Uploads,
    store: ObjectStore,
    collection: str,
    run: str,
    recipe: Recipe,
    *,
    batch_documents: int = BATCH_DOCUMENTS,
    batch_bytes: int = BATCH_BYTES,
) -> PlanSummary:
    """List a collection's uploads, and plan what is to be done about those that are new, changed or gone.

    Args:
        uploads: the folder.
        store: the bucket.
        collection: whose folder.
        run: the run's id, unique among the collection's.
        recipe: what documents are prepared by: after a change of it, all are prepared again.
        batch_documents: documents of a batch at most.
        batch_bytes: their bytes at most.

    Raises:
        IndexUnavailable: the bucket does not respond.
    """
    mirror, _ = read_mirror(store, collection)
    same_recipe = mirror.recipe_digest == recipe.digest()
    found = list(uploads.uploads(collection))
    changed = [
        upload
        for upload in found
        if not (same_recipe and (known := mirror.documents.get(upload.source)) and known.stamp == upload.stamp)
    ]
    same = [mirror.documents[source] for source in {one.source for one in found} - {one.source for one in changed}]
    refused = tuple(one.refused for one in same if one.refused is not None)
    planned = Plan(
        collection=collection,
        run=run,
        recipe_digest=recipe.digest(),
        documents=tuple(Planned(item=_item(collection, upload), stamp=upload.stamp) for upload in changed),
        gone=tuple(sorted(mirror.documents.keys() - {upload.source for upload in found})),
        held=len(same) - len(refused),
        refused=tuple(sorted(refused, key=lambda one: one.source)),
    )
    batches = [
        Batch(collection=collection, run=run, number=number, items=tuple(items))
        for number, items in enumerate(_batches(planned.documents, batch_documents, batch_bytes))
    ]
    put_record(store, plan_key(collection, run), planned)
    written = ",".join(batch.model_dump_json(by_alias=True) for batch in batches)
    write_again(store, batches_key(collection, run), f"[{written}]".encode())
    return PlanSummary(
        collection=collection,
        run=run,
        documents=len(planned.documents),
        gone=len(planned.gone),
        batches=len(batches),
        batches_key=batches_key(collection, run),
        needed=bool(planned.documents or planned.gone),
    )


def prepare(
    batch: Batch, uploads: Uploads, store: ObjectStore, prepare_one: Prepare, *, remaining_s: Callable[[], float]
) -> Outcome:
    """Prepare a batch's documents, one after another, and write what became of them.

    Raises:
        OutOfTime: not all were reached; what was prepared is kept, and found when the batch is repeated.
        ModelError, IndexUnavailable: a service failed; the same holds.
    """
    prepared: list[Prepared] = []
    quarantined: list[Quarantined] = []
    with tempfile.TemporaryDirectory(prefix="ingest-") as folder:
        for number, item in enumerate(batch.items):
            if remaining_s() < TIME_MARGIN_S:
                raise OutOfTime(f"{number} of {len(batch.items)} documents of batch {batch.number} are prepared")
            path = Path(folder) / "document"
            try:
                prepared.append(prepare_one(uploads.download(item, path), path))
            except UploadChanged:
                continue  # a later run has been told of it
            except DocumentRefused as error:
                logger.warning("a document is quarantined", extra={"code": error.code, "collection": batch.collection})
                quarantined.append(Quarantined(source=item.source, code=error.code, message=str(error)))
            finally:
                path.unlink(missing_ok=True)
    outcome = Outcome(prepared=tuple(prepared), quarantined=tuple(quarantined))
    put_record(
        store,
        f"{outcomes_folder(batch.collection, batch.run)}{batch.number}-{batch.items[0].source_digest()}.json",
        outcome,
    )
    return outcome


@dataclass(frozen=True)
class _Gathered:
    """What a run's batches came to, compared with what lies in the folder now."""

    prepared: tuple[Prepared, ...]
    quarantined: tuple[Quarantined, ...]
    not_prepared: tuple[str, ...]
    superseded: tuple[str, ...]
    gone: tuple[str, ...]


def finish(
    collection: str,
    run: str,
    uploads: Uploads,
    store: ObjectStore,
    commit: Commit,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FinishedRun:
    """Commit what a run has prepared, write its report, and remember what is mirrored.

    A document whose upload was refused stays as it was before: an answer from its last readable version is better than
    none, and the report says so.

    Raises:
        IndexUnavailable, IndexMismatch, IndexCorrupt: as their names say.
        PublishConflict: somebody else changed the same documents, or the mirror, meanwhile: to be repeated.
    """
    planned = read_record(store, plan_key(collection, run), Plan)
    gathered = _gather(planned, _outcomes(store, collection, run), uploads)
    if gathered.prepared or gathered.gone:
        report = commit(collection, gathered.prepared, gathered.gone)
    else:
        report = IngestReport(collection=collection, documents=0, loaded=0, unchanged=0)
    refused = (*gathered.quarantined, *(one for one in report.quarantined if _is_refusal(one)))
    not_prepared = (
        *gathered.not_prepared,
        *(one.source for one in report.quarantined if not _is_refusal(one)),  # what was prepared of it is damaged
    )
    report = report.model_copy(
        update={
            "documents": len(planned.documents) + planned.held + len(planned.refused),
            "loaded": report.loaded + planned.held,
            "unchanged": report.unchanged + planned.held,
            "quarantined": refused,
        }
    )
    _remember(store, planned, gathered, refused, frozenset(not_prepared))
    told = RunReport(
        run=run,
        ended_at=now().isoformat(timespec="seconds"),
        report=report,
        not_prepared=not_prepared,
        still_refused=planned.refused,
        superseded=gathered.superseded,
    )
    put_record(store, report_key(collection, run), told)
    return FinishedRun(
        report_key=report_key(collection, run),
        loaded=report.loaded,
        unchanged=report.unchanged,
        quarantined=len(report.quarantined),
        not_prepared=len(not_prepared),
        removed=len(report.removed),
        passages=report.passages,
        version=report.version,
        published=report.published,
    )


def reports(store: ObjectStore, collection: str) -> Iterator[str]:
    """The keys of a collection's reports, the oldest run first.

    Raises:
        IndexUnavailable: the bucket does not respond.
    """
    found = [entry for entry in store.entries(runs_folder(collection)) if entry.key.endswith("/report.json")]
    return (entry.key for entry in sorted(found, key=lambda entry: entry.modified_at))


def read_report(store: ObjectStore, key: str) -> RunReport:
    """A run's report.

    Raises:
        IndexCorrupt: there is none, or it cannot be read.
        IndexUnavailable: the bucket does not respond.
    """
    return read_record(store, key, RunReport)


def _item(collection: str, upload: Upload) -> SourceItem:
    return SourceItem(collection=collection, source=upload.source, key=upload.key, etag=upload.etag, size=upload.size)


def _batches(documents: Iterable[Planned], most: int, most_bytes: int) -> Iterator[list[SourceItem]]:
    batch: list[SourceItem] = []
    for item in (planned.item for planned in documents):
        if batch and (len(batch) == most or sum(one.size for one in batch) + item.size > most_bytes):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def _outcomes(store: ObjectStore, collection: str, run: str) -> list[Outcome]:
    return [read_record(store, entry.key, Outcome) for entry in store.entries(outcomes_folder(collection, run))]


def _gather(planned: Plan, outcomes: Sequence[Outcome], uploads: Uploads) -> _Gathered:
    stamps = {one.item.source: one.stamp for one in planned.documents}
    now = {upload.source: upload.stamp for upload in uploads.uploads(planned.collection)}
    prepared = {one.source: one for outcome in outcomes for one in outcome.prepared}
    refused = {one.source: one for outcome in outcomes for one in outcome.quarantined}
    current = [source for source, stamp in stamps.items() if now.get(source) == stamp]
    return _Gathered(
        prepared=tuple(prepared[source] for source in current if source in prepared),
        quarantined=tuple(refused[source] for source in current if source in refused),
        not_prepared=tuple(source for source in current if source not in prepared and source not in refused),
        superseded=tuple(source for source, stamp in stamps.items() if now.get(source) != stamp),
        gone=tuple(source for source in planned.gone if source not in now),
    )


def _is_refusal(one: Quarantined) -> bool:
    """Whether it is for the document's own sake, and stands until the document is uploaded again."""
    return one.code.startswith(DocumentRefused.code.partition("_")[0] + "_")


def _remember(
    store: ObjectStore,
    planned: Plan,
    gathered: _Gathered,
    quarantined: Sequence[Quarantined],
    not_prepared: frozenset[str],
) -> None:
    stamps = {one.item.source: one.stamp for one in planned.documents}
    refused = {one.source: one for one in quarantined}
    met = ({one.source for one in gathered.prepared} | refused.keys()) - not_prepared
    for _ in range(MIRROR_ATTEMPTS):
        mirror, etag = read_mirror(store, planned.collection)
        documents = {source: known for source, known in mirror.documents.items() if source not in gathered.gone}
        if mirror.recipe_digest != planned.recipe_digest:
            # What this run has not met was prepared by another recipe: the next run is to meet it.
            documents = {source: known.model_copy(update={"stamp": ""}) for source, known in documents.items()}
        documents |= {source: Mirrored(stamp=stamps[source], refused=refused.get(source)) for source in met}
        kept = Mirror(recipe_digest=planned.recipe_digest, documents=documents)
        try:
            store.write(mirror_key(planned.collection), kept.model_dump_json(by_alias=True).encode(), replaces=etag)
        except PreconditionFailed:
            continue
        return
    raise PublishConflict(f"what is mirrored of {planned.collection} keeps changing")
