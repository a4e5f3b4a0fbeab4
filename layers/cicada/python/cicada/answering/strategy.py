"""A way to answer, seen from the attempt that runs it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cicada.delivery.record import Question
from cicada.models.ports import TextDelta, Usage
from cicada.protocol.events import Citation, Degraded, Source, StrategyFailure, StrategyName


@dataclass(frozen=True)
class Retrieved:
    """The passages that the prompt will number: the best of those found."""

    sources: tuple[Source, ...]
    found: int
    """How many were found, of which the prompt takes the best."""
    index_version: str
    searched: int
    """Passages that were ranked."""
    retrieval_ms: int
    engine: str
    """What searched, see :class:`cicada.retrieval.ports.SearchResult`."""
    degraded: tuple[Degraded, ...] = ()
    """What the search had to do without."""


@dataclass(frozen=True)
class Answered:
    """The answer is whole; always the last step."""

    stop_reason: str
    usage: Usage
    citations: tuple[Citation, ...] | None = None
    """Every marker of the text, checked; None where nothing was retrieved to cite."""

    @property
    def grounded(self) -> bool:
        """Whether the answer rests on a retrieved passage."""
        return any(citation.verdict == "verified" for citation in self.citations or ())

    @property
    def sources_used(self) -> int:
        """Distinct passages that the answer cites."""
        return len({citation.passage_id for citation in self.citations or () if citation.passage_id})


Step = Retrieved | TextDelta | Answered


class Strategy(Protocol):
    """Answers a question step by step."""

    @property
    def name(self) -> StrategyName:
        """Its name in routes, events and the workflow."""
        ...

    @property
    def model_id(self) -> str:
        """The model that writes its answers."""
        ...

    def answer(
        self, question: Question, failed: Sequence[StrategyFailure], *, time_budget_s: float
    ) -> Generator[Step, None, None]:
        """Answer; closing the iterator early stops the model.

        Args:
            question: what was asked.
            failed: the strategies that were tried before for this request.
            time_budget_s: seconds for all of it.

        Raises:
            CicadaError: this strategy cannot answer; the next may.
        """
        ...
