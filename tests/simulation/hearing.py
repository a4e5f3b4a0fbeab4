"""Strategies of which every word is heard, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Generator

from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AskedQuestion, Step, Strategy
from cicada.models.ports import TextDelta
from cicada.protocol.events import StrategyName
from tests.simulation.judge import Judge
from tests.simulation.scheduler import Scheduler


class Heard:
    """A strategy of which every word is heard."""

    def __init__(self, strategy: Strategy, judge: Judge, scheduler: Scheduler) -> None:
        self._strategy = strategy
        self._judge = judge
        self._scheduler = scheduler
        self.name: StrategyName = strategy.name

    @property
    def needs(self) -> tuple[str, ...]:
        """See the port."""
        return self._strategy.needs

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """See the port."""
        worker = self._scheduler.current.process.name
        self._judge.said[worker] = ""
        steps = self._strategy.answer(asked, attempt_budget)
        try:
            for step in steps:
                if isinstance(step, TextDelta):
                    self._judge.said[worker] += step.text
                yield step
        finally:
            steps.close()
