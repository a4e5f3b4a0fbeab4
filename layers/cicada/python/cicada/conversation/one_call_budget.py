"""A small part of an attempt's budget: one model call within a short time."""

from __future__ import annotations

from collections.abc import Callable

from cicada.attempts.budgets import AttemptBudget, ModelCall


class OneCallBudget(AttemptBudget):
    """One call out of an attempt's budget, without a retry: the other calls are the answer's."""

    def __init__(self, whole: AttemptBudget, time_budget_s: float) -> None:
        """Take a part of ``whole``, which counts and records everything that is used."""
        time_s = min(time_budget_s, whole.time_left_s())
        super().__init__(
            whole.strategy,
            calls=1,
            deadline=whole.monotonic() + time_s,
            budget=whole.budget,
            monotonic=whole.monotonic,
        )
        self._whole = whole

    def call(self) -> None:
        """See :class:`cicada.models.ports.CallScope`."""
        super().call()
        self._whole.call()

    def note(self, call: ModelCall) -> None:
        """Record the call on the whole budget."""
        self._whole.note(call)

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """See :class:`cicada.models.ports.CallScope`: it stops with the whole budget."""
        return self._whole.on_stop(wake)
