"""The last step of an ingest: publish what was prepared, delete what is gone, and record both."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import filterfalse

from cicada.corpus.declared.declaration import DECLARATION
from cicada.errors import DeclarationChanged, DocumentInvalid, DocumentRefused
from cicada.index.access_rules import change_readers
from cicada.index.ports import ObjectStore
from cicada.index.versions import read_current
from cicada.index.writer import Declares
from cicada.ingest.arrivals import counted_sections, notes_of_kept, sum_of_costs
from cicada.ingest.contracts import IngestReport, Prepared, Quarantined
from cicada.ingest.incoming.bucket import Uploads
from cicada.ingest.incoming.places import mirror_key, round_key, run_key, runs_folder
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
    find_record,
    outcome_key,
    put_record,
    read_record,
    update_record,
)
from cicada.ingest.incoming.turns import end_turn

logger = logging.getLogger(__name__)

SLICE_DOCUMENTS = 2_000  # of one commit at most: read and written in a fraction of a function's time
SLICE_PASSAGES = 100_000  # of one slice at most, unless one document has more
COMMIT_MARGIN_S = 300.0  # with less time left, no further slice begins
PARALLEL_READS = 16

WORKER_LOST = Quarantined(
    source="", code="worker_lost", message="The function that prepared it was killed, or ran out of time or memory."
)
DIVIDED_OTHERWISE = Quarantined(
    source="", code=DeclarationChanged.code, message="The collection's declaration was changed while it was prepared."
)

CommitStep = Callable[[str, Sequence[Prepared], Collection[str], Declares], IngestReport]
"""Publishes a collection's prepared documents and deletes sources, see :func:`cicada.ingest.committing.commit`."""


@dataclass(frozen=True)
class _Slice:
    """Some of a plan's documents, by their outcomes."""

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
    """Commit what a run has prepared, slice by slice, and write the report. To be repeated while ``more``.

    The first slice already publishes the collection's declaration; documents that are not divided by it yet are in a
    later slice. Documents that were divided by an outdated declaration are left to another look at the folder. A
    document whose new upload was refused keeps its last readable version, and the report says so.

    Raises IndexUnavailable, IndexMismatch, IndexCorrupt, and PublishConflict if others changed the same documents
    meanwhile: to be repeated.
    """
    plan = read_record(store, run_key(collection, run, "plan"), IngestPlan)
    progress_key = run_key(collection, run, "progress")
    progress, _ = find_record(store, progress_key, Progress)
    if progress is None or progress.round != plan.round:
        progress = Progress(round=plan.round, report=_empty(plan))
    stamps = {upload.source: upload.stamp for upload in uploads.uploads(collection)}
    while True:  # once at least: there may be only deletions
        one = _slice(store, plan, progress.next, stamps, slice_documents, slice_passages)
        gone = tuple(source for source in plan.gone if source not in stamps) if progress.next == 0 else ()
        progress = _committed(store, plan, progress, one, gone, commit)
        put_record(store, progress_key, progress)
        if progress.next >= len(plan.documents):
            return _ended(store, plan, progress, now())
        if remaining_s() < COMMIT_MARGIN_S:
            return FinishedRun(collection=collection, run=run, more=True)


def reports(store: ObjectStore, collection: str) -> Iterator[str]:
    """The keys of a collection's reports, oldest first. Raises IndexUnavailable."""
    found = [entry for entry in store.entries(runs_folder(collection)) if "/report-" in entry.key]
    return (entry.key for entry in sorted(found, key=lambda entry: entry.modified_at))


def read_report(store: ObjectStore, key: str) -> RunReport:
    """A run's report. Raises IndexCorrupt if it is missing or invalid, and IndexUnavailable."""
    return read_record(store, key, RunReport)


