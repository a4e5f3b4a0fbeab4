"""Keeps the calls of an invocation within its remaining time, so that it can still reply."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from cicada.errors import DeliveryUnavailable

REPLY_RESERVE_S = 1.0
"""Time that an invocation keeps for its reply."""


class TimeLeft:
    """Keeps the calls of boto3 clients within the time of the current invocation.

    With a slow service, several calls in a row that all time out take longer than the invocation may: it would be
    killed, and the client would get no reply. So a call that could outlast the invocation is not made.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ends_at = math.inf

    def begin(self, remaining_s: float) -> None:
        """Begin an invocation that is killed after so many seconds."""
        self._ends_at = self._monotonic() + remaining_s - REPLY_RESERVE_S

    def seconds(self) -> float:
        """The time left for calls."""
        return self._ends_at - self._monotonic()

    def hold(self, client: Any) -> Any:
        """Make a boto3 client's calls raise DeliveryUnavailable if they could outlast the invocation. Returns it."""
        longest_s = longest_call_s(client)

        def check(**_: Any) -> None:
            if self.seconds() < longest_s:
                raise DeliveryUnavailable(f"{self.seconds():.1f} s left; a call can take {longest_s:g} s")

        client.meta.events.register("before-call", check)
        return client


def longest_call_s(client: Any) -> float:
    """How long a call may take with its client's time-outs and retries.

    The SDK's waits between tries are not added: it waits long only after a throttle, which comes at once instead of a
    time-out.
    """
    config = client.meta.config
    return float(config.retries["total_max_attempts"] * (config.connect_timeout + config.read_timeout))
