"""Has a model judge an attempt's citations, within the attempt's budget."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cicada.attempts.budgets import AttemptBudget, ModelCall
from cicada.attempts.writing import note_call
from cicada.citations.judging import (
    JUDGE_COST_USD,
    JUDGE_TIME_S,
    MAX_CLAIMS,
    CitationJudgement,
    CitedClaim,
    Judge,
    Judged,
    judging_prompt,
    verdicts_of,
)
from cicada.conversation.one_call_budget import OneCallBudget
from cicada.errors import BudgetSpent, CicadaError, ModelError, raise_final
from cicada.models.ports import Prompt, StructuredModel, Usage
from cicada.models.prices import cost
from cicada.request_trace import log_fault
from cicada.text.tokens import estimated_tokens

logger = logging.getLogger(__name__)


class _OneMore(OneCallBudget):
    """One more call than the attempt was allotted: the answer is written, so the last resort's call is free."""

    def call(self) -> None:
        """See :class:`cicada.models.ports.CallScope`."""
        AttemptBudget.call(self)


@dataclass(frozen=True)
class CitationJudge:
    """Calls a model once per answer, if a call's share of the request's budget allows it. Thread-safe."""

    model: StructuredModel
    time_s: float = JUDGE_TIME_S
    cost_usd: float = JUDGE_COST_USD

    def within(self, attempt_budget: AttemptBudget) -> Judge:
        """The judge of one attempt. Claims that it may not or cannot judge stay unchecked. It raises only Stopped."""

        def judge(claims: Sequence[CitedClaim]) -> Mapping[int, Judged]:
            asked = claims[:MAX_CLAIMS]
            prompt = judging_prompt(asked)
            call_scope = _OneMore(attempt_budget, self.time_s)
            started = attempt_budget.monotonic()
            usage, calls, fault = Usage(), 0, None
            try:
                self._admit(prompt, attempt_budget)
                filled = self.model.fill(
                    prompt,
                    CitationJudgement,
                    time_budget_s=min(self.time_s, call_scope.time_left_s()),
                    call_scope=call_scope,
                )
                usage, calls = filled.usage, filled.calls
                return verdicts_of(filled.value, asked)
            except CicadaError as error:
                fault, calls = error.code, 1 - call_scope.calls_left
                usage = error.usage or Usage(reported=False) if isinstance(error, ModelError) else usage
                log_fault(logger, "citations not judged", error)
                raise_final(error)
                return {}
            finally:
                if calls:
                    took_ms = round((attempt_budget.monotonic() - started) * 1000)
                    note_call(
                        ModelCall("judge", self.model.model_id, calls, usage, took_ms, None, fault), attempt_budget
                    )

        return judge

    def _admit(self, prompt: Prompt, attempt_budget: AttemptBudget) -> None:
        """Raise BudgetSpent if the call could exceed its share, or the judge's cost limit."""
        attempt_budget.admit(self.model.model_id, prompt, self.model.max_tokens)
        read = estimated_tokens(prompt.system) + estimated_tokens(prompt.user)
        price = cost(self.model.model_id, Usage(read, self.model.max_tokens))
        if price is not None and price.usd > self.cost_usd:
            raise BudgetSpent(f"judging could cost {price.usd:.4f} USD; {self.cost_usd:.4f} are left")
