"""Processes and tasks in virtual time, on one thread: who runs next follows from the seed alone.

Production code is synchronous, so each task is a greenlet: a call that would wait (a service, a sleep, a condition)
switches to the scheduler, which goes on with whatever is due first. Between two switches nothing else runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

NEVER = math.inf


class Killed(BaseException):
    """Unwinds a task of a process that was killed. Every switch in it raises this again: it has no effects any more."""


class Process:
    """Tasks that share a memory, a wall clock and a fate: an invocation of a function, above all."""

    __slots__ = (
        "about",
        "dead",
        "fate",
        "fate_at",
        "frozen_until",
        "kind",
        "name",
        "on_death",
        "skew_s",
        "steps",
        "tasks",
    )

    def __init__(self, name: str, kind: str, *, skew_s: float = 0.0, about: object = None) -> None:
        self.name = name
        self.kind = kind
        self.about = about
        """What it works on."""
        self.skew_s = skew_s
        """By how much its wall clock is fast."""
        self.tasks: list[Task] = []
        self.dead = False
        self.frozen_until = 0.0
        self.steps = 0
        self.fate_at: float = NEVER
        """The step before which ``fate`` is met."""
        self.fate: Callable[[], None] = lambda: None
        self.on_death: list[Callable[[], None]] = []


class Task:
    """One line of execution; or, with a ``callback``, only a moment at which that is called."""

    __slots__ = ("callback", "done", "error", "greenlet", "joiners", "name", "process", "token")

    def __init__(self, process: Process, name: str) -> None:
        self.process = process
        self.name = name
        self.greenlet: greenlet | None = None
        self.callback: Callable[[], None] | None = None
        self.done = False
        self.error: BaseException | None = None
        self.token = 0
        """Entries of the schedule under an older token are void."""
        self.joiners: list[Task] = []


class Scheduler:
    """Runs tasks in the order of their times; what is due at the same time, in random order."""

    def __init__(self, random: Random) -> None:
        self.now = 0.0
        """Seconds since the world began."""
        self.switches = 0
        self.random = random.random
        self.main = getcurrent()
        self.current = self.outside = Task(Process("outside", "world"), "outside")
        """Whose turn it is; ``outside`` where no task runs."""
        self.halted = False
        """Set to stop everything at once."""
        self._until = 0.0
        self._order = 0
        self._heap: list[tuple[float, float, int, Task, int]] = []

    # --- for tasks ---

    def sleep(self, seconds: float) -> None:
        """Let so much time pass for the current task."""
        task = self.current
        process = task.process
        if process.dead:
            raise Killed
        due = self.now + seconds
        process.steps += 1
        heap = self._heap
        if (
            process.steps < process.fate_at
            and (not heap or heap[0][0] > due)
            and due <= self._until
            and process.frozen_until <= due
            and not self.halted
        ):
            self.now = due  # nobody else is due before
            return
        task.token += 1
        self._push(due, task)
        self.main.switch()

    def park(self, timeout: float | None = None) -> bool:
        """Wait until another task wakes this one. Returns whether it did, within ``timeout`` seconds."""
        task = self.current
        process = task.process
        if process.dead:
            raise Killed
        process.steps += 1
        task.token += 1
        if timeout is not None:
            self._push(self.now + max(0.0, timeout), task)
        return bool(self.main.switch())

    # --- for whoever ---

    def wake(self, task: Task) -> None:
        """End a task's :meth:`park` or sleep now."""
        if not task.done and task.greenlet:
            task.token += 1
            self._push(self.now, task, woken=True)

    def spawn(self, process: Process, run: Callable[[], None], name: str, *, delay_s: float = 0.0) -> Task:
        """Start a task. An exception that leaves ``run`` is kept as the task's error."""
        task = Task(process, name)

        def body(_: object = None) -> None:
            try:
                if not process.dead:
                    run()
            except Killed:
                pass
            except BaseException as error:
                task.error = error
            task.done = True
            for joiner in task.joiners:
                self.wake(joiner)

        task.greenlet = greenlet(body, self.main)
        process.tasks.append(task)
        task.token += 1
        self._push(self.now + delay_s, task)
        return task

    def call_at(self, due: float, callback: Callable[[], None]) -> None:
        """Call something at a time, outside of every task: it must not wait."""
        task = Task(self.outside.process, "timer")
        task.callback = callback
        self._push(due, task)

    def join(self, task: Task) -> None:
        """Wait until a task has ended."""
        while not task.done:
            task.joiners.append(self.current)
            self.park()

    def kill(self, process: Process) -> None:
        """End a process at once: none of its code has any effect from now on."""
        if process.dead:
            return
        process.dead = True
        before = self.current
        for task in process.tasks:
            if task is before:
                continue  # unwinds at its next switch
            self._unwind(task)
        self.current = before
        for tell in process.on_death:
            tell()

    def freeze(self, process: Process, seconds: float) -> None:
        """Let a process stand still for so long, its timers with it."""
        process.frozen_until = max(process.frozen_until, self.now + seconds)

    def run(self, until: float) -> None:
        """Run what is due until then."""
        self._until = until
        heap = self._heap
        while heap and heap[0][0] <= until and not self.halted:
            due, _, _, task, token = heappop(heap)
            if task.done or abs(token) != task.token:
                continue
            process = task.process
            if process.dead:
                continue
            self.now = max(self.now, due)
            if task.callback is not None:
                task.callback()
                continue
            if process.frozen_until > self.now:
                self._push(process.frozen_until, task, woken=token < 0)
                continue
            if process.steps >= process.fate_at:
                process.fate_at = NEVER
                process.fate()
                if process.dead:
                    continue
                if process.frozen_until > self.now:
                    self._push(process.frozen_until, task, woken=token < 0)
                    continue
            if task.greenlet is None:
                continue
            self.current = task
            self.switches += 1
            task.greenlet.switch(token < 0)
            self.current = self.outside
        if not self.halted:
            self.now = max(self.now, until)

    def end(self, processes: list[Process]) -> None:
        """Unwind all that is left, so that no greenlet outlives its world."""
        for process in processes:
            process.on_death.clear()
            self.kill(process)
        self._heap.clear()

    def _unwind(self, task: Task) -> None:
        body = task.greenlet
        if task.done:
            return
        task.token += 1
        if body:  # has begun
            body.parent = getcurrent()
            self.current = task
            body.throw(Killed)
        task.done = True
        task.greenlet = None

    def _push(self, due: float, task: Task, *, woken: bool = False) -> None:
        self._order += 1
        heappush(self._heap, (due, self.random(), self._order, task, -task.token if woken else task.token))
