"""Whether what a question is limited to, by name, exists in what its asker may read."""

from __future__ import annotations

from dataclasses import dataclass

from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AskedQuestion
from cicada.protocol.events import Degraded
from cicada.retrieval.names import NameChecker
from cicada.retrieval.ports import filters_of


@dataclass(frozen=True)
class QuestionNames:
    """:class:`cicada.attempts.strategy.QuestionChecker` over the index."""

    names: NameChecker

    def check(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> tuple[Degraded, ...]:
        """See the port."""
        filters = filters_of(asked.question)
        if not filters.named:
            return ()
        found = self.names.check(filters, asked.readable(), time_budget_s=attempt_budget.time_left_s() / 2)
        return tuple(Degraded(code=one.code, message=one.message) for one in found)
