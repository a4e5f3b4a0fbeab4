"""The vector of a query, in the time that its search has for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from cicada.errors import ModelUnavailable, OutOfTime
from cicada.index.embedding import Vector, unit_vectors
from cicada.models.ports import Embedder
from cicada.retrieval.ports import SearchQuery
from cicada.retrieval.waiting import beside, within

R = TypeVar("R")

EMBED_BUDGET_S = 8.0
"""Seconds for embedding a query, retries included: the asker waits for it."""
EMBED_SHARE = 0.5
"""Of what a search has left, where it can go on by words alone: they are to have the rest."""


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


def embedding_time_s(query: SearchQuery, most_s: float = EMBED_BUDGET_S) -> float:
    """Seconds that embedding a query may take."""
    share = 1.0 if query.mode == "dense" else EMBED_SHARE
    return min(most_s, share * query.limits.time_left_s())


def in_time(embed: Callable[[], R], time_s: float) -> R:
    """What an embedder gives, or ModelUnavailable after some seconds, which a call's own read time-out could exceed."""
    try:
        return within(beside(embed, "embed"), time_s)
    except OutOfTime as late:
        raise ModelUnavailable("the query was not embedded in time") from late
