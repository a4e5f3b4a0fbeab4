"""What one step of an ingest of uploads leaves in the bucket for the next."""

from __future__ import annotations

from pydantic import Field

from cicada.ingest.contracts import IngestModel, IngestReport, Prepared, Quarantined, SourceItem


class Planned(IngestModel):
    """One document of a plan."""

    item: SourceItem
    stamp: str = Field(description="tells one upload of the document from another")


class Plan(IngestModel):
    """What a run is to do."""

    collection: str
    run: str
    recipe_digest: str
    documents: tuple[Planned, ...]
    """New or changed since the last run."""
    gone: tuple[str, ...]
    """Sources that were mirrored, and are not there any more."""
    held: int
    """Documents that lie there just as the last run loaded them."""
    refused: tuple[Quarantined, ...] = ()
    """Those that lie there just as an earlier run refused them."""


class Batch(IngestModel):
    """Documents that one invocation prepares, one after another."""

    collection: str
    run: str
    number: int
    items: tuple[SourceItem, ...]


class Outcome(IngestModel):
    """What became of a batch's documents. Those that it does not name were not reached."""

    prepared: tuple[Prepared, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()


class Mirrored(IngestModel):
    """A document as the last run that met it left it."""

    stamp: str
    refused: Quarantined | None = None
    """Why its passages are not in the collection; None if they are."""


class Mirror(IngestModel):
    """What is known of a collection's folder."""

    recipe_digest: str = ""
    documents: dict[str, Mirrored] = Field(default_factory=dict, description="by source")


class PlanSummary(IngestModel):
    """What the workflow needs to know of a plan."""

    collection: str
    run: str
    documents: int
    gone: int
    batches: int
    batches_key: str
    needed: bool = Field(description="whether there is anything to do")


class FinishedRun(IngestModel):
    """What the workflow's end tells; the whole report lies in the bucket."""

    report_key: str
    loaded: int
    unchanged: int
    quarantined: int
    not_prepared: int
    removed: int
    passages: int
    version: str
    published: bool


class RunReport(IngestModel):
    """A run's report."""

    run: str
    ended_at: str = Field(description="ISO 8601, UTC")
    report: IngestReport
    not_prepared: tuple[str, ...] = Field(
        (),
        description="sources that could not be prepared for a reason that is not theirs: the next run tries again",
    )
    still_refused: tuple[Quarantined, ...] = Field(
        (), description="documents that an earlier run refused, and that were not uploaded again since"
    )
    superseded: tuple[str, ...] = Field(
        (), description="sources that were uploaded anew, or again, meanwhile: a later run loads them"
    )
