"""The judge of an attempt's citations: a model, within what the attempt may still spend."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cicada.answering.conversation.allowance import OneCall
from cicada.answering.spending import ModelCall, Spending
from cicada.answering.writing import note_call
from cicada.citations.judging import (
    JUDGE_COST_USD,
    JUDGE_TIME_S,
    MAX_CLAIMS,
    Claim,
    Judge,
    Judged,
    Judgement,
    judging_prompt,
    verdicts_of,
)
from cicada.errors import BudgetSpent, CicadaError, ModelError
from cicada.models.ports import Prompt, StructuredModel, Usage
from cicada.models.prices import cost
from cicada.story import tell_fault
from cicada.text.token_estimates import estimated_tokens

logger = logging.getLogger(__name__)


class _OneMore(OneCall):
    """One call beside those of the attempt: the answer is written, so the last resort's share is there for it."""

    def call(self) -> None:
        """See :class:`cicada.models.ports.Leash`."""
        Spending.call(self)


@dataclass(frozen=True)
class CitationJudge:
    """Asks a model once an answer, where a call's share of the request's budget allows it. Thread-safe."""

    model: StructuredModel
    time_s: float = JUDGE_TIME_S
    cost_usd: float = JUDGE_COST_USD

    def within(self, spending: Spending) -> Judge:
        """The judge of one attempt. What it may not ask, or fails to tell, stays unchecked.

        It raises Stopped where nobody wants the answer any more.
        """

        def judge(claims: Sequence[Claim]) -> Mapping[int, Judged]:
            asked = claims[:MAX_CLAIMS]
            prompt = judging_prompt(asked)
            leash = _OneMore(spending, self.time_s)
            started = spending.monotonic()
            usage, calls, fault = Usage(), 0, None
            try:
                self._admit(prompt, spending)
                filled = self.model.fill(
                    prompt, Judgement, time_budget_s=min(self.time_s, leash.time_left_s()), leash=leash
                )
                usage, calls = filled.usage, filled.calls
                return verdicts_of(filled.value, asked)
            except CicadaError as error:
                fault, calls = error.code, 1 - leash.calls_left
                usage = error.usage or Usage(reported=False) if isinstance(error, ModelError) else usage
                tell_fault(logger, "citations not judged", error)
                return {}
            finally:
                if calls:
                    took_ms = round((spending.monotonic() - started) * 1000)
                    note_call(ModelCall("judge", self.model.model_id, calls, usage, took_ms, None, fault), spending)

        return judge

    def _admit(self, prompt: Prompt, spending: Spending) -> None:
        """Raise BudgetSpent if the call could take more than its share, or cost more than a judge may."""
        spending.admit(self.model.model_id, prompt, self.model.max_tokens)
        read = estimated_tokens(prompt.system) + estimated_tokens(prompt.user)
        price = cost(self.model.model_id, Usage(read, self.model.max_tokens))
        if price is not None and price.usd > self.cost_usd:
            raise BudgetSpent(f"judging could cost {price.usd:.4f} USD of {self.cost_usd:.4f}")
