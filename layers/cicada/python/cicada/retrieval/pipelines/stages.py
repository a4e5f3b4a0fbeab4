"""Run a retrieval's stages in order, each with its time and model calls; skip stages that fail or are late.

A stage runs on a thread of its own and returns a *change* of the state. The caller applies it unless the stage is late:
so a late stage changes nothing, and needs no locks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, TypeVar

from cicada.errors import CicadaError, ModelError, ModelUnavailable, OutOfTime, raise_final
from cicada.models.ports import ModelUse, Prompt, Stopped, TokenBudget, Unbounded, Usage
from cicada.models.prices import cost
from cicada.models.stopping import Stoppable
from cicada.retrieval.background import run_in_background, wait_for
from cicada.retrieval.pipelines.api import SkippedStage, StageName, StageUse
from cicada.retrieval.ports import UNLIMITED, SearchLimits
from cicada.text.tokens import estimated_tokens

_UNHELD = Unbounded()


class OpenUse(Stoppable):
    """One use of a model under way: a :class:`cicada.models.ports.TokenBudget` with an account at any time.

    As a context it listens for its call scope's stop, and notes how the use ends. A stop ends the call under way and
    refuses further ones. Thread-safe.
    """

    def __init__(
        self,
        purpose: str,
        model_id: str,
        clock: Callable[[], float],
        *,
        call_scope: TokenBudget = _UNHELD,
        most: Usage | None = None,
    ) -> None:
        """``call_scope`` bounds this use; ``most`` is what each of its calls can take, if known."""
        super().__init__()
        self._purpose = purpose
        self._model_id = model_id
        self._clock = clock
        self._call_scope = call_scope
        self._most = most
        self._began_s = clock()
        self._lock = threading.Lock()
        self._unregister: Callable[[], None] = lambda: None
        self._calls = 0
        self._usage = Usage(reported=False)
        self._fault: str | None = OutOfTime.code  # of a use still under way at its account
        self._took_s: float | None = None

    def __enter__(self) -> OpenUse:
        self._unregister = self._call_scope.on_stop(self.stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unregister()
        with self._lock:
            self._took_s = self._clock() - self._began_s
            if error is None:
                self._fault = None
            elif isinstance(error, CicadaError):
                self._fault = error.code
                if isinstance(error, ModelError) and error.usage is not None:
                    self._usage = error.usage

    def call(self) -> None:
        """See the port. Raises Stopped after :meth:`stop`."""
        if self._most is not None:
            self._call_scope.allow(self._model_id, self._most)
        self._call_scope.call()
        with self._lock:
            if self.stopped:
                raise Stopped
            self._calls += 1

    def allow(self, model_id: str, most: Usage) -> None:
        """See the port."""
        self._call_scope.allow(model_id, most)

    def took(self, usage: Usage) -> None:
        """Note what the service reported."""
        with self._lock:
            self._usage = usage

    def account(self) -> ModelUse:
        """What it took so far; ``out_of_time`` is the fault of one that has not ended."""
        with self._lock:
            took_s = self._clock() - self._began_s if self._took_s is None else self._took_s
            took_ms = round(took_s * 1000)
            return ModelUse(self._purpose, self._model_id, self._calls, self._usage, took_ms, self._fault)


def most_of(prompt: Prompt, max_tokens: int) -> Usage:
    """What a call can take, by an estimate of its prompt's tokens and its longest answer."""
    return Usage(estimated_tokens(prompt.system) + estimated_tokens(prompt.user), max_tokens)


def usd_of(use: ModelUse) -> float | None:
    """What a use cost; None for an unknown price or unreported usage."""
    if not use.calls:
        return 0.0
    price = cost(use.model_id, use.usage) if use.usage.reported else None
    return None if price is None else price.usd


def stage_uses(uses: Iterable[tuple[str, ModelUse]]) -> tuple[StageUse, ...]:
    """The uses of each stage and model, added up, in the order in which they began."""
    grouped: dict[tuple[str, str], list[ModelUse]] = {}
    for stage, use in uses:
        grouped.setdefault((stage, use.model_id), []).append(use)
    return tuple(_added_up(stage, model_id, made) for (stage, model_id), made in grouped.items())


def _added_up(stage: str, model_id: str, uses: list[ModelUse]) -> StageUse:
    usd = [usd_of(use) for use in uses]
    known = [one for one in usd if one is not None]
    return StageUse(
        stage=stage,
        model_id=model_id,
        calls=sum(use.calls for use in uses),
        input_tokens=sum(use.usage.input_tokens + use.usage.cache_read_tokens for use in uses),
        output_tokens=sum(use.usage.output_tokens for use in uses),
        cost_usd=sum(known) if len(known) == len(usd) else None,
    )


