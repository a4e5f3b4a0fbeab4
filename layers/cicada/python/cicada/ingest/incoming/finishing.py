"""The last step of an ingest: what was prepared is published, what is gone deleted, and both remembered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from cicada.corpus.declared.declaration import DECLARATION
from cicada.errors import DeclarationChanged, DocumentInvalid, DocumentRefused, PublishConflict
from cicada.index.ports import ObjectStore, PreconditionFailed
from cicada.index.writer import Declares
from cicada.ingest.arrivals import counted_sections, notes_of_kept, sum_of_costs
from cicada.ingest.contracts import IngestReport, Prepared, Quarantined
from cicada.ingest.incoming.bucket import Uploads
from cicada.ingest.incoming.places import (
    mirror_key,
    outcome_key,
    plan_key,
    progress_key,
    report_key,
    runs_folder,
)
from cicada.ingest.incoming.run_records import (
    DeclarationPlanned,
    FinishedRun,
    IngestPlan,
    Mirror,
    Mirrored,
    Planned,
    Progress,
    RunReport,
    UploadOutcome,
    put_record,
    read_mirror,
    read_record,
    read_record_if_there,
)
from cicada.ingest.incoming.turns import end_turn

logger = logging.getLogger(__name__)

SLICE_DOCUMENTS = 2_000
"""Documents that one commit publishes at most: as many as are read and written in a fraction of a function's time."""
SLICE_PASSAGES = 100_000  # of one slice at most, unless one document has more
COMMIT_MARGIN_S = 300.0  # with less time left, no further slice begins
MIRROR_ATTEMPTS = 5
PARALLEL_READS = 16

WORKER_LOST = Quarantined(
    source="", code="worker_lost", message="The function that prepared it was killed, or ran out of time or memory."
)

DIVIDED_OTHERWISE = Quarantined(
    source="", code=DeclarationChanged.code, message="What the collection declares was changed while it was prepared."
)


class CommitStep(Protocol):
    """Publishes prepared documents, see :func:`cicada.ingest.committing.commit`."""

    def __call__(
        self, collection: str, prepared: Sequence[Prepared], gone: Collection[str], declares: Declares
    ) -> IngestReport:
        """Documents that turn out to be in each other's way are quarantined in the report."""
        ...


@dataclass(frozen=True)
class _Slice:
    """Some of a plan's documents, by what became of them."""

    planned: list[Planned] = field(default_factory=list)
    prepared: list[Prepared] = field(default_factory=list)
    refused: list[Quarantined] = field(default_factory=list)
    failed: list[Quarantined] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)


def finish(
    collection: str,
    run: str,
    uploads: Uploads,
    store: ObjectStore,
    commit: CommitStep,
    *,
    remaining_s: Callable[[], float],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    slice_documents: int = SLICE_DOCUMENTS,
    slice_passages: int = SLICE_PASSAGES,
) -> FinishedRun:
    """Commit what a run has prepared, slice by slice, remember it, and write the report. To be repeated while ``more``.

    What the collection is to declare is published with every slice, from the first on: what is not divided by it yet
    is in one of the next. Documents that were divided by what is not declared any more are left to another look.

    A document whose upload was refused stays as it was loaded before: an answer from its last readable version is
    better than none, and the report says so.

    Raises:
        IndexUnavailable, IndexMismatch, IndexCorrupt: as their names say.
        PublishConflict: somebody else changed the same documents, or the mirror, meanwhile: to be repeated.
    """
    planned = read_record(store, plan_key(collection, run), IngestPlan)
    progress = read_record_if_there(store, progress_key(collection, run), Progress)
    if progress is None or progress.round != planned.round:
        progress = Progress(round=planned.round, report=_empty(planned))
    there = {upload.source: upload.stamp for upload in uploads.uploads(collection)}
    first = True
    while first or progress.next < len(planned.documents):
        if not first and remaining_s() < COMMIT_MARGIN_S:
            return FinishedRun(collection=collection, run=run, more=True)
        first = False
        one = _slice(store, planned, progress.next, there, slice_documents, slice_passages)
        gone = tuple(source for source in planned.gone if source not in there) if progress.next == 0 else ()
        progress = _committed(store, planned, progress, one, gone, commit)
        put_record(store, progress_key(collection, run), progress)
    return _ended(store, planned, progress, now())


