"""Records in the bucket that one step of an ingest leaves for the next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.corpus.passages import CorpusModel
from cicada.errors import IndexCorrupt, PublishConflict
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed
from cicada.ingest.contracts import IngestReport, Prepared, Quarantined, SourceItem
from cicada.ingest.incoming.places import mirror_key, round_key


class Planned(CorpusModel):
    """One document of a plan."""

    item: SourceItem
    stamp: str = Field(description="tells one upload of the document from another")

    def digest(self) -> str:
        """Identifies this upload in keys: 32 hexadecimal digits."""
        return hashlib.sha256(f"{self.item.source}\0{self.stamp}".encode()).hexdigest()[:32]


class DeclarationPlanned(CorpusModel):
    """What a run does about the collection's declaration: publish it, withdraw it, or report it as invalid."""

    stamp: str = Field("", description="of the upload; blank where it is not there any more")
    declaration: CollectionDeclaration | None = Field(None, description="to be published")
    before: CollectionDeclaration | None = Field(None, description="what the collection declares until then")
    refused: Quarantined | None = Field(None, description="why the upload is none: what is published stays")
    withdrawn: bool = Field(False, description="whether what is published was the folder's, and is not there any more")


class IngestPlan(CorpusModel):
    """What a run will do."""

    collection: str
    run: str
    round: int = 1  # a run that looks again plans anew
    recipe_digest: str
    documents: tuple[Planned, ...]  # new, changed, or missing in the index
    gone: tuple[str, ...]  # sources loaded from the folder, and deleted from it since
    forgotten: tuple[str, ...] = ()  # sources deleted from the folder that were never loaded
    held: int  # documents unchanged since they were loaded
    refused: tuple[Quarantined, ...] = ()  # documents unchanged since an earlier run refused them
    ignored: tuple[str, ...] = ()  # keys in the folder that cannot be documents
    declaration: DeclarationPlanned | None = None
    """What is to be done about the collection's declaration, if anything."""


class Batch(CorpusModel):
    """Documents that one invocation prepares, one after another."""

    collection: str
    run: str
    round: int = 1
    number: int
    items: tuple[Planned, ...]
    sections_key: str = Field("", description="of the rules of the collection's sections; blank where it declares none")


class UploadOutcome(CorpusModel):
    """The outcome of one upload: one of the three."""

    prepared: Prepared | None = None
    refused: Quarantined | None = None  # the document's fault: final until it is uploaded again
    failed: Quarantined | None = None  # for another reason: retried


class Mirrored(CorpusModel):
    """A document of the folder, as last seen."""

    stamp: str = Field(description="of the upload that was loaded or refused; blank where it is to be met again")
    loaded: bool = Field(False, description="whether the collection's passages of this source are from the folder")
    passages: int = Field(0, description="of them")
    refused: Quarantined | None = Field(None, description="why the last upload is not in the collection, if it is not")


class Mirror(CorpusModel):
    """The state of a collection's folder."""

    recipe_digest: str = ""
    documents: dict[str, Mirrored] = Field(default_factory=dict, description="by source")
    declaration: Mirrored | None = Field(None, description="the folder's collection.yaml, if there is one")


class CollectionTurn(CorpusModel):
    """Which run works on a collection: one at a time plans and commits."""

    run: str = Field("", description="the run at work; blank for none")
    again: bool = Field(False, description="whether something was uploaded since it looked at the folder")
    rounds: int = Field(0, description="how often it has looked again for documents that could not be prepared")


class PlanSummary(CorpusModel):
    """What the workflow needs of a plan."""

    collection: str
    run: str
    documents: int = 0
    gone: int = 0
    batches: int = 0
    batches_key: str = ""
    needed: bool = Field(description="whether there is anything to do")
    deferred: bool = Field(False, description="whether another run is at work, which will look again")


class Progress(CorpusModel):
    """How far a run has come with committing."""

    round: int
    next: int = Field(0, description="the place of the first document that is not committed yet")
    report: IngestReport
    not_prepared: tuple[Quarantined, ...] = ()
    superseded: tuple[str, ...] = ()


