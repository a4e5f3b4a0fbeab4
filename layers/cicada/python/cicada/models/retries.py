"""When to call again, and how long to wait before."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypedDict, TypeVar

from cicada.errors import BudgetSpent
from cicada.models.failure import Failure
from cicada.models.ports import CallScope
from cicada.models.stopping import StopSignal

T = TypeVar("T")

ASKED_JITTER_S = 0.5
"""Spread of the retries of callers whom a service told the same time to wait."""


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter, inside a time budget.

    Source: AWS Architecture Blog, "Exponential Backoff And Jitter" (2015), "Full Jitter".
    """

    max_attempts: int | None = 5
    """Calls in all, the first included; None for as many as the time budget holds."""
    base_s: float = 0.3
    """The longest wait before the second call; it doubles with each further one."""
    cap_s: float = 5.0
    """The longest wait of all, unless the service asks for a longer one."""
    longest_asked_s: float | None = None
    """A service that asks for a longer wait is not called again; None to obey within the time budget."""

    def pause_s(self, attempts: int, *, left_s: float, share: float, asked_s: float | None = None) -> float | None:
        """Seconds to wait after ``attempts`` failed calls, or None to give up.

        ``left_s`` is left of the time budget; a wait that would use it up is not begun. ``share`` is random, uniform in
        [0, 1). ``asked_s`` is the wait that the service asks for, if any.
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
"""For calls whose answer a user waits for, and where another strategy could answer: waits of 2.3 s on average, 4.5 s at
most, or 10 s where the service asks for them. A text model's call scope usually allows fewer calls."""
PATIENT = RetryPolicy(max_attempts=None)
"""As often as the time budget allows: for loads, where nobody waits."""
QUERY = RetryPolicy(max_attempts=2, longest_asked_s=10.0)
"""For embedding a query while the user waits: one retry.

Each strategy that searches embeds its query once, by a :class:`cicada.models.embedding_cache.CachingEmbedder`; hybrid
embeds for two searches, and may ask again for one after the other has failed. So one run of the whole chain (hybrid,
rag, cag) sends at most eight embedding requests, and usually one.
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
    """A retry policy with its clock and randomness."""

    retry: RetryPolicy = INTERACTIVE
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float, threading.Event], None] = wait
    """Waits some seconds between calls, less if the event is set meanwhile."""
    share: Callable[[], float] = random.random
    """Uniform in [0, 1), for the jitter."""

    def pause_s(self, attempts: int, *, left_s: float, asked_s: float | None = None) -> float | None:
        """See :meth:`RetryPolicy.pause_s`."""
        return self.retry.pause_s(attempts, left_s=left_s, share=self.share(), asked_s=asked_s)


def prepare_retry(
    failure: Failure, pause_s: float | None, pace: Pace, deadline_s: float, call_scope: CallScope, signal: StopSignal
) -> None:
    """Reserve and await the next try. Raises the failure if none is allowed, or no time is left; Stopped after a stop.

    ``pause_s`` is None if no further try can help.
    """
    if pause_s is None:
        raise failure.error
    with suppress(BudgetSpent):
        call_scope.call()
        if pause_s > 0:
            pace.pause(pause_s, signal.stopped)
        signal.check()
        if pace.clock() < deadline_s:
            return
    raise failure.error


def call_with_retries(
    call: Callable[[], T],
    read: Callable[[Exception], tuple[Exception, bool] | None],
    pace: Pace,
    deadline_s: float,
    stopped: threading.Event,
) -> T:
    """Call on this thread until it succeeds, or raise the last failure.

    ``read`` returns the error to raise and whether a retry can help, or None for a bug, which is raised unchanged.
    """
    attempts = 0
    while True:
        try:
            return call()
        except Exception as error:
            failure = read(error)
            if failure is None:
                raise
            attempts += 1
            pause_s = pace.pause_s(attempts, left_s=deadline_s - pace.clock())
            if not failure[1] or pause_s is None:
                raise failure[0] from error
        pace.pause(pause_s, stopped)
