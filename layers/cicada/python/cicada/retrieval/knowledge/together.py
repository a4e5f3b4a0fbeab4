"""Two calls to models side by side, of which both must succeed: the first failure stops the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cicada.concurrency import Concurrency
from cicada.models.ports import ModelUse, Stopped, Usage
from cicada.models.stopping import Stoppable
from cicada.retrieval.ports import Limits

R = TypeVar("R")
S = TypeVar("S")


class StoppableLimits(Stoppable):
    """:class:`cicada.retrieval.ports.Limits` within others', with less time, that can be stopped by themselves.

    As a context they hear the others' stop. Thread-safe.
    """

    def __init__(self, limits: Limits, time_s: float, clock: Callable[[], float]) -> None:
        """Take the limits that hold, the seconds from now on at most, and a clock of monotonic seconds."""
        super().__init__()
        self._limits = limits
        self._clock = clock
        self._ends_s = clock() + time_s
        self._unhear: Callable[[], None] = lambda: None

    def __enter__(self) -> StoppableLimits:
        self._unhear = self._limits.on_stop(self.stop)
        return self

    def __exit__(self, *raised: object) -> None:
        self._unhear()

    def time_left_s(self) -> float:
        """See the port."""
        return max(0.0, min(self._ends_s - self._clock(), self._limits.time_left_s()))

    def call(self) -> None:
        """See the port. Raises Stopped after :meth:`stop`."""
        if self.stopped:
            raise Stopped("nobody wants the result any more")
        self._limits.call()

    def allow(self, model_id: str, most: Usage) -> None:
        """See the port."""
        self._limits.allow(model_id, most)

    def note(self, use: ModelUse) -> None:
        """See the port."""
        self._limits.note(use)


def both(
    one: Callable[[Limits], R], other: Callable[[Limits], S], limits: StoppableLimits, concurrency: Concurrency
) -> tuple[R, S]:
    """Do two things at the same time, and return what both give.

    As soon as one fails the limits are stopped, and with them whatever the other has under way; its use is accounted
    for before the failure is raised.

    Raises:
        Exception: the first failure, whatever it is.
    """
    failures: list[BaseException] = []
    ones: list[R] = []
    others: list[S] = []

    def run(do: Callable[[], None]) -> None:
        try:
            do()
        except BaseException as error:  # the other must not go on, whatever it is
            failures.append(error)
            limits.stop()

    concurrency.each(run, [lambda: ones.append(one(limits)), lambda: others.append(other(limits))])
    if failures:
        raise failures[0]
    return ones[0], others[0]
