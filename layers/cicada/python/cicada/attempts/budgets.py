"""The budgets of an attempt: time, model calls, and the tokens and cost of each call.

A request's tokens and cost are split evenly over the calls that it may make, and no call may exceed its share. The
bounds therefore hold without a running count, which a killed worker could lose. Where pipeline stages call models too,
retrieval gets a part of each call's share and some calls for each call that the attempt is allotted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from cicada.attempts.chain import MAX_MODEL_CALLS
from cicada.delivery.record import RequestSpend
from cicada.errors import BudgetSpent
from cicada.models.ports import Prompt, Usage
from cicada.models.prices import cost
from cicada.models.stopping import Stoppable
from cicada.protocol.events import StrategyName
from cicada.text.tokens import estimated_tokens
from cicada.usage.limits import MICRO
from cicada.usage.reservations import Amount

RETRIEVAL_SHARE = 0.5
"""Retrieval's part of each call's share of tokens and cost, where pipeline stages call models. A first attempt is
allotted two calls, so its retrieval gets a quarter of the request's bounds."""
RETRIEVAL_CALLS_A_CALL = 8
"""Calls of a pipeline's stages, retries included, for each call that an attempt is allotted."""
AGENT_CALLS_A_CALL = 8
"""Calls of an agent and its tools, retries included, for each call that an attempt is allotted."""


def retrieval_share(pipeline: str, *, knowledge: bool = False, confirms: bool = False) -> float:
    """Retrieval's part of each call's share: none where it calls no text model."""
    return RETRIEVAL_SHARE if knowledge or confirms or pipeline != "standard" else 0.0


