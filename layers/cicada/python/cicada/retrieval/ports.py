"""The retrieval port: one typed query in, ranked passages out, whatever the backend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from cicada.corpus.passages import Passage

DEFAULT_TOP_K = 20
"""Passages returned at most, unless the query says otherwise."""
DEFAULT_MIN_SCORE = 0.5
"""Hits below this score, in [0, 1], are not returned."""


@dataclass(frozen=True)
class Filters:
    """What a passage must have; an empty tuple allows everything. Applied before ranking."""

    collections: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchQuery:
    """One search."""

    text: str
    filters: Filters = field(default_factory=Filters)
    top_k: int = DEFAULT_TOP_K
    min_score: float = DEFAULT_MIN_SCORE


@dataclass(frozen=True)
class Hit:
    """A passage and its relevance: ``score`` in [0, 1], comparable across segments and searches of a version."""

    passage: Passage
    score: float


@dataclass(frozen=True)
class SearchResult:
    """Hits, best first, and where they come from."""

    hits: tuple[Hit, ...]
    index_version: str
    searched: int
    """Passages that passed the filters: all of them were ranked."""
    timings_ms: dict[str, float] = field(default_factory=dict)


class Retriever(Protocol):
    """Finds passages."""

    def search(self, query: SearchQuery) -> SearchResult:
        """Return the best passages for the query.

        Raises:
            IndexMissing, IndexCorrupt, IndexMismatch, IndexUnavailable: the index cannot serve it.
            ModelBusy, ModelUnavailable, ModelRefused: the query could not be embedded.
        """
        ...
