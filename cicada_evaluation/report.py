"""What an evaluation found: a document with everything that a later comparison needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from cicada.corpus.passages import CorpusModel
from cicada_evaluation.errors import EvaluationRefused

FORMAT: Literal["cicada-eval/1"] = "cicada-eval/1"


class MeanEstimate(CorpusModel):
    """A measure's mean over queries, with its 95 % confidence interval."""

    mean: float
    low: float
    high: float


class Latency(CorpusModel):
    """Milliseconds, over queries."""

    median_ms: float
    p95_ms: float


@dataclass(frozen=True)
class Measured:
    """What is compared and held against gates: one way to search, or one generator's answers over one."""

    name: str  # the mode; of answers ``<mode>+<generator>``
    estimates: Mapping[str, MeanEstimate]  # by measure; of each, more is better
    values: Mapping[str, Mapping[str, float]]  # by query, and by measure: those that the query has
    figures: Mapping[str, float | None]  # what a gate can bound beside the measures; None where it is not known
    of_answers: bool = False  # then a measure may say nothing of any query, and has no estimate


class ReportedCost(CorpusModel):
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
    estimates: dict[str, MeanEstimate] = Field(description="by measure")
    search: Latency
    cost: ReportedCost
    degraded: dict[str, int] = Field(description="how many searches did without something, by code")
    queries: tuple[QueryResult, ...]

    def measured(self) -> Measured:
        """What is compared."""
        figures = {
            "search_median_ms": self.search.median_ms,
            "search_p95_ms": self.search.p95_ms,
            "usd_per_1000_queries": self.cost.usd_per_1000_queries,
        }
        return Measured(self.mode, self.estimates, {query.id: query.values for query in self.queries}, figures)


class AnswerEstimate(MeanEstimate):
    """A measure's mean over the answers that it says something of."""

    answers: int = Field(description="so many")


class JudgedScores(CorpusModel):
    """What a model, asked to judge, thinks of an answer: marks from 0 to 10, and why."""

    faithfulness: float
    relevance: float
    completeness: float
    reason: str


class AnswerResult(CorpusModel):
    """One question's answer."""

    id: str
    kind: Literal["answerable", "removed", "left_out", "file"] = Field(
        description="answerable; or why nothing relevant is there: taken out, the set says so, or a file does"
    )
    question: str
    answer: str | None = Field(description="None where none was written")
    failure: str | None = Field(None, description="the code of what went wrong")
    reason: str | None = Field(None, description="what went wrong, in words")
    refused: bool | None = Field(None, description="whether it says that nothing was found")
    sources: tuple[str, ...] = Field((), description="the passages of the prompt, as the judgements name them")
    values: dict[str, float] = Field(description="by measure: those that say something of it")
    not_attributed: bool = Field(False, description="it claims something and has no marker")
    usd: float | None = Field(description="of all calls to models that it took; None if that is not known")
    input_tokens: int
    output_tokens: int
    first_piece_ms: int | None = Field(None, description="from the call to its first piece; None where none was made")
    answer_ms: int | None = Field(None, description="from the call to its end; None where none was made")
    judged: JudgedScores | None = None

    @property
    def key(self) -> str:
        """Tells it from the other answers of a result."""
        return f"{self.kind}:{self.id}:{self.question}"


class AnswersCost(CorpusModel):
    """What all answers took, those that failed among them."""

    usd: float | None = Field(description="of those whose cost is known; None where that is none of them")
    usd_per_answer: float | None = Field(description="the mean over the same")
    unknown: int = Field(description="questions whose cost is not known: a price is not, or what a call used")
    input_tokens_per_answer: float
    output_tokens_per_answer: float


class JudgeUse(CorpusModel):
    """What the model that judged took."""

    model_id: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    failures: dict[str, int] = Field(description="answers that it did not judge, by code")


class AnswersResult(CorpusModel):
    """One generator's answers to a set's questions, over one way to search."""

    mode: str
    generator: str = Field(description="the model's id")
    engine: str | None = Field(description="None where no search succeeded")
    index_version: str | None
    estimates: dict[str, AnswerEstimate] = Field(description="by measure")
    search: Latency | None
    first_piece: Latency | None
    answer: Latency | None
    cost: AnswersCost
    judge: JudgeUse | None
    degraded: dict[str, int] = Field(description="how many searches did without something, by code")
    failures: dict[str, int] = Field(description="questions without an answer, by code")
    not_attributed: int = Field(description="answers that claim something and have no marker")
    nothing_relevant: int = Field(description="answerable questions whose prompt had no relevant passage")
    queries: tuple[AnswerResult, ...]

    @property
    def name(self) -> str:
        """What tells it from the others of a set."""
        return f"{self.mode}+{self.generator}"

    @property
    def answered(self) -> int:
        """Questions that got an answer."""
        return len(self.queries) - sum(self.failures.values())

    def measured(self) -> Measured:
        """What is compared."""
        figures = {
            **_figures("search", self.search),
            **_figures("first_piece", self.first_piece),
            **_figures("answer", self.answer),
            "usd_per_answer": self.cost.usd_per_answer,
            "input_tokens_per_answer": self.cost.input_tokens_per_answer,
            "output_tokens_per_answer": self.cost.output_tokens_per_answer,
            "failures": float(sum(self.failures.values())),
            "not_attributed": float(self.not_attributed),
        }
        return Measured(self.name, self.estimates, {query.key: query.values for query in self.queries}, figures, True)


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
    answers: tuple[AnswersResult, ...] = ()

    def measured(self) -> tuple[Measured, ...]:
        """All that can be compared: modes, and generators over modes."""
        return (*(mode.measured() for mode in self.modes), *(one.measured() for one in self.answers))

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


def _figures(name: str, latency: Latency | None) -> dict[str, float | None]:
    return {
        f"{name}_median_ms": latency.median_ms if latency else None,
        f"{name}_p95_ms": latency.p95_ms if latency else None,
    }
