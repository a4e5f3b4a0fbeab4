"""What answering needs of a model, in the domain's words."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, as the service reported them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0


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


class TextModel(Protocol):
    """A model that writes text."""

    @property
    def model_id(self) -> str:
        """The service's id of the model."""
        ...

    def stream(self, prompt: Prompt, *, time_budget_s: float) -> Generator[TextDelta | Finished, None, None]:
        """Write an answer piece by piece; the last item is one :class:`Finished`.

        Closing the iterator early releases the connection.

        Args:
            prompt: what to answer.
            time_budget_s: seconds for the whole call, retries before the first piece included.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: before the first piece.
            StreamBroken: the stream ended without its ``messageStop``, in whatever form.
            AnswerIncomplete: it stopped for another reason than a normal finish.
        """
        ...


class Embedder(Protocol):
    """A model that turns texts into vectors."""

    @property
    def model_id(self) -> str:
        """The service's id of the model: vectors of two models are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        ...

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """Return one vector of unit length a text, in order.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused: when the time budget is spent, or at once if final.
        """
        ...
