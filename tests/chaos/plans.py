"""What each asker will do: where its sockets break, whether it leaves, cancels, or asks twice."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

KINDS = ("accepted", "attempt", "sources", "chunk", "fallback", "citations", "complete")
"""The kinds of event at which a socket is dropped."""

LEAVING, CANCELLING = 0.10, 0.08
"""Shares of the askers that leave for good, and that cancel."""

Second = Literal["none", "resumes", "asks"]
SECONDS: tuple[Second, ...] = ("none", "resumes", "asks")


@dataclass(frozen=True)
class Drop:
    """A socket that breaks at the first event of a kind."""

    kind: str
    frame_lost: bool
    """Whether the event itself is lost on the way."""
    offline_s: float
    """How long the asker stays away."""


@dataclass(frozen=True)
class Plan:
    """What one asker does beside asking."""

    drops: tuple[Drop, ...] = ()
    leaves_at: str | None = None
    """The kind of event after which its readers go, and never come back."""
    cancels_after_s: float | None = None
    """How long after the asking it cancels."""
    second: Second = "none"
    """A second tab: that resumes the request, or asks the same at the same time."""


class Planner:
    """Draws plans. Every kind of drop is drawn before any comes again, but for those that are to come next."""

    def __init__(self, rng: random.Random, kinds: Sequence[str] = KINDS) -> None:
        self._rng = rng
        self._kinds = tuple(kinds)
        self._due: list[str] = []

    def draw(self) -> Plan:
        """The next asker's plan."""
        rng = self._rng
        drops = tuple(self._drop() for _ in range(rng.choices((0, 1, 2), (3, 5, 2))[0]))
        fate = rng.random()
        if fate < LEAVING:
            return Plan(drops, leaves_at=rng.choice(("accepted", "attempt", "sources", "chunk")))
        if fate < LEAVING + CANCELLING:
            return Plan(drops, cancels_after_s=rng.uniform(0, 3))
        return Plan(drops, second=rng.choices(SECONDS, (8, 1, 1))[0])

    def draw_next(self, kinds: Sequence[str]) -> None:
        """Draw these kinds of drop next: sockets were to break at them, and no such event came."""
        self._due += kinds

    def _drop(self) -> Drop:
        if not self._due:
            self._due = list(self._kinds)
            self._rng.shuffle(self._due)
        return Drop(self._due.pop(), self._rng.random() < 0.5, self._rng.choice((0.0, 0.3, 1.5)))
