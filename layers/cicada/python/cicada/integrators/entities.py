"""``graph_query`` answers questions about co-occurring entities; ``facets`` counts the values of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from cicada.corpus.passages import DocumentLocator, Passage
from cicada.protocol.calls import AS_WHOLE
from cicada.retrieval.entity_paths import MAX_HOPS, Cooccurring, Entity, GraphAnswer, Neighbours, Paths, Tie
from cicada.retrieval.facets import ShardFacets
from cicada.retrieval.graph import DEFAULT_SHOWN, MAX_LISTED, MAX_NAMED, MAX_SHOWN, EntityGraph
from cicada.retrieval.pipelines.api import (
    MAX_FACET_VALUES,
    ApiModel,
    ErrorBody,
    Facet,
    FacetValue,
    ReadingRequest,
    RetrieveFilters,
    SkippedStage,
    Word,
)
from cicada.retrieval.pipelines.state import filters_of
from cicada.retrieval.ports import Degradation
from cicada.rights import Readable

_REQUIRED: Mapping[str, tuple[str, ...]] = {"cooccurring": (), "neighbours": ("entity",), "paths": ("start", "end")}
"""The fields that each operation requires."""


def _with_required_fields(schema: dict[str, Any]) -> None:
    schema["allOf"] = [
        {
            "if": {"properties": {"operation": {"const": operation}}},
            "then": {"properties": {name: {"type": "string"} for name in names}, "required": list(names)},
        }
        for operation, names in _REQUIRED.items()
        if names
    ]


class GraphRequest(ReadingRequest):
    """A question about entities."""

    model_config = ConfigDict(json_schema_extra=_with_required_fields)

    operation: Literal["cooccurring", "neighbours", "paths"] = Field(
        description="cooccurring: pairs that passages name together (among several `entities`, with one, or of all); "
        "neighbours: what occurs together with `entity`; paths: the ways from `start` to `end`"
    )
    entities: Annotated[tuple[Word, ...], Field(max_length=MAX_NAMED, strict=False)] = ()
    entity: Word | None = None
    start: Word | None = None
    end: Word | None = None
    max_hops: Annotated[int, Field(ge=1, le=MAX_HOPS), AS_WHOLE] = Field(
        3, description="passages from start to end at most"
    )
    workflow_id: Word | None = Field(None, description="only passages with this label")
    filters: RetrieveFilters = Field(default_factory=RetrieveFilters)
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED), AS_WHOLE] = Field(20, description="pairs or ways at most")
    passages: Annotated[int, Field(ge=0, le=MAX_SHOWN), AS_WHOLE] = Field(
        DEFAULT_SHOWN, description="passages that show each tie, at most"
    )

    @model_validator(mode="after")
    def _has_required_fields(self) -> Self:
        if missing := [name for name in _REQUIRED[self.operation] if getattr(self, name) is None]:
            raise ValueError(f"{self.operation} requires {' and '.join(missing)}")
        return self


class GraphPassage(ApiModel):
    """A passage that shows a tie."""

    id: str
    collection: str
    source: str
    page: int | None
    label: str = Field(description="where it stands, for people")
    content: str


class GraphEntity(ApiModel):
    """An entity, as most passages spell it."""

    name: str
    passages: int = Field(description="that name it")


class GraphTie(ApiModel):
    """Two entities that passages name together."""

    first: GraphEntity
    second: GraphEntity
    passages: int = Field(description="that name both")
    lift: float = Field(description="how many times as many as if the two were independent")
    npmi: float = Field(description="normalised pointwise mutual information, in [-1, 1]")
    shown_by: tuple[GraphPassage, ...]


class UnknownName(ApiModel):
    """A name that no passage names."""

    name: str
    closest: tuple[str, ...]


class GraphResponse(ApiModel):
    """The answer."""

    success: bool
    operation: str = ""
    entities: tuple[GraphEntity, ...] = Field((), description="those asked about that are known")
    ties: tuple[GraphTie, ...] = Field((), description="of `cooccurring` and `neighbours`")
    paths: tuple[tuple[GraphTie, ...], ...] = Field((), description="of `paths`, each its ties from start to end")
    together: int = Field(0, description="of `cooccurring`: passages that name all that were asked about")
    shown_by: tuple[GraphPassage, ...] = Field((), description="some of those passages")
    unique: int = Field(0, description="of `neighbours`: how many there are, those not listed included")
    complete: bool = Field(True, description="false where there was too much to look at all of it")
    unknown: tuple[UnknownName, ...] = ()
    total: int = Field(0, description="passages that pass the filters")
    index_version: str = ""
    degraded: tuple[SkippedStage, ...] = ()
    error: ErrorBody | None = None


class FacetsRequest(ReadingRequest):
    """Fields whose values are to be counted."""

    fields: Annotated[tuple[Word, ...], Field(min_length=1, max_length=16, strict=False)] = Field(
        ("entity_codes",),
        description="of entities, entity_codes, source, episode, speaker, collection, or keys of the metadata, "
        "workflow_id and doc_type among them",
    )
    workflow_id: Word | None = Field(None, description="only passages with this label")
    filters: RetrieveFilters = Field(default_factory=RetrieveFilters)
    limit: Annotated[int, Field(ge=0, le=MAX_FACET_VALUES), AS_WHOLE] = Field(
        100, description="values of a field at most"
    )


class FacetsResponse(ApiModel):
    """Their values."""

    success: bool
    facets: tuple[Facet, ...] = ()
    total: int = Field(0, description="passages that pass the filters")
    index_version: str = ""
    degraded: tuple[SkippedStage, ...] = ()
    error: ErrorBody | None = None


def graph_query(request: GraphRequest, readable: Readable, graph: EntityGraph) -> GraphResponse:
    """Answer a question about entities. Raises RetrievalInvalid beyond the graph's limits, or IndexFailure."""
    filters = filters_of(request.filters, request.workflow_id)
    bounds = {"limit": request.limit, "show": request.passages}
    match request.operation:
        case "cooccurring":
            return _cooccurring(graph.cooccurring(request.entities, filters, readable=readable, **bounds))
        case "neighbours":
            return _neighbours(graph.neighbours(request.entity or "", filters, readable=readable, **bounds))
        case "paths":
            start, end = request.start or "", request.end or ""
            return _paths(graph.paths(start, end, filters, readable=readable, max_hops=request.max_hops, **bounds))


