"""The state that a retrieval's stages pass on."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from cicada.corpus.passages import Passage
from cicada.errors import RetrievalInvalid
from cicada.retrieval.pipelines.api import (
    Caption,
    Facet,
    PipelineName,
    RetrieveFilters,
    RetrieveRequest,
    SearchType,
    SemanticAnswer,
)
from cicada.retrieval.ports import Filters, Hit, SearchMode
from cicada.rights import Readable

WORKFLOW_ID = "workflow_id"
"""The key of a passage's metadata that holds its label."""
SOURCE = "source"
_MODES: dict[SearchType, SearchMode] = {
    "vector": "dense",
    "keyword": "keyword",
    "hybrid": "hybrid",
    "semantic": "hybrid",
}


@dataclass(frozen=True)
class Wanted:
    """One retrieval as the stages see it."""

    query: str
    pipeline: PipelineName
    filters: Filters
    readable: Readable
    top_k: int
    min_score: float
    mode: SearchMode
    semantic: bool = False
    """Whether the best caption's similarity orders what is found."""
    rerank: bool = True
    expand: bool = True
    hyde: bool = True
    captions: bool = True
    facets: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: RetrieveRequest, readable: Readable) -> Wanted:
        """What a request asks for, among what may be read."""
        return cls(
            query=request.query,
            pipeline=request.pipeline,
            filters=filters_of(request.filters, request.workflow_id),
            readable=readable,
            top_k=request.top_k,
            min_score=request.min_score,
            mode=_MODES[request.search_type],
            semantic=request.search_type == "semantic",
            rerank=request.enable_rerank,
            expand=request.enable_query_expansion,
            hyde=request.enable_hyde,
            captions=request.enable_captions,
            facets=request.facets,
        )

    @property
    def hypothesises(self) -> bool:
        """Whether to search by a made-up passage: not in a search by words alone."""
        return self.hyde and self.mode != "keyword"

    @property
    def reranks(self) -> bool:
        """Whether what is found is re-ranked."""
        return self.rerank and self.pipeline in ("rerank", "advanced")


@dataclass(frozen=True)
class Candidate:
    """A passage on its way through the stages."""

    passage: Passage
    search_score: float
    """The best of the searches for a wording of the query, in [0, 1]: calibrated, comparable across searches."""
    score: float
    """Of the search, or of the fusion of several, in [0, 1]."""
    reranker_score: float | None = None
    rerank_score: float | None = None
    captions: tuple[Caption, ...] | None = None
    """None where none were made yet."""


@dataclass(frozen=True)
class SearchRanking:
    """What one of several searches found."""

    hits: tuple[Hit, ...]
    query: str | None
    """Its wording; None of the search by a hypothetical passage."""


@dataclass(frozen=True)
class State:
    """What is known so far."""

    wanted: Wanted
    wordings: tuple[str, ...] = ()
    """Other wordings of the query."""
    hypothetical: str | None = None
    """A made-up passage: never shown, and no source."""
    rankings: tuple[SearchRanking, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    """Best first."""
    index_version: str = ""
    total: int = 0
    engine: str = "shards"
    reranked: bool = False
    answers: tuple[SemanticAnswer, ...] = ()
    facets: tuple[Facet, ...] = ()


def filters_of(asked: RetrieveFilters, workflow_id: str | None = None) -> Filters:
    """The filters of a request and its label. Raises RetrievalInvalid if two of one field have no common value."""
    metadata = {key: tuple(values) for key, values in asked.metadata.items()}
    if asked.sources:
        metadata[SOURCE] = _narrowed(SOURCE, metadata.get(SOURCE), asked.sources)
    if workflow_id is not None:
        metadata[WORKFLOW_ID] = _narrowed(WORKFLOW_ID, metadata.get(WORKFLOW_ID), (workflow_id,))
    return Filters(
        collections=asked.collections,
        episodes=asked.episodes,
        speakers=asked.speakers,
        metadata=metadata,
        entities=asked.entities,
        codes=asked.entity_codes,
    )


def _narrowed(key: str, allowed: tuple[str, ...] | None, also: tuple[str, ...]) -> tuple[str, ...]:
    if not allowed:
        return also
    both = tuple(value for value in allowed if value in also)
    if not both:  # an empty filter would let everything pass
        raise RetrievalInvalid(
            f"filters.metadata.{key}: has no value in common with the request's other filter for this key"
        )
    return both


def identity(passage: Passage) -> Hashable:
    """The same for a passage in two searches, and for a message in all of its languages."""
    return passage.collection, passage.locator.whole() or passage.id
