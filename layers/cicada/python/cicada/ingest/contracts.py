"""What the steps of an ingest pass on, and where it is in the bucket.

    list the sources -> prepare each by itself (read, cut, enrich, embed) -> commit all -> report

No step passes on a document's text: texts are in the bucket, under keys made of all their inputs, so that a repeated
step finds what was done before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from cicada.corpus.chunking.options import ChunkOptions
from cicada.corpus.declared.sectioning import SectionRules
from cicada.corpus.passages import CorpusModel

MAX_SOURCE_CHARS = 512
WORKFLOW_ID = "workflow_id"
"""Metadata key of a label that the loader of a document chooses, to filter retrievals by. It is not access control."""


class EnrichmentOptions(CorpusModel):
    """What is added to passages."""

    entities: Literal["off", "rules", "model"] = "rules"  # who and what a passage names
    codes: bool = True  # identifiers, by rules
    summaries: Literal["off", "model"] = "off"  # of each document, and of each of its passages
    model_id: str = ""  # of the model that makes them


class Recipe(CorpusModel):
    """All that a prepared document depends on, beside its own bytes and its source. Part of keys: see the digest."""

    embedding_model_id: str
    dimensions: int
    chunks: ChunkOptions = Field(default_factory=ChunkOptions)
    enrichment: EnrichmentOptions = Field(default_factory=EnrichmentOptions)
    sections: SectionRules | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="how the collection's declaration divides its documents; None where it declares nothing",
    )

    def digest(self) -> str:
        """Identifies the recipe in stored state: 32 hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json(by_alias=True).encode()).hexdigest()[:32]


class LoadingRules(CorpusModel):
    """How a collection's documents are cut and enriched."""

    chunks: ChunkOptions = Field(default_factory=ChunkOptions)
    enrichment: EnrichmentOptions = Field(default_factory=EnrichmentOptions)


class LoadingPlan(CorpusModel):
    """The rules of every collection."""

    others: LoadingRules = Field(default_factory=LoadingRules)
    collections: dict[str, LoadingRules] = Field(default_factory=dict)

    def model_ids(self) -> list[str]:
        """The models that enrich, sorted."""
        return sorted({rules.enrichment.model_id for rules in (self.others, *self.collections.values())} - {""})


class SourceItem(CorpusModel):
    """One document to prepare."""

    collection: str
    source: Annotated[str, Field(min_length=1, max_length=MAX_SOURCE_CHARS)]
    key: str = Field(description="of the object in the bucket that holds its bytes")
    etag: str | None = Field(None, description="of the object; another means that it was changed meanwhile")
    size: int = Field(ge=0, description="bytes")
    title: str | None = None
    metadata: dict[str, str] = Field(default_factory=dict, description="of every passage, workflow_id among it")


class Prepared(CorpusModel):
    """A document that is ready to be committed."""

    source: str
    key: str = Field(description="of the object in the bucket that holds its passages and their vectors")
    digest: str = Field(description="SHA-256 of the document's bytes, in hexadecimal")
    passages: int
    embedded: int = Field(description="texts that the embedding model was asked for; 0 if it was prepared before")
    reused: bool
    divided_by: str = Field("", description="digest of the rules of its sections; blank where it was divided by none")
    complete: bool = Field(True, description="false where a model has left something out: it is worth another try")
    notes: tuple[str, ...] = ()
    cost_usd: float | None = Field(0.0, description="of the models' calls; None where a price is not known")


class Owner(CorpusModel):
    """The label of the documents that a commit may touch: no access control, since callers name it."""

    workflow_id: str | None = Field(description="of all their passages; None: they have none")


class Quarantined(CorpusModel):
    """A document that cannot be loaded, and why."""

    source: str
    code: str
    message: str


class IngestReport(CorpusModel):
    """What an ingest came to."""

    collection: str
    documents: int = Field(description="that were asked for")
    loaded: int = Field(description="that the collection holds now")
    unchanged: int = Field(description="of those, how many it held just so before")
    quarantined: tuple[Quarantined, ...] = ()
    removed: tuple[str, ...] = Field((), description="sources whose passages were deleted")
    passages: int = Field(0, description="that the collection holds now, all sources")
    added: int = 0
    deleted: int = 0
    embedded: int = 0
    version: str = ""
    published: bool = False
    cost_usd: float | None = Field(0.0, description="of the models' calls of this ingest; None where not known")
    notes: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="by source")
    sections: dict[str, int] = Field(
        default_factory=dict,
        exclude_if=lambda value: not value,
        description="passages of these documents, by the section of the collection's declaration",
    )
    undeclared: bool = Field(
        False,
        exclude_if=lambda value: not value,
        description="whether the collection declared something before, and declares nothing any more",
    )


PREPARED = "prepared/"  # key prefix of prepared documents
ENRICHED = "enriched/"  # key prefix of model outputs


def spans(sizes: Sequence[float], most: int, most_size: float) -> Iterator[tuple[int, int]]:
    """Start and end of groups of consecutive items, as few as both bounds allow; a larger item is its own group."""
    start, used = 0, 0.0
    for place, size in enumerate(sizes):
        if place > start and (place - start == most or used + size > most_size):
            yield start, place
            start, used = place, 0.0
        used += size
    if sizes:
        yield start, len(sizes)
