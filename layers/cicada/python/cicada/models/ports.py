"""The ports of models: generation, structured output, embedding, re-ranking, and what bounds their calls."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

Form = TypeVar("Form", bound=BaseModel)


@dataclass(frozen=True)
class Usage:
    """Tokens, as the service reported them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    reported: bool = True
    """False if the counts lack a call that may have been paid for."""
    queries: int = 0
    """Of a re-ranking model, charged by the query: see :func:`cicada.models.prices.queries`."""

    def __add__(self, other: Usage) -> Usage:
        """Both together; reported only if both are."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.reported and other.reported,
            self.queries + other.queries,
        )


@dataclass(frozen=True)
class Prompt:
    """One question to a model: instructions, and the user's turn."""

    system: str
    user: str
    checked: str = ""
    """The part of ``user`` that a guardrail checks, such as the question; all of it where none is named."""
    sources: str = ""
    """The part of ``user`` that the answer is to rest on."""

    def parts(self, named: Iterable[str]) -> tuple[str, ...]:
        """``user``, cut around the last of each named part; together they are ``user`` again."""
        cuts = {0, len(self.user)}
        for part in named:
            begin = self.user.rfind(part)
            if begin >= 0:
                cuts |= {begin, begin + len(part)}
        places = sorted(cuts)
        return tuple(self.user[begin:end] for begin, end in pairwise(places))


@dataclass(frozen=True)
class TextDelta:
    """The next piece of the answer, never empty."""

    text: str


@dataclass(frozen=True)
class Finished:
    """The normal end of a stream: ``messageStop`` arrived with ``end_turn`` or ``stop_sequence``."""

    stop_reason: str
    usage: Usage


STOPPED = "stopped"
"""The fault of a stopped use of a model."""


class Stopped(Exception):
    """The call was stopped because its answer is not wanted any more."""

    def __init__(self, message: str = "the answer is not wanted any more") -> None:
        super().__init__(message)


class CallScope(Protocol):
    """Bounds calls by their number, and stops them when the answer is not wanted any more."""

    def call(self) -> None:
        """Reserve one call, a retry or not. Raises BudgetSpent if none is left."""

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake``, which is quick and raises nothing, on the stop, from any thread; at once after the stop.

        Returns a function that unregisters ``wake``.
        """


class TokenBudget(CallScope, Protocol):
    """A call scope that also bounds tokens and cost."""

    def allow(self, model_id: str, most: Usage) -> None:
        """Reserve what the next call can take. Raises BudgetSpent if less is left."""


class Unbounded:
    """A :class:`TokenBudget` without bounds."""

    def call(self) -> None:
        """See the port."""

    def allow(self, model_id: str, most: Usage) -> None:
        """See the port."""

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002 - it never stops
        """See the port."""
        return lambda: None


class CountedCallScope:
    """A :class:`CallScope` that counts the calls that go out."""

    def __init__(self, call_scope: CallScope) -> None:
        self._call_scope = call_scope
        self.calls = 0

    def call(self) -> None:
        """See the port."""
        self._call_scope.call()
        self.calls += 1

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """See the port."""
        return self._call_scope.on_stop(wake)


class TextModel(Protocol):
    """A model that writes text."""

    @property
    def model_id(self) -> str:
        """The service's id of the model."""

    @property
    def max_tokens(self) -> int:
        """The longest answer."""

    def stream(
        self, prompt: Prompt, *, time_budget_s: float, call_scope: CallScope
    ) -> Generator[TextDelta | Finished, None, None]:
        """Write an answer piece by piece; the last item is one :class:`Finished`.

        Closing the iterator early, and the call scope's stop, close the connection to the service within a second. The
        time budget includes retries before the first piece; the call scope is asked before every call.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: before the first piece.
            StreamBroken: the stream ended without its stop, or outlasted the budget.
            AnswerIncomplete: the stop was not a normal finish; ``str(error)`` is the reason.
            BudgetSpent: no call is left for the first try. Without budget for a retry, the last failure is raised.
            Stopped: the call scope's stop.
        """


class Embedder(Protocol):
    """A model that turns texts into vectors."""

    @property
    def model_id(self) -> str:
        """The service's id of the model: vectors of two models are never compared."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """Return one unit vector a text, in order. Raises ModelBusy, ModelUnavailable or ModelRefused."""


@dataclass(frozen=True)
class ModelUse:
    """What one use of a model took, retries included."""

    purpose: str
    """Such as ``expand_query``."""
    model_id: str
    calls: int
    """Requests that went out."""
    usage: Usage
    took_ms: int
    fault: str | None = None
    """The code of the error that ended it, if one did."""


@dataclass(frozen=True)
class Filled(Generic[Form]):
    """A form that a model filled in, valid."""

    value: Form
    usage: Usage
    """Of all its calls; reported only if the usage of each is known."""
    calls: int


class StructuredModel(Protocol):
    """A model that fills in forms: its answer is an object of a given schema."""

    @property
    def model_id(self) -> str:
        """The service's id of the model."""

    @property
    def max_tokens(self) -> int:
        """The longest answer."""

    def fill(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, call_scope: CallScope) -> Filled[Form]:
        """Have the model fill in a form; an answer that does not fit is corrected once.

        The model is sent the form's docstring and its fields' descriptions. The call scope is asked before every call.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: the call failed.
            AnswerIncomplete: not a normal finish; AnswerMalformed if the second answer does not fit either.
            BudgetSpent: no call is left for the first try.
            Stopped: the call scope's stop.
        """


class Reranker(Protocol):
    """A model that judges how well texts answer a query, reading both together."""

    @property
    def model_id(self) -> str:
        """The service's id of the model."""

    def rerank(self, query: str, texts: Sequence[str], *, time_budget_s: float, call_scope: TokenBudget) -> Reranked:
        """Score every text. The call scope is asked before every call, and for what it can take.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused, AnswerIncomplete, BudgetSpent: no text has a score.
            Stopped: the call scope's stop.
        """


@dataclass(frozen=True)
class Reranked:
    """A relevance in [0, 1] a text, in the order of the texts."""

    scores: tuple[float, ...]
    uses: tuple[ModelUse, ...]
    unscored: tuple[int, ...] = ()
    """The places of texts that could not be judged; their score of 0 means nothing."""
