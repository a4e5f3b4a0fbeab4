"""What one step of an ingest of uploads leaves in the bucket for the next."""

from __future__ import annotations

import hashlib
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.corpus.passages import CorpusModel
from cicada.errors import IndexCorrupt, PublishConflict
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed
from cicada.ingest.contracts import IngestReport, Prepared, Quarantined, SourceItem
from cicada.ingest.incoming.places import mirror_key


class Planned(CorpusModel):
    """One document of a plan."""

    item: SourceItem
    stamp: str = Field(description="tells one upload of the document from another")

    def digest(self) -> str:
        """What this upload of the document is known by in keys: 32 hexadecimal digits."""
        return hashlib.sha256(f"{self.item.source}\0{self.stamp}".encode()).hexdigest()[:32]


class DeclarationPlanned(CorpusModel):
    """What a run is to do about the collection's declaration: publish one, withdraw it, or report that it is none."""

    stamp: str = Field("", description="of the upload; blank where it is not there any more")
    declaration: CollectionDeclaration | None = Field(None, description="to be published")
    before: CollectionDeclaration | None = Field(None, description="what the collection declares until then")
    refused: Quarantined | None = Field(None, description="why the upload is none: what is published stays")
    withdrawn: bool = Field(False, description="whether what is published was the folder's, and is not there any more")


class IngestPlan(CorpusModel):
    """What a run is to do."""

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
    """What became of one upload: one of the three."""

    prepared: Prepared | None = None
    refused: Quarantined | None = None  # the document's fault: final until it is uploaded again
    failed: Quarantined | None = None  # for another reason: retried

    @property
    def final(self) -> bool:
        """Whether nothing more is to be done about it."""
        return self.failed is None


class Mirrored(CorpusModel):
    """A document of the folder, as it was last met."""

    stamp: str = Field(description="of the upload that was loaded or refused; blank where it is to be met again")
    loaded: bool = Field(False, description="whether the collection's passages of this source are from the folder")
    passages: int = Field(0, description="of them")
    refused: Quarantined | None = Field(None, description="why the last upload is not in the collection, if it is not")


class Mirror(CorpusModel):
    """What is known of a collection's folder."""

    recipe_digest: str = ""
    documents: dict[str, Mirrored] = Field(default_factory=dict, description="by source")
    declaration: Mirrored | None = Field(None, description="the folder's collection.yaml, if there is one")


class CollectionTurn(CorpusModel):
    """Whose turn it is at a collection: one run at a time plans, commits and remembers."""

    run: str = Field("", description="the run at work; blank for none")
    again: bool = Field(False, description="whether something was uploaded since it looked at the folder")
    rounds: int = Field(0, description="how often it has looked again for documents that could not be prepared")


class PlanSummary(CorpusModel):
    """What the workflow needs to know of a plan."""

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
    """What a step of finishing tells the workflow; the whole report lies in the bucket."""

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


def read_mirror(store: ObjectStore, collection: str) -> tuple[Mirror, str | None]:
    """What is known of a collection's folder, as :func:`read_or_new`."""
    return read_or_new(store, mirror_key(collection), Mirror)


def read_or_new(store: ObjectStore, key: str, record: type[Record]) -> tuple[Record, str | None]:
    """A record, and the object's entity tag; an empty one where there is none. Raises as :func:`read_record`."""
    try:
        found = store.read(key)
    except ObjectMissing:
        return record(), None
    return _parsed(key, found.data, record), found.etag


def read_record(store: ObjectStore, key: str, record: type[Record]) -> Record:
    """A record. Raises IndexCorrupt if there is none, or it cannot be read."""
    try:
        return _parsed(key, store.read(key).data, record)
    except ObjectMissing as error:
        raise IndexCorrupt(f"{key} is missing", key=key) from error


def _parsed(key: str, data: bytes, record: type[Record]) -> Record:
    try:
        return record.model_validate_json(data)
    except ValidationError as error:
        raise IndexCorrupt(f"{key} cannot be read", key=key) from error


def read_record_if_there(store: ObjectStore, key: str, record: type[Record]) -> Record | None:
    """A record; None if there is none. Raises IndexCorrupt if it cannot be read."""
    try:
        return _parsed(key, store.read(key).data, record)
    except ObjectMissing:
        return None


def put_record(store: ObjectStore, key: str, record: BaseModel) -> None:
    """Write a record of this run: see :func:`write_again`."""
    write_again(store, key, record.model_dump_json(by_alias=True).encode())


def write_again(store: ObjectStore, key: str, data: bytes) -> None:
    """Write an object of this run; a step that is repeated replaces what it wrote before. Raises PublishConflict if the
    same step is repeated by two at once."""
    try:
        store.write(key, data, replaces=None)
    except PreconditionFailed:
        try:
            found = store.read(key)
            if found.data != data:
                store.write(key, data, replaces=found.etag)
        except (ObjectMissing, PreconditionFailed) as error:
            raise PublishConflict(f"{key} is written by somebody else") from error