def _slice(
    store: ObjectStore, plan: IngestPlan, start: int, stamps: dict[str, str], most: int, most_passages: int
) -> _Slice:
    documents = plan.documents[start : start + most]

    def read(planned: Planned) -> UploadOutcome | None:
        return find_record(store, outcome_key(plan, planned), UploadOutcome)[0]

    with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="outcomes") as pool:
        outcomes = list(pool.map(read, documents))
    found = _Slice()
    passages = 0
    for planned, outcome in zip(documents, outcomes, strict=True):
        source = planned.item.source
        if stamps.get(source) != planned.stamp:
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
    """Commit a slice, and record it; the run's progress then."""
    declares = _declares(plan.declaration)
    if plan.declaration is not None and plan.declaration.refused is not None:
        _close_if_new(store, plan.collection)
    done: IngestReport | None = None
    aside: list[Quarantined] = []
    try:
        if one.prepared or gone or declares != "as before":
            done = commit(plan.collection, one.prepared, gone, declares)
            aside = list(done.quarantined)
    except DeclarationChanged as error:
        logger.warning("the declaration changed; preparing the documents again", exc_info=error)
        aside = [DIVIDED_OTHERWISE.model_copy(update={"source": found.source}) for found in one.prepared]
    refused = (*one.refused, *filter(_is_refusal, aside))
    failed = (*one.failed, *filterfalse(_is_refusal, aside))
    kept = _record(store, plan, one, refused, failed, frozenset((*gone, *plan.forgotten)))
    report = progress.report
    if plan.declaration is not None:
        told = notes_of_kept(kept, declares, plan.declaration.before)
        report = report.model_copy(update={"notes": report.notes | told})
        if plan.declaration.refused is not None and progress.next == 0:
            refused = (plan.declaration.refused, *refused)
    if done is not None:
        report = _sum(report, done)
    return progress.model_copy(
        update={
            "next": progress.next + len(one.planned),
            "report": report.model_copy(update={"quarantined": (*report.quarantined, *refused)}),
            "not_prepared": (*progress.not_prepared, *failed),
            "superseded": (*progress.superseded, *one.superseded),
        }
    )


def _close_if_new(store: ObjectStore, collection: str) -> None:
    """Let nobody read a new collection whose declaration is invalid: it may have said who may."""
    current = read_current(store)
    if current is None or collection not in current.manifest.collections:
        change_readers(store, collection, lambda rule: () if rule is None else rule)


def _sum(report: IngestReport, done: IngestReport) -> IngestReport:
    """A run's report with that of another slice, whose quarantined documents are left out."""
    return report.model_copy(
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


def _declares(planned: DeclarationPlanned | None) -> Declares:
    if planned is None or planned.refused is not None or not (planned.withdrawn or planned.declaration):
        return "as before"
    return planned.declaration


def _ended(store: ObjectStore, plan: IngestPlan, progress: Progress, at: datetime) -> FinishedRun:
    report = progress.report
    key = f"{round_key(plan.collection, plan.run, plan.round, 'report')}.json"
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
        quarantined=len(report.quarantined),
        not_prepared=len(progress.not_prepared),
        removed=len(report.removed),
        **report.model_dump(include={"loaded", "unchanged", "passages", "version", "published"}),
    )


def _empty(plan: IngestPlan) -> IngestReport:
    return IngestReport(
        collection=plan.collection,
        documents=len(plan.documents) + plan.held + sum(one.source != DECLARATION for one in plan.refused),
        loaded=plan.held,
        unchanged=plan.held,
    )


def _is_refusal(found: Quarantined) -> bool:
    """Whether the document itself is at fault, and not its prepared object."""
    return found.code.startswith(DocumentRefused.code.partition("_")[0] + "_")


def _record(
    store: ObjectStore,
    plan: IngestPlan,
    one: _Slice,
    refused: Sequence[Quarantined],
    failed: Sequence[Quarantined],
    left: frozenset[str],
) -> list[str]:
    """Record a slice's outcomes in the mirror; the refused documents of which an earlier version stays loaded."""
    stamps = {planned.item.source: planned.stamp for planned in one.planned}
    aside = {found.source for found in (*refused, *failed)}

    def after(mirror: Mirror) -> Mirror:
        documents = {source: known for source, known in mirror.documents.items() if source not in left}
        if mirror.recipe_digest != plan.recipe_digest:
            # Documents of an earlier recipe are to be prepared again: a blank stamp matches no upload.
            documents = {source: known.model_copy(update={"stamp": ""}) for source, known in documents.items()}
        for found in one.prepared:
            if found.source not in aside:
                # What a model left out is tried again with the next look at the folder.
                stamp = stamps[found.source] if found.complete else ""
                documents[found.source] = Mirrored(stamp=stamp, loaded=True, passages=found.passages)
        for refusal in refused:
            before = documents.get(refusal.source, Mirrored(stamp=""))
            # A document that conflicts with another one is tried again: that one may be deleted.
            stamp = "" if refusal.code == DocumentInvalid.code else stamps[refusal.source]
            documents[refusal.source] = before.model_copy(update={"stamp": stamp, "refused": refusal})
        declared = mirror.declaration if plan.declaration is None else _mirrored(plan.declaration, mirror.declaration)
        return Mirror(recipe_digest=plan.recipe_digest, documents=documents, declaration=declared)

    documents = update_record(store, mirror_key(plan.collection), Mirror, after).documents
    return [found.source for found in refused if documents[found.source].loaded]


def _mirrored(planned: DeclarationPlanned, before: Mirrored | None) -> Mirrored | None:
    if not planned.stamp:
        return None
    loaded = planned.refused is None or (before is not None and before.loaded)
    return Mirrored(stamp=planned.stamp, loaded=loaded, refused=planned.refused)
