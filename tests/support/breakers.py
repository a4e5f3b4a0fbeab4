"""Circuit breakers for tests: an in-memory twin of their store, a clock, and work that is done when a test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from cicada.breakers.decide import Breaker
from cicada.breakers.ports import BreakerStore, Overtaken
from cicada.breakers.registry import BreakerRegistry

T = TypeVar("T")
R = TypeVar("R")


class InMemoryBreakers:
    """A :class:`cicada.breakers.ports.BreakerStore`. ``before`` and ``after`` may raise, to cause faults."""

    def __init__(self) -> None:
        self.breakers: dict[str, Breaker] = {}
        self.before: Callable[[str], None] = lambda operation: None
        self.after: Callable[[str], None] = lambda operation: None
        self.calls: list[str] = []
        self._lock = threading.Lock()

    def read(self) -> Mapping[str, Breaker]:
        self._enter("read")
        return dict(self.breakers)

    def swap(self, name: str, old: Breaker, new: Breaker) -> None:
        self._enter("swap")
        with self._lock:
            stands = self.breakers.get(name, Breaker())
            if stands.revision != old.revision:
                raise Overtaken(stands)
            self.breakers[name] = new
        self.after("swap")

    def _enter(self, operation: str) -> None:
        self.calls.append(operation)
        self.before(operation)


class Beside:
    """A :class:`cicada.concurrency.Concurrency` whose spawned work is done when the test says so."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.at_once = at_once
        self.waiting: list[Callable[[], None]] = []

    def condition(self) -> threading.Condition:
        return threading.Condition()

    def spawn(self, run: Callable[[], None], name: str) -> Started:
        if self.at_once:
            run()
        else:
            self.waiting.append(run)
        return Started()

    def each(self, do: Callable[[T], R], items: Iterable[T]) -> list[R]:
        return [do(item) for item in items]

    def catch_up(self) -> None:
        waiting, self.waiting = self.waiting, []
        for run in waiting:
            run()


class Started:
    """What was started beside."""

    def join(self) -> None:
        """It is not waited for."""


class Clock:
    """Epoch seconds that pass when the test says so."""

    def __init__(self, now_s: float = 1_800_000_000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s

    def pass_s(self, seconds: float) -> None:
        self.now_s += seconds


def board(store: BreakerStore, clock: Clock, worker_id: str = "w1", **changes: Any) -> BreakerRegistry:
    """A worker's breakers, without jitter, that read their view at once when they do."""
    values: dict[str, Any] = {"concurrency": Beside(), "now_s": clock, "share": lambda: 0.0}
    return BreakerRegistry(store, worker_id=worker_id, **(values | changes))
