"""``index_document`` loads or deletes one document; ``get_document_summary`` summarises one."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from cicada.corpus.messages import MAX_METADATA_ENTRIES, MAX_METADATA_KEY_CHARS, MAX_METADATA_VALUE_CHARS
from cicada.errors import DocumentInvalid, IndexUnavailable, RetrievalInvalid
from cicada.ingest.contracts import MAX_SOURCE_CHARS, WORKFLOW_ID, IngestReport, Owner, Prepared, SourceItem
from cicada.ingest.enrichment.summaries import DocumentSummaries
from cicada.ingest.incoming.batches import Prepare
from cicada.ingest.sources import RESERVED_KEYS
from cicada.protocol.calls import CallRequest
from cicada.retrieval.documents import DocumentReader
from cicada.retrieval.pipelines.api import ApiModel, ErrorBody, ReadingRequest, SkippedStage, Word
from cicada.rights import CollectionName, Readable

Source = Annotated[str, Field(min_length=1, max_length=MAX_SOURCE_CHARS)]


def _not_reserved(key: str) -> str:
    if key in RESERVED_KEYS:
        raise ValueError("is derived from the document and cannot be set")
    return key


MetadataKey = Annotated[
    str,
    Field(min_length=1, max_length=MAX_METADATA_KEY_CHARS, json_schema_extra={"not": {"enum": sorted(RESERVED_KEYS)}}),
    AfterValidator(_not_reserved),
]
MetadataValue = Annotated[str, Field(min_length=1, max_length=MAX_METADATA_VALUE_CHARS)]
MAX_CONTENT_CHARS = 6 * 2**20  # Lambda accepts 6 MB per call; larger documents are uploaded to ``incoming/``
SUMMARY_MAX_TOKENS = 1_024  # of the summarising model's answer


Publish = Callable[[str, Sequence[Prepared], Collection[str], Owner], IngestReport]
"""Publishes and deletes the owner's documents of a collection; see :func:`cicada.ingest.committing.commit`."""


def _one_of_three(schema: dict[str, Any]) -> None:
    """State in the schema that exactly one of content, content_base64 and delete is given."""
    text, none = {"type": "string"}, {"type": "null"}
    schema["oneOf"] = [
        {
            "properties": {"content": plain, "content_base64": encoded, "delete": {"const": name == "delete"}},
            "required": [name],
        }
        for name, plain, encoded in (("content", text, none), ("content_base64", none, text), ("delete", none, none))
    ]


class IndexDocumentRequest(CallRequest):
    """A document to load in place of the one that its source was, or a source to delete."""

    model_config = ConfigDict(json_schema_extra=_one_of_three)

    collection: CollectionName
    source: Source = Field(description="what it is known by, such as `manuals/pump.pdf`; its ending tells its format")
    content: Annotated[str, Field(max_length=MAX_CONTENT_CHARS)] | None = Field(None, description="its text")
    content_base64: Annotated[str, Field(max_length=MAX_CONTENT_CHARS)] | None = Field(
        None, description="or its bytes, base64"
    )
    delete: bool = Field(False, description="delete the source's passages; then there is no content")
    title: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    workflow_id: Word | None = Field(
        None, description="the label that it carries; a document of this source with another label stays as it is"
    )
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=MAX_METADATA_ENTRIES)] = Field(
        default_factory=dict, description="kept with every passage, to filter by"
    )

    @model_validator(mode="after")
    def _one_thing_to_do(self) -> Self:
        given = sum(one is not None for one in (self.content, self.content_base64))
        if given != (0 if self.delete else 1):
            raise ValueError("requires content, content_base64 or delete: true")
        return self

    @model_validator(mode="after")
    def _one_workflow(self) -> Self:
        if self.workflow_id is not None and self.metadata.get(WORKFLOW_ID, self.workflow_id) != self.workflow_id:
            raise ValueError("workflow_id and metadata.workflow_id differ")
        return self

    def data(self) -> bytes:
        """The document's bytes. Raises RetrievalInvalid if they are not base64."""
        if self.content is not None:
            return self.content.encode()
        try:
            return base64.b64decode(self.content_base64 or "", validate=True)
        except ValueError:
            raise RetrievalInvalid("content_base64: invalid base64") from None


