"""What an agent, and its tools, may take of an attempt: one purse for both, and a note for each use of a model."""

from __future__ import annotations

from collections.abc import Callable

from cicada.answering.grounding import call_of
from cicada.answering.spending import Allowance, ModelCall, Spending
from cicada.answering.writing import note_call
from cicada.models.ports import ModelUse, Usage


class ToolLimits:
    """:class:`cicada.retrieval.ports.Limits` of the tools of a run: a search among them may call models."""

    def __init__(self, spending: Spending, allowance: Allowance, time_left_s: Callable[[], float]) -> None:
        """Take the attempt, the purse, and the seconds that the run has left."""
        self._spending = spending
        self._allowance = allowance
        self._time_left_s = time_left_s

    def time_left_s(self) -> float:
        """See the port."""
        return self._time_left_s()

    def call(self) -> None:
        """See the port."""
        self._allowance.call()

    def allow(self, model_id: str, most: Usage) -> None:
        """See the port."""
        self._allowance.allow(model_id, most)

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """See the port."""
        return self._spending.on_stop(wake)

    def note(self, use: ModelUse) -> None:
        """See the port: it is one of the answer's calls, and told in the request's story."""
        note_call(call_of(use), self._spending)


class AgentLimits(ToolLimits):
    """Those of the agent's own turns, one after the other: what a turn did not take is there for the next."""

    def __init__(self, spending: Spending, allowance: Allowance) -> None:
        """Take the attempt, and the purse."""
        super().__init__(spending, allowance, lambda: max(0.0, spending.time_left_s()))
        self._under_way: tuple[str, Usage] | None = None

    def allow(self, model_id: str, most: Usage) -> None:
        """See the port."""
        super().allow(model_id, most)
        self._under_way = (model_id, most)

    def note(self, use: ModelUse) -> None:
        """See the port."""
        if self._under_way is not None and use.usage.reported:
            model_id, most = self._under_way
            self._allowance.settle(model_id, most, use.usage)
        self._under_way = None
        call = ModelCall("agent", use.model_id, use.calls, use.usage, use.took_ms, None, use.fault)
        note_call(call, self._spending)
