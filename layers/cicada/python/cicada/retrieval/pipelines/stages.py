"""The course of a retrieval: stages in order, each with its time; what fails or is late is left out, and named.

A stage works beside its caller and hands back a *change* of the state. The caller applies it, or, when the stage is
late, does not: so a stage that comes to its end afterwards changes nothing, and needs no locks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from cicada.errors import CicadaError, ModelUnavailable, OutOfTime
from cicada.models.ports import ModelUse, Stopped, Usage
from cicada.retrieval.pipelines.api import SkippedStage, StageName
from cicada.retrieval.pipelines.uses import OpenUse
from cicada.retrieval.ports import UNLIMITED, Limits
from cicada.retrieval.waiting import beside, within

logger = logging.getLogger(__name__)

S = TypeVar("S")


class StageSkipped(Exception):
    """A stage has nothing to work with, or made nothing of use; ``code`` and ``told`` are what the response says."""

    def __init__(self, code: str, told: str) -> None:
        """Name the reason."""
        super().__init__(told)
        self.code = code
        self.told = told


class Allowance:
    """What a stage may take, and where it says what it did without. Thread-safe."""

    def __init__(self, stage: StageName, time_s: float, clock: Callable[[], float], limits: Limits = UNLIMITED) -> None:
        """Allow a stage some seconds from now on, and models within limits; ``clock`` gives monotonic seconds."""
        self._stage = stage
        self._clock = clock
        self._limits = limits
        self._closed = False
        self._deadline_s = clock() + time_s
        self._lock = threading.Lock()
        self._uses: list[OpenUse] = []
        self._accounts: list[ModelUse] = []
        self._lacks: list[SkippedStage] = []

    def time_left_s(self) -> float:
        """Seconds until the stage is late, never negative."""
        return max(0.0, self._deadline_s - self._clock())

    @contextmanager
    def time_for_model(self, share: float = 1.0) -> Iterator[float]:
        """Give a model a share of the seconds left. One that fails when they are over was late, whatever it is called.

        Raises:
            OutOfTime: it was.
        """
        time_s = share * self.time_left_s()
        ends_s = self._clock() + time_s
        try:
            yield time_s
        except ModelUnavailable as error:
            if self._clock() < ends_s:
                raise
            raise OutOfTime(str(error)) from error

    def use(self, purpose: str, model_id: str, most: Usage | None = None) -> OpenUse:
        """Begin to use a model, each of whose calls can take so much; it is stopped when the stage is late."""
        use = OpenUse(purpose, model_id, self._clock, leash=self._limits, most=most)
        with self._lock:
            self._uses.append(use)
            late = self._closed
        if late:
            use.stop()
        return use

    def note(self, uses: Sequence[ModelUse], *, instead_of: OpenUse) -> None:
        """Note what a port says that it used, instead of what could be seen from here."""
        with self._lock:
            self._uses.remove(instead_of)
            self._accounts += uses

    def lacks(self, code: str, told: str) -> None:
        """Say that the stage did without something, and goes on."""
        with self._lock:
            self._lacks.append(SkippedStage(stage=self._stage, code=code, message=told))

    def close(self) -> tuple[list[SkippedStage], list[ModelUse]]:
        """The stage is over: stop what is under way, and return what it lacked and used."""
        with self._lock:
            self._closed = True
            uses, lacks, accounts = list(self._uses), list(self._lacks), list(self._accounts)
        for use in uses:
            use.stop()
        return lacks, [*(use.account() for use in uses), *accounts]


@dataclass(frozen=True)
class Stage(Generic[S]):
    """One step of a pipeline."""

    name: StageName
    share: float
    """Of the whole time budget, how much it may take at most."""
    enabled: Callable[[S], bool]
    run: Callable[[S, Allowance], Callable[[S], S]]
    """Works on the state as the stages before left it, and returns how it changes it."""
    required: bool = False
    """Whether there is no result without it: its failure is that of the whole."""


class Course(Generic[S]):
    """Runs stages, and keeps the account."""

    def __init__(self, time_budget_s: float, clock: Callable[[], float], limits: Limits = UNLIMITED) -> None:
        """Begin.

        Args:
            time_budget_s: for all stages together, at most.
            clock: monotonic seconds.
            limits: what all of it may take.
        """
        self._time_budget_s = min(time_budget_s, limits.time_left_s())
        self._clock = clock
        self._limits = limits
        self._ends_s = clock() + self._time_budget_s
        self._stopped: Future[None] = Future()
        self.timings_ms: dict[str, float] = {}
        """By stage, in the order in which they began."""
        self.degraded: list[SkippedStage] = []
        self.uses: list[tuple[StageName, ModelUse]] = []

    def run(self, plan: Sequence[Sequence[Stage[S]]], state: S) -> S:
        """Run stages one after the other, those of one group side by side, and return the state they leave.

        However it ends, ``uses`` has what models were used for.

        Raises:
            CicadaError: a required stage failed; OutOfTime if it was late.
            Stopped: the limits' stop.
        """
        unhear = self._limits.on_stop(lambda: self._stopped.set_result(None))
        try:
            for group in plan:
                state = self._run_group(group, state)
        finally:
            unhear()
        return state

    def _run_group(self, group: Sequence[Stage[S]], state: S) -> S:
        if self._stopped.done():
            raise Stopped("nobody wants the result any more")
        started = [self._start(stage, state) for stage in group if stage.enabled(state)]
        try:
            while started:
                state = self._finish(started.pop(0), state)
        finally:
            for one in started:
                self._close(one)
        return state

    def _start(self, stage: Stage[S], state: S) -> _Started[S]:
        left_s = max(0.0, self._ends_s - self._clock())
        time_s = min(left_s, stage.share * self._time_budget_s)
        allowance = Allowance(stage.name, time_s, self._clock, self._limits)
        began_s = self._clock()
        change = beside(lambda: stage.run(state, allowance), stage.name) if left_s > 0 else None
        return _Started(stage, allowance, began_s, change)

    def _finish(self, one: _Started[S], state: S) -> S:
        stage = one.stage
        try:
            change = self._change(one)
        except (CicadaError, StageSkipped) as error:
            if stage.required:
                raise
            logger.warning("stage skipped", extra={"stage": stage.name, "code": error.code, "why": str(error)})
            told = "It took longer than it may." if isinstance(error, OutOfTime) else error.told
            self.degraded.append(SkippedStage(stage=stage.name, code=error.code, message=told))
            return state
        return change(state)

    def _change(self, one: _Started[S]) -> Callable[[S], S]:
        """How a stage changes the state; it is over then, one way or another."""
        try:
            if one.change is None:
                raise OutOfTime(f"no time was left for {one.stage.name}")
            return within(one.change, one.allowance.time_left_s(), stopped=self._stopped)
        finally:
            self._close(one)

    def _close(self, one: _Started[S]) -> None:
        lacks, uses = one.allowance.close()
        self.timings_ms[one.stage.name] = round((self._clock() - one.began_s) * 1000, 3)
        self.degraded += lacks
        self.uses += [(one.stage.name, use) for use in uses]


@dataclass(frozen=True)
class _Started(Generic[S]):
    stage: Stage[S]
    allowance: Allowance
    began_s: float
    change: Future[Callable[[S], S]] | None
    """None where no time was left to begin."""
