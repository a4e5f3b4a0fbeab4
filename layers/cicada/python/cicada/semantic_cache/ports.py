"""The port of the semantic cache; imports no numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from cicada.attempts.strategy import AskedQuestion
from cicada.protocol.events import Citation, Source
from cicada.retrieval.ports import SearchLimits


@dataclass(frozen=True)
class Looked:
    """The result of a lookup."""

    use: Literal["answer", "contexts", "miss"]
    """answer: replay it; contexts: write a new one from its sources; miss: nothing fits."""
    compared: int = 0
    """Earlier questions that were compared."""
    similarity: float = 0.0
    """Of the question that is used, else of the nearest one, in [0, 1]."""
    index_version: str = ""
    question: str = ""
    """The earlier question; this and all below are empty in a miss."""
    answered_at_ms: int = 0
    text: str = ""
    sources: tuple[Source, ...] = ()
    citations: tuple[Citation, ...] = ()
    model_id: str = ""
    stop_reason: str = ""
    found: int = 0
    """How many passages its search had found."""


class EarlierAnswers(Protocol):
    """Knows earlier answers: :class:`cicada.semantic_cache.cache.SemanticCache`."""

    def look_up(
        self, asked: AskedQuestion, index_version: str, limits: SearchLimits, *, time_budget_s: float
    ) -> Looked:
        """Find the earlier answer to the same question, else one to a near question.

        A replayed answer passes the current check of citations.

        Raises:
            CacheUnavailable: the store failed.
            OutOfTime: no time was left to read it.
            ModelError: the question could not be embedded.
            IndexMismatch: the embedding model returned an unusable vector.
        """
        ...
