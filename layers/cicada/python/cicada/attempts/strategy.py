"""The contract between an attempt and its strategy, and the ports that an attempt needs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cicada.agents.ports import ProfileWritten, TheoryVerdict, ToConfirm
from cicada.attempts.budgets import AttemptBudget
from cicada.corpus.passages import NoteLocator
from cicada.delivery.record import Question, RequestKey, Standalone
from cicada.models.ports import TextDelta
from cicada.protocol.events import Citation, Degraded, Reused, Source, Sources, StrategyFailure, StrategyName
from cicada.rights import Readable


@dataclass(frozen=True)
class AskedQuestion:
    """A question and its context."""

    key: RequestKey
    question: Question
    query: str
    """The standalone question: ``question.query``, or its completion from the conversation."""
    failed: tuple[StrategyFailure, ...] = ()
    """The earlier attempts at this request, in order."""
    found_before: Callable[[], Sources | None] = lambda: None
    """Reads the log for the latest passages that an earlier attempt retrieved."""
    at_ms: int = 0
    """When it was asked, in epoch milliseconds."""
    may_write: Callable[[], bool] = lambda: True
    """Whether the attempt may still change the user's data: the request is open and no other attempt has begun. Makes a
    consistent read of the request's head; raises DeliveryUnavailable if that fails."""
    on_change: Callable[[ProfileWritten | ToConfirm], None] = lambda _: None
    """Called for every change, and for every change that waits for the user's confirmation: the user is notified even
    if the attempt fails."""
    readable: Callable[[], Readable] = field(kw_only=True)
    """What the asker may read, by the rules at the first call of this attempt. Raises IndexUnavailable or IndexCorrupt
    if the rules cannot be read."""
    in_own_words: bool = False
    """See :class:`cicada.delivery.record.Standalone`; such a completion counts as said by the asker."""
    rests_on: tuple[str, ...] | None = ()
    """The collections that ``query`` was completed from: see :class:`cicada.delivery.record.Standalone`."""


@dataclass(frozen=True)
class Retrieved:
    """The passages that the prompt will number: the best of those found."""

    sources: tuple[Source, ...]
    found: int
    """How many were found; the prompt takes the best."""
    index_version: str
    searched: int = 0
    """Passages that were ranked."""
    engine: str = "shards"
    """See :class:`cicada.retrieval.ports.SearchResult`; ``cache`` if only earlier answers were searched."""
    degraded: tuple[Degraded, ...] = ()
    """What the search had to do without."""
    retrieval_ms: int | None = None
    """Duration of the search; None if there was none."""
    cache_ms: int | None = None
    """Duration of the cache lookup; None if there was none."""
    reused: Reused | None = None
    """The earlier answer that this one uses."""
    offered: bool = False
    """Whether a failed attempt found them: they are shown, but the answer does not rest on them."""


@dataclass(frozen=True)
class Answered:
    """The answer is complete; always the last step."""

    stop_reason: str
    model_id: str
    """The model that wrote the text, also of a replayed answer."""
    citations: tuple[Citation, ...] | None = None
    """Every marker of the text, checked; None if nothing was retrieved."""
    not_attributed: tuple[int, ...] = ()
    """The numbers of all sources, if the text has no citation marker."""
    changes: int | None = None
    """Profile changes that were made or wait for confirmation; None if the answer could make none."""
    verdict: TheoryVerdict | None = None
    """On the theory that the question is about, if any."""

    @property
    def grounded(self) -> bool:
        """Whether at least one citation marker names a passage and was not found wrong."""
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
        """The circuit breakers of the dependencies without which it cannot answer."""
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
    """A complete answer, as the sinks get it: the conversation and the semantic cache."""

    asked: AskedQuestion
    strategy: StrategyName
    text: str
    retrieved: Retrieved | None
    answered: Answered
    at_ms: int


class QuestionCompleter(Protocol):
    """Completes questions from their conversation."""

    def complete(
        self, question: Question, subject: str, readable: Callable[[], Readable], attempt_budget: AttemptBudget
    ) -> Standalone:
        """Complete a question. Raises only Stopped and AnswerBlocked: other failures are in ``degraded``."""
        ...


class QuestionChecker(Protocol):
    """Knows the names that a question can be limited to."""

    def check(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> tuple[Degraded, ...]:
        """What to tell of the question's unknown names.

        Raises CollectionUnknown or EpisodeUnknown if all of a kind are unknown, IndexUnavailable if the asker's rights
        are.
        """
        ...


class DependencyChecker(Protocol):
    """Knows which dependencies are down."""

    def check(self, names: Sequence[str]) -> None:
        """Raise DependencyDown if one of them is down."""
        ...


def collections_of(sources: Iterable[Source]) -> tuple[str, ...]:
    """The corpus's collections that sources are from, sorted. Notes in a profile are of none."""
    return tuple(sorted({one.collection for one in sources if not isinstance(one.locator, NoteLocator)}))


class AnswerSink(Protocol):
    """Stores answers after their terminal event was delivered."""

    def keep(self, given: AnswerGiven) -> None:
        """Store an answer if it is worth keeping. An exception is logged and does not affect the answer."""
        ...
