"""How long the client waits, and how often it tries."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Times in seconds. API Gateway cuts a socket after 10 minutes without a message, and every one after 2 hours."""

    open_s: float = 10.0
    """For opening a connection."""
    reply_s: float = 15.0
    """For the reply to a frame; a connection that brings nothing at all meanwhile is given up."""
    silence_s: float = 20.0
    """Without an event of an open request, until it is resumed. The server recovers lost requests on a resume."""
    gap_s: float = 1.0
    """For a missing event to come by itself, until the request is resumed; doubled each time that does not help.
    Never less lies between two resumes of a request: each has the server read and send its log anew."""
    ping_s: float = 240.0
    """Without a message in either direction, until a ``ping`` is sent."""
    retire_s: float = 6600.0
    """Age at which a connection without open requests is given back: the next question opens a new one."""
    retire_grace_s: float = 300.0
    """For open requests to end, past ``retire_s``, until they are moved to a new connection."""
    stable_s: float = 30.0
    """Age at which a connection counts as a good one: earlier failures are forgotten."""
    backoff_base_s: float = 0.25
    backoff_cap_s: float = 20.0
    attempts: int = 8
    """How many failures in a row, without any progress between them, are borne."""

    first_attempts: int = 4
    """The same until a first connection has been open: nobody should wait long to hear of a wrong address."""

    def backoff_s(self, failures: int, rng: random.Random) -> float:
        """How long to wait after the ``failures``-th failure in a row: exponential, with full jitter.

        Source: M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015.
        """
        return rng.uniform(0, min(self.backoff_cap_s, self.backoff_base_s * 2 ** (failures - 1)))
