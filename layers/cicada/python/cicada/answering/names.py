"""Whether the collections and episodes that a question is limited to exist in what its asker may read."""

from __future__ import annotations

from dataclasses import dataclass

from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import AskedQuestion
from cicada.protocol.events import Degraded
from cicada.retrieval.names import NameChecker
from cicada.retrieval.ports import Filters


@dataclass(frozen=True)
class QuestionNames:
    """:class:`cicada.attempts.strategy.QuestionChecker` over the index."""

    names: NameChecker

    def check(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> tuple[Degraded, ...]:
        """See the port."""
        question = asked.question
        if not question.collections and not question.episodes:
            return ()
        filters = Filters(collections=question.collections, episodes=question.episodes)
        found = self.names.check(filters, asked.readable(), time_budget_s=attempt_budget.time_left_s() / 2)
        return tuple(Degraded(code=one.code, message=one.message) for one in found)