def reports(store: ObjectStore, collection: str) -> Iterator[str]:
    """The keys of a collection's reports, the oldest first. Raises IndexUnavailable if the bucket does not respond."""
    found = [entry for entry in store.entries(runs_folder(collection)) if "/report-" in entry.key]
    return (entry.key for entry in sorted(found, key=lambda entry: entry.modified_at))


def read_report(store: ObjectStore, key: str) -> RunReport:
    """A run's report. Raises IndexCorrupt if there is none, or it cannot be read, and IndexUnavailable if the bucket
    does not respond."""
    return read_record(store, key, RunReport)


def _slice(
    store: ObjectStore, plan: IngestPlan, start: int, there: dict[str, str], most: int, most_passages: int
) -> _Slice:
    documents = plan.documents[start : start + most]

    def read(planned: Planned) -> UploadOutcome | None:
        return read_record_if_there(
            store, outcome_key(plan.collection, plan.run, plan.round, planned.digest()), UploadOutcome
        )

    with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="outcomes") as pool:
        outcomes = list(pool.map(read, documents))
    found = _Slice()
    passages = 0
    for planned, outcome in zip(documents, outcomes, strict=True):
        source = planned.item.source
        if there.get(source) != planned.stamp:
            found.superseded.append(source)
        elif outcome is None:
            found.failed.append(WORKER_LOST.model_copy(update={"source": source}))
        elif outcome.prepared is not None:
            passages += outcome.prepared.passages
            if found.prepared and passages > most_passages:
                break
            found.prepared.append(outcome.prepared)
        elif outcome.refused is not None:
            found.refused.append(outcome.refused)
        elif outcome.failed is not None:
            found.failed.append(outcome.failed)
        found.planned.append(planned)
    return found


def _committed(
    store: ObjectStore, plan: IngestPlan, progress: Progress, one: _Slice, gone: tuple[str, ...], commit: CommitStep
) -> Progress:
    """Commit a slice and remember it; how far the run has come then."""
    declares = _declares(plan.declaration)
    changes = one.prepared or gone or declares != "as before"
    done: IngestReport | None = None
    aside: tuple[Quarantined, ...] = ()
    try:
        if changes:
            done = commit(plan.collection, one.prepared, gone, declares)
            aside = done.quarantined
    except DeclarationChanged as error:
        logger.warning("documents are to be divided again", exc_info=error)
        aside = tuple(DIVIDED_OTHERWISE.model_copy(update={"source": found.source}) for found in one.prepared)
    refused = (*one.refused, *(found for found in aside if _is_refusal(found)))
    failed = (*one.failed, *(found for found in aside if not _is_refusal(found)))
    kept = _remember(store, plan, one, refused, failed, frozenset((*gone, *plan.forgotten)))
    report = progress.report
    if plan.declaration is not None:
        told = notes_of_kept(kept, declares, plan.declaration.before)
        report = report.model_copy(update={"notes": report.notes | told})
        if plan.declaration.refused is not None and progress.next == 0:
            refused = (plan.declaration.refused, *refused)
    if done is not None:
        report = report.model_copy(
            update={
                "loaded": report.loaded + done.loaded,
                "unchanged": report.unchanged + done.unchanged,
                "removed": (*report.removed, *done.removed),
                "passages": done.passages,
                "added": report.added + done.added,
                "deleted": report.deleted + done.deleted,
                "embedded": report.embedded + done.embedded,
                "version": done.version,
                "published": report.published or done.published,
                "cost_usd": sum_of_costs([report.cost_usd, done.cost_usd]),
                "notes": report.notes | done.notes,
                "sections": counted_sections([report.sections, done.sections], None),
                "undeclared": report.undeclared or done.undeclared,
            }
        )
    return progress.model_copy(
        update={
            "next": progress.next + len(one.planned),
            "report": report.model_copy(update={"quarantined": (*report.quarantined, *refused)}),
            "not_prepared": (*progress.not_prepared, *failed),
            "superseded": (*progress.superseded, *one.superseded),
        }
    )


