"""What one run of an agent may take at most."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cicada.agents.ports import RunLimits
from cicada.errors import AgentCapReached, AgentUnavailable, ModelUnavailable, OutOfTime, StreamBroken
from cicada.models.ports import ModelUse, Usage
from cicada.retrieval.ports import SearchLimits

SERVICE_SILENCE_S = 30.0
"""A stream of an agent service without an event for this long is broken. Between two events a session or the
action-group function may start, and the model may take its turn."""
SERVICE_READ_TIMEOUT_S = SERVICE_SILENCE_S + 10
"""The read time-out of such a service's client; the silence limit ends a stream sooner."""


@dataclass(frozen=True)
class AgentCaps:
    """The caps on one run, as a deployer sets them; each ends it with AgentCapReached."""

    max_turns: int = 8
    """Calls of the model, one a turn: each either uses tools or answers."""
    max_tool_calls: int = 12
    """By the model; those that our code makes first do not count."""
    max_tokens: int = 48_000
    """Read and written by all turns together: every turn reads all that was said before it."""
    max_turn_tokens: int = 2_048
    """Written in one turn."""
    time_s: float = 45.0
    """Seconds from the first call that our code makes to the end of the answer."""


class CappedLimits:
    """:class:`cicada.agents.ports.RunLimits`: the attempt's limits, and the caps on tokens and time.

    A call reserves the most that it can take, and returns the rest once its usage is known. The calls of a run are
    sequential: each is noted before the next is allowed.
    """

    def __init__(self, within: SearchLimits, caps: AgentCaps, *, clock: Callable[[], float] = time.monotonic) -> None:
        """The time runs from now; ``within`` are the attempt's limits."""
        self._within = within
        self._caps = caps
        self._clock = clock
        self._deadline = clock() + caps.time_s
        self._lock = threading.Lock()
        self._tokens = 0
        self._reserved = 0

    def time_left_s(self) -> float:
        """See the port."""
        return max(0.0, min(self._within.time_left_s(), self._deadline - self._clock()))

    def check_time(self) -> None:
        """See the port."""
        if self._clock() >= self._deadline:
            raise AgentCapReached(f"time: a run may take {self._caps.time_s:g} s")
        if self._within.time_left_s() <= 0:
            raise OutOfTime("the agent's attempt timed out")

    def call(self) -> None:
        """See the port. Raises what :meth:`check_time` does."""
        self.check_time()
        self._within.call()

    def allow(self, model_id: str, most: Usage) -> None:
        """See the port. Raises AgentCapReached if the call could take more tokens than the run may."""
        tokens = most.input_tokens + most.output_tokens
        with self._lock:
            if self._tokens + tokens > self._caps.max_tokens:
                raise AgentCapReached(
                    f"tokens: the next turn could take {tokens}, and {self._tokens} of {self._caps.max_tokens} are used"
                )
            self._within.allow(model_id, most)
            self._tokens += tokens
            self._reserved += tokens

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """See the port."""
        return self._within.on_stop(wake)

    def note(self, use: ModelUse) -> None:
        """See the port."""
        with self._lock:
            if use.usage.reported:
                self._tokens += use.usage.input_tokens + use.usage.output_tokens - self._reserved
            self._reserved = 0
        self._within.note(use)


@contextmanager
def timed(limits: RunLimits) -> Iterator[None]:
    """Raise failures after the deadline as :meth:`RunLimits.check_time` does: a turn cut short looks like a failed
    service, and must not open its circuit breaker."""
    try:
        yield
    except (AgentUnavailable, ModelUnavailable, OutOfTime, StreamBroken):
        limits.check_time()
        raise