class FinishedRun(CorpusModel):
    """What a finishing step returns to the workflow; the whole report is in the bucket."""

    collection: str
    run: str
    more: bool = Field(False, description="whether there are documents left to commit")
    again: bool = Field(False, description="whether the folder is to be looked at again")
    wait_s: int = Field(0, description="seconds to wait before that")
    report_key: str = ""
    loaded: int = 0
    unchanged: int = 0
    quarantined: int = 0
    not_prepared: int = 0
    removed: int = 0
    passages: int = 0
    version: str = ""
    published: bool = False


class RunReport(CorpusModel):
    """A run's report."""

    run: str
    ended_at: str = Field(description="ISO 8601, UTC")
    report: IngestReport
    not_prepared: tuple[Quarantined, ...] = Field(
        (), description="documents that could not be prepared for a reason that is not theirs: they are tried again"
    )
    still_refused: tuple[Quarantined, ...] = Field(
        (), description="documents that an earlier run refused, and that were not uploaded again since"
    )
    superseded: tuple[str, ...] = Field(
        (), description="sources that were uploaded anew, or deleted, meanwhile: the next look at the folder meets them"
    )
    ignored: tuple[str, ...] = Field((), description="keys in the folder that can be no document's")


Record = TypeVar("Record", bound=BaseModel)
ATTEMPTS = 10  # of a conditional write that loses to others


def outcome_key(of: IngestPlan | Batch, planned: Planned) -> str:
    """Key of the outcome of one upload. It names the round: another look at the folder may divide it differently."""
    return f"{round_key(of.collection, of.run, of.round, 'outcomes')}/{planned.digest()}.json"


def read_mirror(store: ObjectStore, collection: str) -> Mirror:
    """The state of a collection's folder; empty if there is none. Raises as :func:`find_record`."""
    return find_record(store, mirror_key(collection), Mirror)[0] or Mirror()


def read_record(store: ObjectStore, key: str, record: type[Record]) -> Record:
    """A record. Raises IndexCorrupt if it is missing or invalid, and IndexUnavailable."""
    found, _ = find_record(store, key, record)
    if found is None:
        raise IndexCorrupt(f"{key} is missing", key=key)
    return found


def find_record(store: ObjectStore, key: str, record: type[Record]) -> tuple[Record | None, str | None]:
    """A record and the object's entity tag, if it exists. Raises IndexCorrupt if it is invalid, and
    IndexUnavailable."""
    try:
        found = store.read(key)
        return record.model_validate_json(found.data), found.etag
    except ObjectMissing:
        return None, None
    except ValidationError as error:
        raise IndexCorrupt(f"{key} cannot be read", key=key) from error


def update_record(store: ObjectStore, key: str, record: type[Record], change: Callable[[Record], Record]) -> Record:
    """Change a record, or a new one, by a conditional write, so that no other run's change is lost. Raises
    PublishConflict if others keep changing it."""
    for _ in range(ATTEMPTS):
        found, etag = find_record(store, key, record)
        changed = change(found or record())
        if changed == found:
            return changed
        try:
            store.write(key, changed.model_dump_json(by_alias=True).encode(), replaces=etag)
        except PreconditionFailed:
            continue
        return changed
    raise PublishConflict(f"too many concurrent changes of {key}")


def put_record(store: ObjectStore, key: str, record: BaseModel) -> None:
    """Write a record of this run: see :func:`write_again`."""
    write_again(store, key, record.model_dump_json(by_alias=True).encode())


def write_again(store: ObjectStore, key: str, data: bytes) -> None:
    """Write an object of this run; a repeated step replaces it (Step Functions retries steps). Raises PublishConflict
    if two processes run the same step at once."""
    try:
        store.write(key, data, replaces=None)
    except PreconditionFailed:
        try:
            found = store.read(key)
            if found.data != data:
                store.write(key, data, replaces=found.etag)
        except (ObjectMissing, PreconditionFailed) as error:
            raise PublishConflict(f"{key} is written by another process") from error
