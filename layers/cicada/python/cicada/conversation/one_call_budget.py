"""A small part of an attempt's allowance: one call to a model, in a short time."""

from __future__ import annotations

from collections.abc import Callable

from cicada.attempts.budgets import AttemptBudget, ModelCall


class OneCallBudget(AttemptBudget):
    """One call out of another allowance, without a retry: what is left of that is the answer's."""

    def __init__(self, whole: AttemptBudget, time_budget_s: float) -> None:
        """Take a part of ``whole``, where everything used is counted and noted.

        Args:
            time_budget_s: how long it holds from now on; less if less is left.
        """
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
        """Note what the call took on the whole."""
        self._whole.note(call)

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """See :class:`cicada.models.ports.CallScope`: the whole's stop is this one's."""
        return self._whole.on_stop(wake)
