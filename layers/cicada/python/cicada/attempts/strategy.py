"""A way to answer, seen from the attempt that runs it, and what an attempt needs beside it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cicada.agents.ports import ProfileWritten, TheoryVerdict, ToConfirm
from cicada.attempts.budgets import AttemptBudget
from cicada.delivery.record import Question, RequestKey
from cicada.models.ports import TextDelta
from cicada.protocol.events import Citation, Degraded, Reused, Source, Sources, StrategyFailure, StrategyName


@dataclass(frozen=True)
class AskedQuestion:
    """A question, with what is known around it."""

    key: RequestKey
    question: Question
    query: str
    """The question as it can be understood by itself: ``question.query``, or that completed from the conversation."""
    failed: tuple[StrategyFailure, ...] = ()
    """What was tried before for this request, in order."""
    found_before: Callable[[], Sources | None] = lambda: None
    """The latest passages that an earlier attempt at this request had retrieved; reads the log when it is called."""
    at_ms: int = 0
    """When it was asked, in epoch milliseconds."""
    may_write: Callable[[], bool] = lambda: True
    """Whether the attempt may still change what is the user's: the request is open, and no other attempt has begun. A
    consistent read of the request's head. Raises DeliveryUnavailable if that cannot be read."""
    on_change: Callable[[ProfileWritten | ToConfirm], None] = lambda _: None
    """Told what was changed for the user, or waits for their confirmation: they hear of it whatever becomes of the
    attempt."""
    in_own_words: bool = False
    """Where ``query`` was completed: every telling word of it is the asker's, so that it counts as said by them."""


@dataclass(frozen=True)
class Retrieved:
    """The passages that the prompt will number: the best of those found."""

    sources: tuple[Source, ...]
    found: int
    """How many were found, of which the prompt takes the best."""
    index_version: str
    searched: int = 0
    """Passages that were ranked."""
    engine: str = "shards"
    """What searched, see :class:`cicada.retrieval.ports.SearchResult`; ``cache`` where earlier answers alone did."""
    degraded: tuple[Degraded, ...] = ()
    """What the search had to do without."""
    retrieval_ms: int | None = None
    """Of the search; None where there was none."""
    cache_ms: int | None = None
    """Of the look-up in the semantic cache; None where there was none."""
    reused: Reused | None = None
    """The earlier answer that this one makes use of."""
    offered: bool = False
    """Found by an attempt that failed: shown, but not what the answer rests on."""


@dataclass(frozen=True)
class Answered:
    """The answer is whole; always the last step."""

    stop_reason: str
    model_id: str
    """Who wrote the text: of a replayed answer, who wrote it then."""
    citations: tuple[Citation, ...] | None = None
    """Every marker of the text, checked; None where nothing was retrieved to cite."""
    not_attributed: tuple[int, ...] = ()
    """The numbers of all sources, where the text has no marker to say which of them it rests on."""
    changes: int | None = None
    """Changes of the user's profiles that the answer made or waits to have confirmed; None where it could make none."""

    verdict: TheoryVerdict | None = None
    """On the theory of the question, where there is one."""

    @property
    def grounded(self) -> bool:
        """Whether the answer rests on a retrieved passage: a marker names one, and nothing is found against it."""
        return any(citation.verdict != "unverified" for citation in self.citations or ())

    @property
    def passages_cited(self) -> int:
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
    def needs(self) -> tuple[str, ...]:
        """The dependencies without which it cannot answer, by the names of their circuit breakers."""
        ...

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """Answer; closing the iterator early stops the model.

        Raises:
            CicadaError: this strategy cannot answer; the next may.
            Stopped: nobody wants the answer any more.
        """
        ...


@dataclass(frozen=True)
class AnswerGiven:
    """An answer that is complete, for those who keep it: the conversation, and the semantic cache."""

    asked: AskedQuestion
    strategy: StrategyName
    text: str
    retrieved: Retrieved | None
    answered: Answered
    at_ms: int


class Completed(Protocol):
    """A question as it can be understood by itself."""

    @property
    def query(self) -> str:
        """The question, completed where it leant on the conversation."""
        ...

    @property
    def degraded(self) -> Degraded | None:
        """What is to be said of it, if it could not be completed as it should."""
        ...

    @property
    def in_own_words(self) -> bool:
        """Of a completed question: whether every telling word is the asker's, and none comes from an answer."""
        ...


class Completing(Protocol):
    """Completes questions from the conversation that they stand in."""

    def complete(self, question: Question, subject: str, attempt_budget: AttemptBudget) -> Completed:
        """Complete a question. Raises Stopped alone: what fails is told by ``degraded``."""
        ...


class Checking(Protocol):
    """Knows which dependencies are down."""

    def check(self, names: Sequence[str]) -> None:
        """Raise DependencyDown if one of them is."""
        ...


class AnswerSink(Protocol):
    """Keeps answers after their terminal event is out."""

    def keep(self, given: AnswerGiven) -> None:
        """Keep what is worth keeping. What it raises is logged, and the answer stands."""
        ...