def _declares(planned: DeclarationPlanned | None) -> Declares:
    if planned is None or planned.refused is not None or not (planned.withdrawn or planned.declaration):
        return "as before"
    return planned.declaration


def _ended(store: ObjectStore, plan: IngestPlan, progress: Progress, at: datetime) -> FinishedRun:
    report = progress.report
    key = report_key(plan.collection, plan.run, plan.round)
    told = RunReport(
        run=plan.run,
        ended_at=at.isoformat(timespec="seconds"),
        report=report,
        not_prepared=progress.not_prepared,
        still_refused=plan.refused,
        superseded=progress.superseded,
        ignored=plan.ignored,
    )
    put_record(store, key, told)
    again, wait_s = end_turn(store, plan.collection, plan.run, unfinished=bool(progress.not_prepared))
    return FinishedRun(
        collection=plan.collection,
        run=plan.run,
        again=again,
        wait_s=wait_s,
        report_key=key,
        loaded=report.loaded,
        unchanged=report.unchanged,
        quarantined=len(report.quarantined),
        not_prepared=len(progress.not_prepared),
        removed=len(report.removed),
        passages=report.passages,
        version=report.version,
        published=report.published,
    )


def _empty(plan: IngestPlan) -> IngestReport:
    return IngestReport(
        collection=plan.collection,
        documents=len(plan.documents) + plan.held + sum(one.source != DECLARATION for one in plan.refused),
        loaded=plan.held,
        unchanged=plan.held,
    )


def _is_refusal(found: Quarantined) -> bool:
    """Whether it is for the document's sake, and not because what was prepared of it is damaged."""
    return found.code.startswith(DocumentRefused.code.partition("_")[0] + "_")


def _remember(
    store: ObjectStore,
    plan: IngestPlan,
    one: _Slice,
    refused: Sequence[Quarantined],
    failed: Sequence[Quarantined],
    left: frozenset[str],
) -> list[str]:
    """Remember what became of a slice's documents; the refused of which something is loaded, as it was before."""
    stamps = {planned.item.source: planned.stamp for planned in one.planned}
    aside = {found.source for found in (*refused, *failed)}
    loaded = {found.source: found for found in one.prepared if found.source not in aside}
    for _ in range(MIRROR_ATTEMPTS):
        mirror, etag = read_mirror(store, plan.collection)
        documents = {source: known for source, known in mirror.documents.items() if source not in left}
        if mirror.recipe_digest != plan.recipe_digest:
            # What is not met by this recipe yet is to be met: its stamp fits no upload.
            documents = {source: known.model_copy(update={"stamp": ""}) for source, known in documents.items()}
        for source, prepared in loaded.items():
            # What a model has left out is tried again whenever somebody looks at the folder.
            stamp = stamps[source] if prepared.complete else ""
            documents[source] = Mirrored(stamp=stamp, loaded=True, passages=prepared.passages)
        for found in refused:
            before = documents.get(found.source, Mirrored(stamp=""))
            # What is in another document's way is tried again: that one may go.
            stamp = "" if found.code == DocumentInvalid.code else stamps[found.source]
            documents[found.source] = before.model_copy(update={"stamp": stamp, "refused": found})
        declared = mirror.declaration
        if plan.declaration is not None:
            declared = _mirrored(plan.declaration, mirror.declaration)
        kept = Mirror(recipe_digest=plan.recipe_digest, documents=documents, declaration=declared)
        try:
            store.write(mirror_key(plan.collection), kept.model_dump_json(by_alias=True).encode(), replaces=etag)
        except PreconditionFailed:
            continue
        return [found.source for found in refused if documents[found.source].loaded]
    raise PublishConflict(f"what is mirrored of {plan.collection} keeps changing")


def _mirrored(planned: DeclarationPlanned, before: Mirrored | None) -> Mirrored | None:
    if not planned.stamp:
        return None
    loaded = planned.refused is None or (before is not None and before.loaded)
    return Mirrored(stamp=planned.stamp, loaded=loaded, refused=planned.refused)
