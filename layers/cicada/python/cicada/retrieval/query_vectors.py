"""The vector of a query, in the time that its search has for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from cicada.errors import ModelBusy, ModelUnavailable, OutOfTime
from cicada.index.embedding import Vector, unit_vectors
from cicada.models.ports import Embedder
from cicada.retrieval.background import run_in_background, wait_for
from cicada.retrieval.ports import Degradation, SearchQuery

logger = logging.getLogger(__name__)

R = TypeVar("R")

EMBED_BUDGET_S = 8.0
"""Seconds for embedding a query, retries included."""
EMBED_SHARE = 0.5
"""Of a search's time left, where a search by words must have the rest."""


def query_vector(embedder: Embedder, query: SearchQuery, most_s: float = EMBED_BUDGET_S) -> Vector:
    """The vector of a query, of unit length.

    Raises:
        ModelBusy, ModelUnavailable, ModelRefused: it could not be embedded, or not in time.
        IndexMismatch: the model gave a vector of no use.
    """
    time_s = embedding_time_s(query, most_s)
    embed = partial(unit_vectors, embedder, [query.text], time_budget_s=time_s)
    vector: Vector = (embed() if time_s >= most_s else in_time(embed, time_s))[0]
    return vector


def vector_or_words(
    embedder: Embedder, query: SearchQuery, most_s: float = EMBED_BUDGET_S
) -> tuple[Vector | None, tuple[Degradation, ...]]:
    """A query's vector, None for a search by words; with its degradation where a hybrid query cannot be embedded.

    Raises as :func:`query_vector`, for a dense query also ModelBusy and ModelUnavailable.
    """
    if query.mode == "keyword":
        return None, ()
    try:
        return query_vector(embedder, query, most_s), ()
    except (ModelBusy, ModelUnavailable) as error:
        if query.mode == "dense":
            raise
        logger.warning("falling back to lexical search", extra={"code": error.code, "why": str(error)})
        told = "The question could only be compared by its words, not its meaning."
        return None, (Degradation("words_only", told),)


def embedding_time_s(query: SearchQuery, most_s: float = EMBED_BUDGET_S) -> float:
    """Seconds that embedding a query may take."""
    share = 1.0 if query.mode == "dense" else EMBED_SHARE
    return min(most_s, share * query.limits.time_left_s())


def in_time(embed: Callable[[], R], time_s: float) -> R:
    """Run ``embed``, or raise ModelUnavailable after some seconds: a call's own read time-out can be longer."""
    try:
        return wait_for(run_in_background(embed, "embed"), time_s)
    except OutOfTime as late:
        raise ModelUnavailable("embedding the query timed out") from late
