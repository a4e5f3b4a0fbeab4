"""How uploaded documents are loaded: the deployer's settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from cicada.corpus.chunking.options import (
    DEFAULT_CHUNK_SIZE,
    DEFAULT_OVERLAP,
    DEFAULT_SIMILARITY,
    MAX_CHUNK_SIZE,
    ChunkOptions,
)
from cicada.ingest.contracts import EnrichmentOptions
from cicada.rights import CollectionName
from stacks.answer_settings import Group, TextModelId


class LoadingRulesSettings(Group):
    """How the documents of a collection are cut and enriched."""

    chunk_size: Annotated[int, Field(ge=50, le=MAX_CHUNK_SIZE)] = Field(
        DEFAULT_CHUNK_SIZE, description="tokens of a passage at most"
    )
    overlap: Annotated[int, Field(ge=0, le=MAX_CHUNK_SIZE)] = Field(
        DEFAULT_OVERLAP,
        description="tokens that a passage repeats of the one before it, at most; less than `chunkSize`",
    )
    boundaries: Literal["structure", "words", "embedding"] = Field(
        ChunkOptions().boundaries,
        description="where passages may end beside headings and paragraphs: nowhere, or where neighbouring sentences "
        "are unlike each other, by their words or by the embedding model (billed)",
    )
    similarity: Annotated[float, Field(ge=0, le=1)] = Field(
        DEFAULT_SIMILARITY, description="neighbouring sentences below it are unlike each other"
    )
    entities: Literal["off", "rules", "model"] = Field(
        "rules", description="whether passages are marked with whom and what they name, by rules or by a model (billed)"
    )
    codes: bool = Field(True, description="whether passages are marked with the identifiers in them")
    summaries: Literal["off", "model"] = Field(
        "off", description="whether a model (billed) summarises each document and each of its passages"
    )

    @field_validator("overlap")
    @classmethod
    def _new_text_in_every_passage(cls, overlap: int, others: ValidationInfo) -> int:
        chunk_size = others.data.get("chunk_size")
        if chunk_size is not None and overlap >= chunk_size:
            raise ValueError(f"is {overlap}, and must be less than chunkSize, which is {chunk_size}")
        return overlap

    def chunks(self) -> ChunkOptions:
        """As the library takes them."""
        return ChunkOptions(
            chunk_size=self.chunk_size, overlap=self.overlap, similarity=self.similarity, boundaries=self.boundaries
        )

    def enrichment(self, model_id: str) -> EnrichmentOptions:
        """As the library takes them."""
        return EnrichmentOptions(
            entities=self.entities,
            codes=self.codes,
            summaries=self.summaries,
            model_id=model_id if "model" in (self.entities, self.summaries) else "",
        )


class Ingest(LoadingRulesSettings):
    """The loading of what is uploaded below ``incoming/`` of the bucket."""

    collections: dict[CollectionName, LoadingRulesSettings] = Field(
        {}, description="by collection, rules in place of the seven above: all of them, or their defaults"
    )
    enrichment_model_id: TextModelId | None = Field(
        None, description="the model that enriches, where one does; `models.directModelId` when `null`"
    )
    concurrency: Annotated[int, Field(ge=1, le=100)] = Field(
        4, description="batches of documents that are prepared at once: what the embedding model's quota can bear"
    )
    quiet_s: Annotated[int, Field(ge=5, le=900)] = Field(
        30, description="seconds in which uploads to one collection are gathered into one run"
    )
    keep_days: Annotated[int, Field(ge=1, le=365)] = Field(
        30, description="how long prepared documents, what models made of them, and reports are kept"
    )
    memory_mb: Annotated[int, Field(ge=2048, le=10_240)] = Field(
        3008,
        description="memory of the functions that read and commit documents; reading one may take 1,024 of it",
    )
