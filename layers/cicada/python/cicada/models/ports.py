"""What answering needs of a model, in the domain's words."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
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
    """False if the service did not say, or not of every call that may have been paid for: the counts are too low."""
    queries: int = 0
    """Of a re-ranking model, which is paid by the query: see :func:`cicada.models.prices.queries`."""

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
"""The fault of a use of a model that was given up because nobody wanted its answer any more."""


class Stopped(Exception):
    """The call was given up because nobody wants its answer any more."""


class CallScope(Protocol):
    """What holds a call: how many more may be made, and whether anybody still wants the answer."""

    def call(self) -> None:
        """One more call goes out, a retry or not. Raises BudgetSpent if none is left."""

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have ``wake`` called when the answer is not wanted any more, from any thread; at once if that is so already.

        Returns what takes ``wake`` off again. ``wake`` is quick and raises nothing.
        """


class TokenBudget(CallScope, Protocol):
    """A call scope that bounds what its calls take, too."""

    def allow(self, model_id: str, most: Usage) -> None:
        """Set aside what a call that is about to go out can take. Raises BudgetSpent if that is more than is left."""


class Unbounded:
    """A :class:`TokenBudget` that holds nothing back."""

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

        Closing the iterator early, and the call scope's stop, close the connection to the service within a second.

        Args:
            time_budget_s: seconds for the whole call, retries before the first piece included.
            call_scope: asked before every call to the service, retries included.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: before the first piece.
            StreamBroken: the stream ended without its ``messageStop``, in whatever form.
            AnswerIncomplete: it stopped for another reason than a normal finish; the subclass says for which. Its
                ``usage`` is what the service reported.
            BudgetSpent: no call is left for the first try. A further try that may not be made is not made, and the
                failure of the last one is raised.
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
        """Return one vector of unit length a text, in order.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: when the time budget is spent, or at once if final.
        """


@dataclass(frozen=True)
class ModelUse:
    """What one use of a model took, retries included: for those who account for it."""

    purpose: str
    """What for, in a word or two with underscores, such as ``expand_query``."""
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
    """Of all calls that it took; reported only if what each of them took is known."""
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
        """Have the model fill in a form.

        An answer that does not fit the form is asked for once more, with what is wrong with it.

        Args:
            form: a pydantic model; its docstring and its fields' descriptions are part of what the model is told.
            call_scope: asked before every call.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: as their names say.
            AnswerIncomplete: it stopped for another reason than a normal finish; AnswerMalformed if twice what it gave
                does not fit the form. ``usage`` is what was reported.
            BudgetSpent: no call is left for the first try.
            Stopped: the call scope's stop.
        """


class Reranker(Protocol):
    """A model that judges how well texts answer a query, reading both together."""

    @property
    def model_id(self) -> str:
        """The service's id of the model."""

    def rerank(self, query: str, texts: Sequence[str], *, time_budget_s: float, call_scope: TokenBudget) -> Reranked:
        """Score every text.

        Args:
            call_scope: asked before every call, and for what it can take.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused, AnswerIncomplete: there are no scores, not for one text.
            BudgetSpent: nor may a call be made for one.
            Stopped: the call scope's stop.
        """


@dataclass(frozen=True)
class Reranked:
    """A relevance in [0, 1] a text, in the order of the texts."""

    scores: tuple[float, ...]
    uses: tuple[ModelUse, ...]
    unscored: tuple[int, ...] = ()
    """The places of texts that could not be judged although others were: their score is 0, and says nothing."""
