"""Lambda's twin: invocations as processes that can be killed, paused, throttled, or have a wrong clock."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.simulation.faults import Faults
from tests.simulation.scheduler import Process, Scheduler, Task

MAX_SKEW_S = 300.0
LONGEST_PAUSE_S = 150.0
FATAL_STEPS = (4, 12, 40, 120)
"""A fate is met before a step drawn below one of these: the first steps of an invocation are its most delicate."""


class Failure(Exception):
    """How an invocation failed, by the name that Lambda or the workflow gives it."""

    def __init__(self, error: str, cause: str = "") -> None:
        super().__init__(f"{error}: {cause}")
        self.error = error
        self.cause = cause


class Invocation:
    """One run of a function."""

    __slots__ = ("deadline", "failure", "over", "process", "result", "waiting")

    def __init__(self, process: Process, deadline: float) -> None:
        self.process = process
        self.deadline = deadline
        """When it is killed, on the scheduler's clock."""
        self.over = False
        self.result: Any = None
        self.failure: Failure | None = None
        self.waiting: Task | None = None


class Functions:
    """Runs functions. ``crashed`` hears of errors that no function may end with."""

    def __init__(
        self,
        scheduler: Scheduler,
        faults: Faults,
        processes: list[Process],
        crashed: Callable[[str, BaseException], None],
        tell: Callable[[str, str], None],
    ) -> None:
        self._scheduler = scheduler
        self._faults = faults
        self._processes = processes
        self._crashed = crashed
        self._tell = tell
        self.busy_until = 0.0
        """Until when a paused invocation may still wake."""

    def start(
        self,
        kind: str,
        run: Callable[[Invocation], Any],
        *,
        timeout_s: float,
        may_raise: tuple[type[BaseException], ...],
        about: object = None,
        fragile: bool = True,
    ) -> Invocation:
        """Start an invocation and return at once.

        Args:
            kind: the function.
            run: what it does.
            timeout_s: after which it is killed.
            may_raise: the errors that it may end with.
            about: what it works on.
            fragile: whether it is killed or paused where the faults have that.
        """
        scheduler, faults = self._scheduler, self._faults
        skew_s = faults.between(-MAX_SKEW_S, MAX_SKEW_S) if faults.hit("clock_skewed") else 0.0
        process = Process(f"{kind}-{len(self._processes) + 1}", kind, skew_s=skew_s, about=about)
        self._processes.append(process)
        starts_in_s = faults.between(0.5, 8) if faults.hit("cold_start_slow") else 0.01
        invocation = Invocation(process, scheduler.now + timeout_s)
        if fragile and not faults.off:
            self._doom(process, invocation)

        def body() -> None:
            try:
                self._end(invocation, result=run(invocation))
            except may_raise as error:
                self._end(invocation, failure=Failure(type(error).__name__, str(error)))
            except Exception as error:
                self._crashed(process.name, error)
                self._end(invocation, failure=Failure(type(error).__name__, str(error)))

        scheduler.spawn(process, body, "main", delay_s=starts_in_s)
        scheduler.call_at(invocation.deadline, lambda: self._kill(invocation, "Sandbox.Timedout"))
        return invocation

    def wait(self, invocation: Invocation, timeout_s: float) -> Any:
        """Wait for an invocation's result. Raises Failure; ``States.Timeout`` if it takes longer than this."""
        scheduler = self._scheduler
        deadline = scheduler.now + timeout_s
        while not invocation.over:
            invocation.waiting = scheduler.current
            left_s = deadline - scheduler.now
            if left_s <= 0:
                raise Failure("States.Timeout")
            scheduler.park(left_s)
        if invocation.failure is not None:
            raise invocation.failure
        return invocation.result

    def _doom(self, process: Process, invocation: Invocation) -> None:
        """Draw what will happen to an invocation, and before which of its steps."""
        faults = self._faults
        random = self._scheduler.random
        step = 1 + int(random() * FATAL_STEPS[int(random() * len(FATAL_STEPS))])
        for name, error in (("function_killed", "Lambda.Unknown"), ("function_out_of_memory", "Runtime.OutOfMemory")):
            if faults.drawn(name):
                process.fate_at = step
                process.fate = partial(self._strike, invocation, name, error)
                return
        if faults.drawn("function_paused"):
            pause_s = LONGEST_PAUSE_S * random() ** 2
            # Half of them are not killed by their time-out: a stopped machine is not seen to be late.
            outlives = random() < 0.5

            def pause() -> None:
                faults.note("function_paused")
                self._tell(process.name, f"stands still for {pause_s:.1f} s")
                self._scheduler.freeze(process, pause_s)
                self.busy_until = max(self.busy_until, self._scheduler.now + pause_s)
                if outlives:
                    invocation.deadline += pause_s
                    self._scheduler.call_at(invocation.deadline, lambda: self._kill(invocation, "Sandbox.Timedout"))

            process.fate_at = step
            process.fate = pause

    def _strike(self, invocation: Invocation, name: str, error: str) -> None:
        self._faults.note(name)
        self._kill(invocation, error)

    def _kill(self, invocation: Invocation, error: str) -> None:
        process = invocation.process
        early = error == "Sandbox.Timedout" and self._scheduler.now < invocation.deadline
        if invocation.over or process.dead or early:
            return
        self._tell(process.name, f"dies: {error}")
        self._scheduler.kill(process)
        self._end(invocation, failure=Failure(error))

    def _end(self, invocation: Invocation, *, result: Any = None, failure: Failure | None = None) -> None:
        invocation.over = True
        invocation.result = result
        invocation.failure = failure
        self._tell(invocation.process.name, f"ends: {failure or result}")
        if invocation.waiting is not None:
            self._scheduler.wake(invocation.waiting)
