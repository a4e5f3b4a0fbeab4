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
        DEFAULT_CHUNK_SIZE, description="maximum tokens of a passage"
    )
    overlap: Annotated[int, Field(ge=0, le=MAX_CHUNK_SIZE)] = Field(
        DEFAULT_OVERLAP,
        description="maximum tokens that a passage repeats from the previous one; less than `chunkSize`",
    )
    boundaries: Literal["structure", "words", "embedding"] = Field(
        ChunkOptions().boundaries,
        description="additional passage boundaries besides headings and paragraphs: none, or between dissimilar "
        "sentences, compared by their words or by the embedding model (billed)",
    )
    similarity: Annotated[float, Field(ge=0, le=1)] = Field(
        DEFAULT_SIMILARITY, description="similarity below which neighbouring sentences are separated"
    )
    entities: Literal["off", "rules", "model"] = Field(
        "rules", description="annotate passages with named entities, by rules or by a model (billed)"
    )
    codes: bool = Field(True, description="annotate passages with the identifiers they contain")
    summaries: Literal["off", "model"] = Field(
        "off", description="summarise each document and each passage with a model (billed)"
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
        {}, description="per collection, values that replace the seven settings above; omitted ones take their defaults"
    )
    enrichment_model_id: TextModelId | None = Field(
        None, description="model for entities and summaries; `null` uses `models.directModelId`"
    )
    concurrency: Annotated[int, Field(ge=1, le=100)] = Field(
        4, description="batches of documents prepared concurrently; limited by the embedding model's quota"
    )
    quiet_s: Annotated[int, Field(ge=5, le=900)] = Field(
        30, description="seconds during which uploads to one collection are collected into one run"
    )
    keep_days: Annotated[int, Field(ge=1, le=365)] = Field(
        30, description="retention of prepared documents, cached model outputs and reports"
    )
    memory_mb: Annotated[int, Field(ge=2048, le=10_240)] = Field(
        3008,
        description="memory of the functions that read and commit documents; reading one document can use 1,024 "
        "MB of it",
    )
