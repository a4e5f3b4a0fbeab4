"""When to call again, and how long to wait before."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

ASKED_JITTER_S = 0.5
"""Spread over which those who were told the same time by a service come back."""


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter, inside a time budget.

    Source: AWS Architecture Blog, "Exponential Backoff And Jitter" (2015), "Full Jitter".
    """

    max_attempts: int | None = 5
    """Calls in all, the first included; as many as the time budget holds when None."""
    base_s: float = 0.3
    """The longest wait before the second call; it doubles with each further one."""
    cap_s: float = 5.0
    """The longest wait of all, unless the service asks for a longer one."""
    longest_asked_s: float | None = None
    """A service that asks to be left alone for longer is not called again; the time budget is the bound when None."""

    def pause_s(self, attempts: int, *, left_s: float, share: float, asked_s: float | None = None) -> float | None:
        """Seconds to wait after ``attempts`` failed calls, or None to give up.

        Args:
            attempts: calls made so far, at least 1.
            left_s: what is left of the time budget. A wait that would use it up is not begun.
            share: a random number, uniform in [0, 1).
            asked_s: how long the service asks to be left alone, where it says so.
        """
        if self.max_attempts is not None and attempts >= self.max_attempts:
            return None
        pause = share * min(self.cap_s, self.base_s * 2.0 ** min(attempts - 1, 32))
        if asked_s is not None:
            if self.longest_asked_s is not None and asked_s > self.longest_asked_s:
                return None
            pause = max(pause, asked_s + share * ASKED_JITTER_S)
        return pause if pause < left_s else None


INTERACTIVE = RetryPolicy(longest_asked_s=10.0)
"""Somebody waits for the answer, and another strategy could give one: 2.3 s of waiting on average, 4.5 s at most; and
10 s where the service asks for them, for nobody looks at an empty page for longer.

Calls to a text model are bounded by their call scope besides, as a rule to fewer.
"""
PATIENT = RetryPolicy(max_attempts=None)
"""As often as the time budget allows: for loads, where nobody waits."""
QUERY = RetryPolicy(max_attempts=2, longest_asked_s=10.0)
"""For the embedding of a query, while somebody waits for the answer: one more request after a failure, no third.

Each strategy that searches or looks up embeds its query once, by a
:class:`cicada.models.remembering.RememberingEmbedder`; hybrid does both, and may ask again for the one after the other
has failed. So one run of the whole chain (hybrid, rag, cag) sends at most eight embedding requests, and as a rule one.
"""


def wait(seconds: float, stopped: threading.Event) -> None:
    """Wait for some seconds, or until the event is set."""
    stopped.wait(seconds)


class Pacing(TypedDict, total=False):
    """The arguments of :class:`Pace`, for constructors that pass them on."""

    retry: RetryPolicy
    clock: Callable[[], float]
    pause: Callable[[float, threading.Event], None]
    share: Callable[[], float]


@dataclass(frozen=True)
class Pace:
    """A retry policy with what it runs on."""

    retry: RetryPolicy = INTERACTIVE
    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds."""
    pause: Callable[[float, threading.Event], None] = wait
    """Waits between retries for some seconds, less if the event is set meanwhile."""
    share: Callable[[], float] = random.random
    """Uniform in [0, 1), for the jitter."""

    def pause_s(self, attempts: int, *, left_s: float, asked_s: float | None) -> float | None:
        """See :meth:`RetryPolicy.pause_s`."""
        return self.retry.pause_s(attempts, left_s=left_s, share=self.share(), asked_s=asked_s)
