"""The production port for doing several things at once, over the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TypeVar

from tests.simulation.scheduler import Scheduler, Task

T = TypeVar("T")
R = TypeVar("R")

PREEMPTED_SHARE = 0.1
"""How often a task loses the processor where it takes a lock."""
LONGEST_PREEMPTION_S = 0.02


class SimulatedCondition:
    """A re-entrant lock with notifications, as :class:`threading.Condition` is by default."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._owner: Task | None = None
        self._depth = 0
        self._locking: list[Task] = []
        self._waiting: list[Task] = []

    def __enter__(self) -> bool:
        scheduler = self._scheduler
        task = scheduler.current
        if self._owner is not task:
            if scheduler.random() < PREEMPTED_SHARE:
                scheduler.sleep(scheduler.random() * LONGEST_PREEMPTION_S)
            self._acquire(task)
        self._depth += 1
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._release()

    def wait(self, timeout: float | None = None) -> bool:
        task = self._scheduler.current
        depth, self._depth = self._depth, 0
        self._release()
        self._waiting.append(task)
        try:
            notified = self._scheduler.park(timeout)
        finally:
            if task in self._waiting:
                self._waiting.remove(task)
        self._acquire(task)
        self._depth = depth
        return notified

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        deadline = None if timeout is None else self._scheduler.now + timeout
        while not predicate():
            left = None if deadline is None else deadline - self._scheduler.now
            if left is not None and left <= 0:
                return False
            self.wait(left)
        return True

    def notify_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._scheduler.wake(task)

    def _acquire(self, task: Task) -> None:
        while self._owner is not None and not self._owner.done:
            self._locking.append(task)
            self._scheduler.park()
        self._owner = task

    def _release(self) -> None:
        self._owner = None
        locking, self._locking = self._locking, []
        for task in locking:
            self._scheduler.wake(task)


class _Running:
    def __init__(self, scheduler: Scheduler, task: Task) -> None:
        self._scheduler = scheduler
        self._task = task

    def join(self) -> None:
        self._scheduler.join(self._task)


class SimulatedConcurrency:
    """:class:`cicada.concurrency.Concurrency` by tasks of the caller's process.

    ``crashed`` hears of what was spawned and did not handle its own error.
    """

    def __init__(self, scheduler: Scheduler, crashed: Callable[[str, BaseException], None]) -> None:
        self._scheduler = scheduler
        self._crashed = crashed

    def condition(self) -> SimulatedCondition:
        return SimulatedCondition(self._scheduler)

    def spawn(self, run: Callable[[], None], name: str) -> _Running:
        def guarded() -> None:
            try:
                run()
            except Exception as error:
                self._crashed(name, error)

        return _Running(self._scheduler, self._scheduler.spawn(self._scheduler.current.process, guarded, name))

    def each(self, do: Callable[[T], R], items: Iterable[T]) -> list[R]:
        scheduler = self._scheduler
        listed = list(items)
        results: dict[int, R] = {}

        def one(place: int) -> Callable[[], None]:
            def run() -> None:
                results[place] = do(listed[place])

            return run

        tasks = [
            scheduler.spawn(scheduler.current.process, one(place), f"each-{place}") for place in range(1, len(listed))
        ]
        first_error: BaseException | None = None
        if listed:
            try:
                results[0] = do(listed[0])
            except Exception as error:
                first_error = error
        for task in tasks:
            scheduler.join(task)
        for failure in (first_error, *(task.error for task in tasks)):
            if failure is not None:
                raise failure
        return [results[place] for place in range(len(listed))]