def count_facets(request: FacetsRequest, readable: Readable, facets: ShardFacets) -> FacetsResponse:
    """Count the values of fields. Raises RetrievalInvalid if two filters of one field have no common value."""
    filters = filters_of(request.filters, request.workflow_id)
    counted = facets.count(request.fields, filters, readable=readable, limit=request.limit)
    return FacetsResponse(
        success=True,
        facets=tuple(
            Facet(
                field=one.field,
                unique=one.unique,
                values=tuple(FacetValue(value=value, count=count) for value, count in one.values),
            )
            for one in counted.fields
        ),
        total=counted.total,
        index_version=counted.index_version,
        degraded=_degraded("facets", counted.degraded),
    )


def _cooccurring(found: Cooccurring) -> GraphResponse:
    return _response(
        "cooccurring",
        found,
        entities=tuple(map(_entity, found.entities)),
        ties=tuple(map(_tie, found.ties)),
        together=found.together,
        shown_by=tuple(map(_passage, found.shown_by)),
        complete=found.complete,
    )


def _neighbours(found: Neighbours) -> GraphResponse:
    entities = () if found.entity is None else (_entity(found.entity),)
    return _response("neighbours", found, entities=entities, ties=tuple(map(_tie, found.ties)), unique=found.unique)


def _paths(found: Paths) -> GraphResponse:
    return _response(
        "paths",
        found,
        entities=tuple(_entity(one) for one in (found.start, found.end) if one is not None),
        paths=tuple(tuple(map(_tie, path)) for path in found.paths),
        complete=found.complete,
    )


def _response(operation: str, found: GraphAnswer, **own: Any) -> GraphResponse:
    return GraphResponse(
        success=True,
        operation=operation,
        unknown=tuple(UnknownName(name=one.name, closest=one.closest) for one in found.unknown),
        total=found.total,
        index_version=found.index_version,
        degraded=_degraded("graph", found.degraded),
        **own,
    )


def _entity(entity: Entity) -> GraphEntity:
    return GraphEntity(name=entity.name, passages=entity.passages)


def _tie(tie: Tie) -> GraphTie:
    return GraphTie(
        first=_entity(tie.first),
        second=_entity(tie.second),
        passages=tie.passages,
        lift=round(tie.lift, 4),
        npmi=round(tie.npmi, 4),
        shown_by=tuple(map(_passage, tie.shown_by)),
    )


def _passage(passage: Passage) -> GraphPassage:
    document = passage.locator if isinstance(passage.locator, DocumentLocator) else None
    return GraphPassage(
        id=passage.id,
        collection=passage.collection,
        source=document.source if document else passage.metadata.get("source", passage.collection),
        page=document.page if document else None,
        label=passage.locator.label(),
        content=passage.text,
    )


def _degraded(stage: str, found: tuple[Degradation, ...]) -> tuple[SkippedStage, ...]:
    return tuple(SkippedStage(stage=stage, code=one.code, message=one.message) for one in found)
