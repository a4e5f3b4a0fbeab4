"""The pipelines' request and response, in the names that integrators know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from cicada.errors import RetrievalInvalid
from cicada.protocol.calls import AS_WHOLE, CallRequest
from cicada.rights import GroupName
from cicada.text.visible import is_blank

PipelineName = Literal["standard", "rerank", "advanced", "facets"]
SearchType = Literal["vector", "keyword", "hybrid", "semantic"]
"""By meaning alone, by words alone, by both; ``semantic`` is by both, re-ordered by the best caption's similarity."""
StageName = Literal[
    "query_expansion", "hyde", "search", "fusion", "rerank", "semantic_ranking", "captions", "answers", "facets"
]

MAX_QUERY_CHARS = 4_000
MAX_TOP_K = 1_000
DEFAULT_TOP_K = 100
DEFAULT_TIME_BUDGET_S = 20.0
MAX_FACET_VALUES = 1_000
MAX_FILTER_VALUES = 1_000
"""Alternatives of one field of a filter."""
MAX_GROUPS = 100
"""Groups that one request names."""
MAX_FILTER_KEYS = 32
"""Keys of the metadata that one filter names."""
MAX_PROBLEMS = 10
"""Reported problems of an invalid request."""
MAX_PLACE_CHARS = 100
_IN_JSON: Mapping[str, str] = {
    "model_type": "Input should be an object",
    "dict_type": "Input should be an object",
    "tuple_type": "Input should be a list",
    "too_short": "Input has too few items: at least {min_length}",
    "too_long": "Input has too many items: at most {max_length}",
}
"""Messages in place of pydantic's own, by a problem's type, with parts of its context."""

Word = Annotated[str, Field(min_length=1, max_length=1_000)]
Words = Annotated[tuple[Word, ...], Field(max_length=MAX_FILTER_VALUES, strict=False)]


class ReadingRequest(CallRequest):
    """A request that reads the corpus on behalf of somebody."""

    groups: Annotated[tuple[GroupName, ...], Field(max_length=MAX_GROUPS, strict=False)] = Field(
        (),
        description="of the user who is to see the response: only collections that a member of these may read exist; "
        "without any, those that everybody may read",
    )


class ApiModel(BaseModel):
    """Of a response: immutable, snake_case on the wire."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class RetrieveFilters(CallRequest):
    """What a passage must have, applied before ranking. Values of one field are alternatives; fields add up."""

    collections: Words = ()
    episodes: Words = ()
    speakers: Words = ()
    sources: Words = ()
    entities: Words = ()
    entity_codes: Words = ()
    metadata: Annotated[dict[Word, Words], Field(max_length=MAX_FILTER_KEYS)] = Field(default_factory=dict)


def _query_or_facets(schema: dict[str, Any]) -> None:
    """Say in the schema what :func:`parse_retrieve_request` checks."""
    schema["anyOf"] = [
        {"properties": {"query": {"pattern": r"\S"}}, "required": ["query"]},
        {"properties": {"pipeline": {"const": "facets"}}, "required": ["pipeline"]},
    ]


class RetrieveRequest(ReadingRequest):
    """One retrieval."""

    model_config = ConfigDict(json_schema_extra=_query_or_facets)

    query: Annotated[str, Field(max_length=MAX_QUERY_CHARS)] = Field(
        "", description="the question, not blank; the pipeline `facets` needs none: it counts all that pass the filters"
    )
    workflow_id: Word | None = Field(
        None, description="only passages with this label: a filter applied before ranking, and no access control"
    )
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K), AS_WHOLE] = Field(DEFAULT_TOP_K, description="documents at most")
    search_type: SearchType = "hybrid"
    pipeline: PipelineName = "advanced"
    enable_rerank: bool = True
    enable_query_expansion: bool = True
    enable_hyde: bool = True
    enable_captions: bool = True
    filters: RetrieveFilters = Field(default_factory=RetrieveFilters)
    facets: tuple[Word, ...] = Field(
        ("entity_codes",),
        max_length=16,
        strict=False,
        description="of the pipeline `facets`: the fields whose values are counted: entities, entity_codes, source, "
        "episode, speaker, collection, workflow_id, doc_type, or a metadata key",
    )
    min_score: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="only what a search scores at least so, before fusion and re-ranking"
    )
    time_budget_s: Annotated[float, Field(gt=0, le=60)] = Field(
        DEFAULT_TIME_BUDGET_S, description="seconds for all stages; what is late is left out and named in `degraded`"
    )

    def refuse_blank(self) -> None:
        """Raise RetrievalInvalid for a blank query, unless facets are counted."""
        if self.pipeline != "facets" and is_blank(self.query):
            raise RetrievalInvalid("query: must not be blank")


class Highlight(ApiModel):
    """A part of a caption, in characters of its text, end excluded."""

    start: int
    end: int


class Caption(ApiModel):
    """The words of a passage that speak most to the query."""

    text: str
    score: float = Field(description="similarity of caption and query, in [0, 1]")
    highlights: tuple[Highlight, ...] = ()


class DocumentMetadata(ApiModel):
    """Where a passage comes from and what is known of it."""

    source: str
    page: int | None = None
    chunk_id: str
    summary: str | None = None
    entities: tuple[str, ...] = ()
    entity_codes: tuple[str, ...] = ()
    captions: tuple[Caption, ...] = ()
    workflow_id: str | None = None
    collection: str
    section: str | None = None
    extra: dict[str, str] = Field(default_factory=dict, description="the passage's own metadata")


class RetrievedDocument(ApiModel):
    """One passage that was found."""

    id: str
    title: str
    content: str
    doc_type: str
    score: float = Field(description="of the search, or of the fusion of several, in [0, 1]")
    reranker_score: float | None = Field(None, description="of semantic ranking, in [0, 1]; None where it did not run")
    rerank_score: float | None = Field(None, description="of the re-ranker, in [0, 1]; None where it did not run")
    metadata: DocumentMetadata


class SemanticAnswer(ApiModel):
    """A caption that may answer the query by itself."""

    text: str
    score: float
    highlights: tuple[Highlight, ...] = ()
    document_id: str


class FacetValue(ApiModel):
    """A value, and how many passages have it."""

    value: str
    count: int


class Facet(ApiModel):
    """A field's values, the most frequent first."""

    field: str
    unique: int = Field(description="how many distinct values there are, those not listed included")
    values: tuple[FacetValue, ...] = Field(description=f"at most {MAX_FACET_VALUES}")


