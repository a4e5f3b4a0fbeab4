"""What an evaluation found: a document with everything that a later comparison needs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from cicada.corpus.passages import CorpusModel
from clients.evaluation.errors import EvaluationRefused

FORMAT: Literal["cicada-eval/1"] = "cicada-eval/1"


class Estimate(CorpusModel):
    """A measure's mean over queries, with its 95 % confidence interval."""

    mean: float
    low: float
    high: float


class Latency(CorpusModel):
    """Milliseconds, over queries."""

    median_ms: float
    p95_ms: float


class Cost(CorpusModel):
    """US dollars; None where no price is known."""

    embedding_usd: float | None = Field(description="for embedding this set's queries; 0 in a mode that embeds none")
    engine_usd: float | None = Field(description="the engine's fees for these searches")
    models_usd: float | None = Field(0.0, description="what a pipeline's text models and re-rankers took")
    usd_per_1000_queries: float | None


class QueryResult(CorpusModel):
    """One query's values, by measure."""

    id: str
    values: dict[str, float]
    search_ms: float = Field(description="of the search alone: the query's embedding is apart")
    top: tuple[str, ...] = Field(description="the first ten that were found, as the judgements name them")


class ModeResult(CorpusModel):
    """One way to search, over a set."""

    mode: str
    engine: str
    index_version: str
    estimates: dict[str, Estimate] = Field(description="by measure")
    search: Latency
    cost: Cost
    degraded: dict[str, int] = Field(description="how many searches did without something, by code")
    queries: tuple[QueryResult, ...]


class Indexing(CorpusModel):
    """What it took to index the corpus; of an index that held it already, nothing."""

    passages: int
    embedded: int = Field(description="texts that the model was asked for")
    tokens: int
    usd: float | None


class SetResult(CorpusModel):
    """A judged set, searched in one or more modes."""

    name: str
    kind: str
    judgements_digest: str
    corpus_digest: str | None
    left_out: int = Field(description="queries that nothing relevant is known for")
    notes: tuple[str, ...]
    indexing: Indexing | None
    embedding: Latency | None = Field(description="of one query; None if no mode needed it")
    modes: tuple[ModeResult, ...]

    def mode(self, name: str) -> ModeResult | None:
        """The results of one mode."""
        return next((mode for mode in self.modes if mode.mode == name), None)


class Report(CorpusModel):
    """A whole evaluation."""

    format: Literal["cicada-eval/1"] = FORMAT
    created_at: str = Field(description="ISO 8601")
    cicada_version: str
    embedding_model_id: str
    dimensions: int
    price_date: str = Field(description="of the table of engine fees, ISO 8601")
    seed: int
    sets: tuple[SetResult, ...]

    def set(self, name: str) -> SetResult | None:
        """The results of one set."""
        return next((found for found in self.sets if found.name == name), None)


def write_report(report: Report, path: Path) -> None:
    """Write a report.

    Raises:
        EvaluationRefused: it cannot be written there.
    """
    try:
        path.write_text(report.model_dump_json(by_alias=True, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise EvaluationRefused(f"{path}: cannot be written: {error.strerror}") from error


def read_report(path: Path) -> Report:
    """Read a report that :func:`write_report` wrote.

    Raises:
        EvaluationRefused: it cannot be read, or is none.
    """
    try:
        return Report.model_validate_json(path.read_bytes())
    except OSError as error:
        raise EvaluationRefused(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise EvaluationRefused(f"{path}: is no report of `cicada eval --json`: {where}: {first['msg']}") from error
