"""What strategies make of earlier answers: their passages among those for a new question."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from cicada.protocol.events import Reused, Source
from cicada.retrieval.ports import Limits

if TYPE_CHECKING:
    from cicada.answering.semantic_cache.cache import Looked
    from cicada.answering.strategy import Asked


class EarlierAnswers(Protocol):
    """Knows earlier answers: :class:`cicada.answering.semantic_cache.cache.SemanticCache`."""

    def look_up(self, asked: Asked, index_version: str, limits: Limits, *, time_budget_s: float) -> Looked:
        """Find the earlier answer to the same question, else one to a near question.

        One to be given again holds by today's check of citations.

        Raises:
            CacheUnavailable: the store did not answer.
            OutOfTime: no time was left to ask it.
            ModelError: the question could not be embedded.
            IndexMismatch: the embedding model gave a vector of no use.
        """
        ...


def reused(looked: Looked, use: Literal["answer", "contexts"]) -> Reused:
    """The earlier answer as the client is told of it."""
    similarity = min(1.0, max(0.0, looked.similarity))
    return Reused(use=use, question=looked.question, answered_at_ms=looked.answered_at_ms, similarity=similarity)


def contexts(looked: Looked) -> tuple[Source, ...]:
    """The passages of an earlier answer, with scores for the new question.

    A kept score says how relevant the passage was to the *old* question; nobody has compared it with the new one. It
    counts for the new question as far as the two are alike: score times similarity. So a passage that the cache brings
    never outranks an equally relevant one that was found for this very question, and the scores of both are one scale.
    Why it was there then, by the intentions and names of the old question, is not told of the new one.
    """
    similarity = min(1.0, max(0.0, looked.similarity))
    return tuple(
        source.model_copy(update={"origin": "cache", "score": round(source.score * similarity, 4), "why": ()})
        for source in looked.sources
    )


def merged(found: Sequence[Source], cached: Sequence[Source], *, in_order: bool = False) -> tuple[Source, ...]:
    """Both, each passage once, by descending score, numbered from 1.

    What both brought counts as found: its score was measured against this question.

    Args:
        found: for this question.
        cached: of an earlier answer.
        in_order: whether what was found stays in its order, and what only the earlier answer brings comes after it.
    """
    kept: list[Source] = []
    seen: set[Hashable] = set()
    for source in (*found, *cached):
        identities = set(_identities(source))
        if not identities & seen:
            kept.append(source)
        seen |= identities
    if in_order:
        return numbered(kept)
    return numbered(sorted(kept, key=lambda source: -source.score))  # stable: what was found first, where scores tie


def numbered(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The same sources, numbered from 1."""
    return tuple(source.model_copy(update={"n": n}) for n, source in enumerate(sources, 1))


def _identities(source: Source) -> Iterator[Hashable]:
    """What tells that two sources are the same passage: its id, its message, or its place and words."""
    yield source.collection, "id", source.passage_id
    whole = source.locator.whole()
    if whole is not None:
        yield source.collection, "whole", whole
    yield source.collection, source.locator, source.text