class SkippedStage(ApiModel):
    """What the response had to do without."""

    stage: str
    code: str = Field(
        description="stable: the code of the error, `out_of_time`, a search's own degradation, collection_unknown, "
        "episode_unknown, or not_configured, nothing_usable, unknown_language, index_changed"
    )
    message: str


class StageUse(ApiModel):
    """What a stage's use of a model took."""

    stage: str
    model_id: str
    calls: int = Field(description="requests that went out; of an embedding model, the texts that it was given")
    input_tokens: int = Field(description="as the service reported them; of an embedding model estimated")
    output_tokens: int
    cost_usd: float | None = Field(None, description="absent where the price or the usage is not known")


class ErrorBody(ApiModel):
    """Why there is no result."""

    code: str
    message: str
    retryable: bool


class RetrieveResponse(ApiModel):
    """What a pipeline found."""

    success: bool
    documents: tuple[RetrievedDocument, ...] = ()
    count: int = 0
    queries_used: tuple[str, ...] = ()
    reranked: bool = False
    hyde_used: bool = False
    pipeline: PipelineName
    search_type: SearchType = "hybrid"
    semantic_answers: tuple[SemanticAnswer, ...] = ()
    facets: tuple[Facet, ...] = ()
    total: int = Field(0, description="passages that passed the filters; all of them were ranked, or counted")
    index_version: str = ""
    timings_ms: dict[str, float] = Field(default_factory=dict, description="by stage")
    degraded: tuple[SkippedStage, ...] = ()
    model_uses: tuple[StageUse, ...] = ()
    error: ErrorBody | None = None


def parse_retrieve_request(found: object) -> RetrieveRequest:
    """Read a request. RetrievalInvalid names each invalid field, and never repeats its value."""
    try:
        request = RetrieveRequest.model_validate(found)
    except ValidationError as error:
        raise RetrievalInvalid(problems_of(error)) from None
    request.refuse_blank()
    return request


def problems_of(error: ValidationError) -> str:
    """What is wrong, by field, without the values: the first :data:`MAX_PROBLEMS` of it."""
    found = _without_echoes(error.errors(include_url=False, include_input=False))
    told = [
        f"{'.'.join(str(part) for part in problem['loc'])[:MAX_PLACE_CHARS] or 'request'}: {_said(problem)}"
        for problem in found[:MAX_PROBLEMS]
    ]
    if more := len(found) - len(told):
        told.append(f"and {more} more")
    return "; ".join(told)


def _without_echoes(found: list[ErrorDetails]) -> list[ErrorDetails]:
    """The problems without lists that are too short only because of an invalid item."""
    around = {problem["loc"][:depth] for problem in found for depth in range(len(problem["loc"]))}
    return [problem for problem in found if problem["type"] != "too_short" or problem["loc"] not in around]


def _said(problem: ErrorDetails) -> str:
    """A problem in JSON's terms: callers do not know our types."""
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    said = _IN_JSON.get(problem["type"])
    return problem["msg"] if said is None else said.format_map(problem.get("ctx", {}))