logger = logging.getLogger(__name__)

S = TypeVar("S")


class StageSkipped(Exception):
    """A stage had no input or no usable output; the response has ``code`` and ``told``."""

    def __init__(self, code: str, told: str) -> None:
        super().__init__(told)
        self.code = code
        self.told = told


class StageBudget:
    """A stage's time and model uses, and its notes of what it lacked. Thread-safe."""

    def __init__(
        self, stage: StageName, time_s: float, clock: Callable[[], float], limits: SearchLimits = UNLIMITED
    ) -> None:
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
        """A share of the seconds left for a model; its failure after that is raised as OutOfTime."""
        time_s = share * self.time_left_s()
        ends_s = self._clock() + time_s
        try:
            yield time_s
        except ModelUnavailable as error:
            if self._clock() < ends_s:
                raise
            raise OutOfTime(str(error)) from error

    def use(self, purpose: str, model_id: str, most: Usage | None = None) -> OpenUse:
        """Begin a use of a model, whose calls take ``most`` each; it stops when the stage is late."""
        use = OpenUse(purpose, model_id, self._clock, call_scope=self._limits, most=most)
        with self._lock:
            self._uses.append(use)
            late = self._closed
        if late:
            use.stop()
        return use

    def note(self, uses: Sequence[ModelUse], *, instead_of: OpenUse) -> None:
        """Replace a use's account by the port's own."""
        with self._lock:
            self._uses.remove(instead_of)
            self._accounts += uses

    def lacks(self, code: str, told: str) -> None:
        """Note what the stage lacks."""
        with self._lock:
            self._lacks.append(SkippedStage(stage=self._stage, code=code, message=told))

    def close(self) -> tuple[list[SkippedStage], list[ModelUse]]:
        """End the stage: stop its uses, and return what it lacked and used."""
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
    """Of the whole time budget, at most."""
    enabled: Callable[[S], bool]
    run: Callable[[S, StageBudget], Callable[[S], S]]
    """Takes the state, and returns how it changes it."""
    required: bool = False
    """Whether its failure is that of the whole."""


class StageRunner(Generic[S]):
    """Runs the stages of one retrieval, and records times, uses and what was skipped."""

    def __init__(self, time_budget_s: float, clock: Callable[[], float], limits: SearchLimits = UNLIMITED) -> None:
        """``time_budget_s`` is for all stages together; ``limits`` bound all models."""
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
        """Run groups of stages one after the other, those of a group in parallel, and return the final state.

        Raises the CicadaError of a required stage, OutOfTime if it was late, or Stopped on the limits' stop. ``uses``
        is complete in any case.
        """
        unregister = self._limits.on_stop(lambda: self._stopped.set_result(None))
        try:
            for group in plan:
                state = self._run_group(group, state)
        finally:
            unregister()
        return state

    def _run_group(self, group: Sequence[Stage[S]], state: S) -> S:
        if self._stopped.done():
            raise Stopped
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
        stage_budget = StageBudget(stage.name, time_s, self._clock, self._limits)
        began_s = self._clock()
        change = run_in_background(lambda: stage.run(state, stage_budget), stage.name) if left_s > 0 else None
        return _Started(stage, stage_budget, began_s, change)

    def _finish(self, one: _Started[S], state: S) -> S:
        stage = one.stage
        try:
            change = self._change(one)
        except (CicadaError, StageSkipped) as error:
            raise_final(error)
            if stage.required:
                raise
            logger.warning("stage skipped", extra={"stage": stage.name, "code": error.code, "why": str(error)})
            told = "It took longer than it may." if isinstance(error, OutOfTime) else error.told
            self.degraded.append(SkippedStage(stage=stage.name, code=error.code, message=told))
            return state
        return change(state)

    def _change(self, one: _Started[S]) -> Callable[[S], S]:
        """The stage's change of the state; closes the stage."""
        try:
            if one.change is None:
                raise OutOfTime(f"no time left for {one.stage.name}")
            return wait_for(one.change, one.stage_budget.time_left_s(), stopped=self._stopped)
        finally:
            self._close(one)

    def _close(self, one: _Started[S]) -> None:
        lacks, uses = one.stage_budget.close()
        self.timings_ms[one.stage.name] = round((self._clock() - one.began_s) * 1000, 3)
        self.degraded += lacks
        self.uses += [(one.stage.name, use) for use in uses]


@dataclass(frozen=True)
class _Started(Generic[S]):
    stage: Stage[S]
    stage_budget: StageBudget
    began_s: float
    change: Future[Callable[[S], S]] | None
    """None without time left."""