class IndexDocumentResponse(ApiModel):
    """What became of it."""

    success: bool
    collection: str = ""
    source: str = ""
    unchanged: bool = Field(False, description="the index held it just so before")
    passages: int = Field(0, description="that it has now")
    added: int = Field(0, description="passages that are new or changed")
    deleted: int = Field(0, description="passages that are gone or changed")
    embedded: int = Field(0, description="texts that the embedding model was asked for")
    index_version: str = ""
    published: bool = False
    cost_usd: float | None = Field(None, description="of the models' calls; absent where a price is not known")
    notes: tuple[str, ...] = ()
    error: ErrorBody | None = None


class SummaryRequest(ReadingRequest):
    """A document whose summary is wanted."""

    collection: CollectionName
    source: Source
    workflow_id: Word | None = Field(None, description="only if it carries this label")
    time_budget_s: Annotated[float, Field(gt=0, le=600)] = Field(
        60.0, description="seconds to make one, where there is none yet"
    )


class SummaryResponse(ApiModel):
    """A document's summary."""

    success: bool
    collection: str = ""
    source: str = ""
    title: str = ""
    summary: str = ""
    made: bool = Field(False, description="whether it was made now; one that was made before costs nothing")
    model_id: str = ""
    passages: int = 0
    index_version: str = ""
    degraded: tuple[SkippedStage, ...] = Field((), description="that the summary may be of a part of the document")
    cost_usd: float | None = Field(None, description="of this call; absent where a price is not known")
    error: ErrorBody | None = None


def index_document(
    request: IndexDocumentRequest, prepare_for: Callable[[str], Prepare], publish: Publish
) -> IndexDocumentResponse:
    """Load a document, or delete it. Nothing changes if this raises.

    Raises:
        DocumentRefused: it cannot be read, a passage's id is taken, or the source has another label.
        DocumentUnknown: the source to delete has another label.
        RetrievalInvalid: its bytes are not base64.
    """
    metadata = request.metadata | ({WORKFLOW_ID: request.workflow_id} if request.workflow_id else {})
    owner = Owner(workflow_id=metadata.get(WORKFLOW_ID))
    if request.delete:
        return _response(request, None, publish(request.collection, [], [request.source], owner))
    data = request.data()
    item = SourceItem(
        collection=request.collection,
        source=request.source,
        key="",
        size=len(data),
        title=request.title,
        metadata=metadata,
    )
    with tempfile.TemporaryDirectory(prefix="document-") as folder:
        path = Path(folder) / "document"
        path.write_bytes(data)
        prepared = prepare_for(request.collection)(item, path)
    report = publish(request.collection, [prepared], [], owner)
    if report.quarantined:
        refused = report.quarantined[0]
        if refused.code == DocumentInvalid.code:
            # The report's reason may name another owner's document: do not repeat it.
            raise DocumentInvalid(
                "one of its passage ids or its metadata conflicts with other documents of the collection"
            )
        raise IndexUnavailable(refused.message)  # the prepared document is damaged; the next call prepares it again
    return _response(request, prepared, report)


def document_summary(
    request: SummaryRequest, readable: Readable, reader: DocumentReader, summaries: DocumentSummaries
) -> SummaryResponse:
    """The stored summary of a document's current passages, or a new one.

    If only part of the document can be read, the summary covers that part, and ``degraded`` says so. Summaries are
    stored by the passages they cover, so a partial one is never returned for the whole document.
    """
    document = reader.read(request.collection, request.source, request.workflow_id, readable=readable)
    texts = [passage.text for passage in document.passages]
    summary = summaries.get_or_make(request.source, document.title, texts, time_budget_s=request.time_budget_s)
    return SummaryResponse(
        success=True,
        collection=request.collection,
        source=request.source,
        title=document.title,
        summary=summary.text,
        made=summary.made,
        model_id=summary.model_id,
        passages=len(document.passages),
        index_version=document.index_version,
        degraded=tuple(SkippedStage(stage="read", code=one.code, message=one.message) for one in document.degraded),
        cost_usd=summary.cost_usd,
    )


def _response(request: IndexDocumentRequest, prepared: Prepared | None, report: IngestReport) -> IndexDocumentResponse:
    return IndexDocumentResponse(
        success=True,
        collection=request.collection,
        source=request.source,
        unchanged=not report.published,
        passages=prepared.passages if prepared else 0,
        added=report.added,
        deleted=report.deleted,
        embedded=prepared.embedded if prepared else 0,
        index_version=report.version,
        published=report.published,
        cost_usd=prepared.cost_usd if prepared else 0.0,
        notes=prepared.notes if prepared else (),
    )
