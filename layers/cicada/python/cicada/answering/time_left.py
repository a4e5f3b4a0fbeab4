"""What is left of an invocation that somebody waits for, and that no call to a service may outlast."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from cicada.errors import DeliveryUnavailable

REPLY_RESERVE_S = 1.0
"""What an invocation keeps of its time to give its reply with."""


class TimeLeft:
    """Holds the calls of boto3 clients to the time of the invocation that is under way.

    A service that barely answers takes up each call's time-outs, and several of them one after another take longer than
    the invocation may: then it would be killed, and whoever waits for its reply would get none. So a call that could
    outlast it is not begun.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ends_at = math.inf

    def begin(self, remaining_s: float) -> None:
        """An invocation begins, and is killed after so many seconds."""
        self._ends_at = self._monotonic() + remaining_s - REPLY_RESERVE_S

    def seconds(self) -> float:
        """What is left for calls."""
        return self._ends_at - self._monotonic()

    def hold(self, client: Any) -> Any:
        """Have a boto3 client's calls raise :class:`DeliveryUnavailable` where less time is left than they may take.

        Returns:
            The client.
        """
        longest_s = longest_call_s(client)

        def check(**_: Any) -> None:
            if self.seconds() < longest_s:
                raise DeliveryUnavailable(f"{self.seconds():.1f} s are left, and a call may take {longest_s:g} s")

        client.meta.events.register("before-call", check)
        return client


def longest_call_s(client: Any) -> float:
    """How long a call may take by the time-outs and retries that its client is configured with.

    What the SDK waits between two tries is not added: it waits for long after a throttle alone, which comes at once and
    so takes the place of a time-out.
    """
    config = client.meta.config
    return float(config.retries["total_max_attempts"] * (config.connect_timeout + config.read_timeout))
