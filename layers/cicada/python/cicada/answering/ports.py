"""What an attempt needs beside its strategy, seen from the attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cicada.answering.spending import Spending
from cicada.answering.strategy import AnswerGiven
from cicada.delivery.record import Question
from cicada.protocol.events import Degraded


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

    def complete(self, question: Question, subject: str, spending: Spending) -> Completed:
        """Complete a question. Raises Stopped alone: what fails is told by ``degraded``."""
        ...


class Checking(Protocol):
    """Knows which dependencies are down."""

    def check(self, names: Sequence[str]) -> None:
        """Raise DependencyDown if one of them is."""
        ...


class Keeper(Protocol):
    """Keeps answers after their terminal event is out."""

    def keep(self, given: AnswerGiven) -> None:
        """Keep what is worth keeping. What it raises is logged, and the answer stands."""
        ...
