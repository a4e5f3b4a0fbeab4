"""How documents are cut."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cicada.corpus.passages import CorpusModel

DEFAULT_CHUNK_SIZE = 800  # tokens, at most
MAX_CHUNK_SIZE = 2_000  # tokens: about the 7,000 characters of a passage that a prompt shows
DEFAULT_OVERLAP = 200  # tokens repeated from the previous chunk, at most
DEFAULT_SIMILARITY = 0.5  # a chunk may end between sentences less similar than this


class ChunkOptions(CorpusModel):
    """How documents are cut."""

    chunk_size: Annotated[int, Field(ge=50, le=MAX_CHUNK_SIZE)] = Field(
        DEFAULT_CHUNK_SIZE, description="tokens at most"
    )
    overlap: Annotated[int, Field(ge=0, le=MAX_CHUNK_SIZE)] = Field(
        DEFAULT_OVERLAP, description="tokens repeated at most"
    )
    similarity: Annotated[float, Field(ge=0, le=1)] = Field(
        DEFAULT_SIMILARITY, description="cosine of neighbouring sentences below which a chunk may end"
    )
    boundaries: Literal["structure", "words", "embedding"] = Field(
        "words",
        description="where chunks may end beside headings and paragraphs: nowhere, or where the similarity drops, "
        "by shared words or by the embedding model",
    )

    @model_validator(mode="after")
    def _new_text_in_every_chunk(self) -> Self:
        if self.overlap >= self.chunk_size:
            raise ValueError(f"overlap ({self.overlap}) must be smaller than chunk_size ({self.chunk_size})")
        return self