@dataclass(frozen=True)
class RequestBudget:
    """What one request may spend over all its attempts."""

    time_s: float = 300.0
    """From its acceptance to its terminal event."""
    tokens: int = 120_000
    """Input and output of all model calls together."""
    cost_usd: float = 0.40
    retrieval_share: float = 0.0
    """See :data:`RETRIEVAL_SHARE`; in [0, 1)."""

    @property
    def tokens_a_call(self) -> int:
        """A call's share without retrieval's part."""
        return self.tokens // MAX_MODEL_CALLS - self.retrieval_tokens_a_call

    @property
    def cost_usd_a_call(self) -> float:
        """A call's share without retrieval's part."""
        return self.cost_usd / MAX_MODEL_CALLS - self.retrieval_cost_usd_a_call

    @property
    def retrieval_tokens_a_call(self) -> int:
        """Retrieval's part of a call's share."""
        return int(self.tokens // MAX_MODEL_CALLS * self.retrieval_share)

    @property
    def retrieval_cost_usd_a_call(self) -> float:
        """Retrieval's part of a call's share."""
        return self.cost_usd / MAX_MODEL_CALLS * self.retrieval_share


Purpose = Literal["answer", "complete_question", "retrieval", "agent", "judge"]


@dataclass(frozen=True)
class ModelCall:
    """What one use of a text model took, including retries."""

    purpose: Purpose
    model_id: str
    calls: int
    """Requests that went out."""
    usage: Usage
    took_ms: int
    first_piece_ms: int | None
    """Until the first piece of text; None if none came."""
    fault: str | None = None
    """The code of the error that ended it, if one did."""

    @property
    def spent(self) -> RequestSpend:
        """Tokens and cost. The cost is unknown if a request went out whose usage was not reported."""
        price = cost(self.model_id, self.usage) if self.usage.reported or not self.calls else None
        usd = None if price is None else price.usd
        return RequestSpend(self.calls, self.usage.input_tokens, self.usage.output_tokens, usd, known_usd=usd or 0.0)


class SubBudget:
    """A token budget for the calls of an attempt that do not write its answer. Thread-safe.

    It is part of the attempt's allotment, which the request's head holds. A killed worker forfeits the whole allotment,
    so nothing has to be counted across workers.
    """

    def __init__(self, whose: str, *, calls: int, tokens: int, cost_usd: float) -> None:
        self._lock = threading.Lock()
        self._whose = whose
        self._calls = calls
        self._tokens = tokens
        self._cost_usd = cost_usd

    def call(self) -> None:
        """See :class:`cicada.models.ports.CallScope`."""
        with self._lock:
            if self._calls <= 0:
                raise BudgetSpent(f"the attempt's {self._whose} has no model calls left")
            self._calls -= 1

    def allow(self, model_id: str, most: Usage) -> None:
        """See :class:`cicada.models.ports.TokenBudget`."""
        tokens, usd = _takes(model_id, most)
        with self._lock:
            if tokens > self._tokens:
                raise BudgetSpent(f"the {self._whose}'s call could use {tokens} tokens; {self._tokens} are left")
            if usd > self._cost_usd:
                raise BudgetSpent(f"the {self._whose}'s call could cost {usd:.4f} USD; {self._cost_usd:.4f} are left")
            self._tokens -= tokens
            self._cost_usd -= usd

    def settle(self, model_id: str, most: Usage, taken: Usage) -> None:
        """Give back what a call did not use of the ``most`` that :meth:`allow` set aside."""
        allowed, taken_by = _takes(model_id, most), _takes(model_id, taken)
        with self._lock:
            self._tokens += allowed[0] - taken_by[0]
            self._cost_usd += allowed[1] - taken_by[1]


def retrieval_budget(allotted: int, budget: RequestBudget) -> SubBudget:
    """The retrieval budget of an attempt that is allotted so many calls."""
    return SubBudget(
        "retrieval",
        calls=allotted * RETRIEVAL_CALLS_A_CALL,
        tokens=allotted * budget.retrieval_tokens_a_call,
        cost_usd=allotted * budget.retrieval_cost_usd_a_call,
    )


def _takes(model_id: str, usage: Usage) -> tuple[int, float]:
    """Tokens and US dollars; a model without a known price counts as free."""
    price = cost(model_id, usage)
    return usage.input_tokens + usage.output_tokens, 0.0 if price is None else price.usd


class AttemptBudget(Stoppable):
    """An attempt's budget, and the :class:`cicada.models.ports.CallScope` of its answer. Thread-safe."""

    def __init__(
        self,
        strategy: StrategyName,
        *,
        calls: int,
        deadline: float,
        budget: RequestBudget | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Allow ``calls`` to text models until ``deadline`` on the monotonic clock."""
        super().__init__()
        self.strategy = strategy
        self.budget = budget or RequestBudget()
        self.monotonic = monotonic
        self.made: list[ModelCall] = []
        """The calls so far, in order."""
        self.retrieval = retrieval_budget(calls, self.budget)
        self._allotted = calls
        self._calls_left = calls
        self._deadline = deadline
        self._lock = threading.Lock()

    @property
    def calls_left(self) -> int:
        """How many calls may still go out."""
        with self._lock:
            return self._calls_left

    def time_left_s(self) -> float:
        """Seconds until the deadline; negative past it."""
        return self._deadline - self.monotonic()

    def call(self) -> None:
        """See :class:`cicada.models.ports.CallScope`."""
        with self._lock:
            if self._calls_left <= 0:
                raise BudgetSpent(f"the limit of {MAX_MODEL_CALLS} model calls a request is reached")
            self._calls_left -= 1

    def agent_sub_budget(self) -> SubBudget:
        """Hand the rest of the attempt's allotment to an agent and its tools; no other call can be made afterwards.

        It includes retrieval's part of each call's share, and excludes what was used before.

        Raises:
            BudgetSpent: no call is left.
        """
        with self._lock:
            if self._calls_left <= 0:
                raise BudgetSpent("this attempt has no model calls left for an agent")
            self._calls_left = 0
            made = tuple(self.made)
        share_tokens, share_usd = self.budget.tokens // MAX_MODEL_CALLS, self.budget.cost_usd / MAX_MODEL_CALLS
        tokens, usd = self._allotted * share_tokens, self._allotted * share_usd
        for call in made:
            spent = call.spent
            if spent.usd is None:  # unknown: count each call's whole share
                tokens, usd = tokens - call.calls * share_tokens, usd - call.calls * share_usd
            else:
                tokens, usd = tokens - spent.input_tokens - spent.output_tokens, usd - spent.usd
        return SubBudget("agent", calls=self._allotted * AGENT_CALLS_A_CALL, tokens=tokens, cost_usd=usd)

    def admit(self, model_id: str, prompt: Prompt, max_tokens: int) -> None:
        """Raise BudgetSpent if a call could take more tokens, or cost more, than a call's share."""
        tokens = estimated_tokens(prompt.system) + estimated_tokens(prompt.user)
        if tokens + max_tokens > self.budget.tokens_a_call:
            raise BudgetSpent(
                f"the call could use {tokens + max_tokens} tokens; the limit is {self.budget.tokens_a_call}"
            )
        price = cost(model_id, Usage(input_tokens=tokens, output_tokens=max_tokens))
        if price is not None and price.usd > self.budget.cost_usd_a_call:
            raise BudgetSpent(
                f"the call could cost {price.usd:.4f} USD; the limit is {self.budget.cost_usd_a_call:.4f}"
            )

    def note(self, call: ModelCall) -> None:
        """Record a call."""
        with self._lock:
            self.made.append(call)

    @property
    def spent(self) -> RequestSpend:
        """The total of all calls. A call whose usage was not reported may have used its share of the request's."""
        unreported = sum(call.calls for call in self.made if not call.usage.reported)
        tokens = unreported * (self.budget.tokens // MAX_MODEL_CALLS)
        microusd = round(unreported * self.budget.cost_usd / MAX_MODEL_CALLS * MICRO)
        known = sum((call.spent for call in self.made), RequestSpend())
        return replace(known, unreported=Amount(tokens, microusd))
