"""The contract of ``enrich_schema``: takes a database's tables and columns, returns their meanings and rules."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cicada.protocol.calls import AS_WHOLE, CallRequest
from cicada.retrieval.pipelines.api import (
    ApiModel,
    ErrorBody,
    ReadingRequest,
    RetrieveFilters,
    SkippedStage,
    StageUse,
    Word,
)

MAX_TABLES = 50
MAX_COLUMNS = 200


class Column(CallRequest):
    """A column, as the database has it."""

    name: Word
    type: Annotated[str, Field(max_length=200)] | None = None
    description: Annotated[str, Field(max_length=1_000)] | None = None


class Table(CallRequest):
    """A table, as the database has it."""

    name: Word
    description: Annotated[str, Field(max_length=1_000)] | None = None
    columns: Annotated[tuple[Column, ...], Field(min_length=1, max_length=MAX_COLUMNS, strict=False)]


class SchemaRequest(ReadingRequest):
    """A schema to explain."""

    tables: Annotated[tuple[Table, ...], Field(min_length=1, max_length=MAX_TABLES, strict=False)]
    workflow_id: Word | None = Field(None, description="only by passages with this label")
    filters: RetrieveFilters = Field(default_factory=RetrieveFilters)
    passages_per_table: Annotated[int, Field(ge=1, le=30), AS_WHOLE] = Field(
        8, description="passages shown to the model at most"
    )
    time_budget_s: Annotated[float, Field(gt=0, le=600)] = Field(60.0, description="seconds for all tables")


class Meaning(ApiModel):
    """What a table or a column means."""

    text: str
    sources: tuple[int, ...] = Field((), description="numbers of the passages that say so")
    inferred: bool = Field(description="whether it rests on the name alone")


class ColumnMeaning(ApiModel):
    """A column, explained."""

    name: str
    meaning: Meaning | None = Field(None, description="absent where nothing could be said")


class TableMeaning(ApiModel):
    """A table, explained."""

    name: str
    meaning: Meaning | None = None
    columns: tuple[ColumnMeaning, ...]


class BusinessRule(ApiModel):
    """A rule that the corpus gives."""

    table: str
    columns: tuple[str, ...]
    rule: str
    sources: tuple[int, ...]
    verified: bool = Field(description="whether one of its passages carries what it says")


class SchemaSource(ApiModel):
    """A passage that was shown to the model."""

    n: int
    id: str
    label: str = Field(description="where it stands, for people")
    content: str
    score: float


class SchemaResponse(ApiModel):
    """A schema, explained."""

    success: bool
    tables: tuple[TableMeaning, ...] = ()
    rules: tuple[BusinessRule, ...] = ()
    sources: tuple[SchemaSource, ...] = ()
    index_version: str = ""
    degraded: tuple[SkippedStage, ...] = Field(
        (), description="tables that could not be explained, and searches that were less than whole; and why"
    )
    model_uses: tuple[StageUse, ...] = ()
    error: ErrorBody | None = None
