"""CloudWatch's time, which can be stretched: some real seconds are one of its minutes."""

from __future__ import annotations

import time
from collections.abc import Callable

MINUTE_S = 60


class MetricClock:
    """Tells CloudWatch's time. It begins at the real time, and runs at a rate of its own from then on."""

    def __init__(self, minute_s: float = MINUTE_S, *, now: Callable[[], float] = time.time) -> None:
        """Start it.

        Args:
            minute_s: real seconds that are one minute here.
            now: the real time, seconds since the epoch.

        Raises:
            ValueError: a minute must take some time.
        """
        if minute_s <= 0:
            raise ValueError("a minute must take more than 0 seconds")
        self.minute_s = minute_s
        self._now = now
        self._began = now()

    def now(self) -> float:
        """The time here, seconds since the epoch."""
        return self.of(self._now())

    def of(self, real: float) -> float:
        """What a real time is here."""
        return self._began + (real - self._began) * MINUTE_S / self.minute_s

    def as_long_ago(self, real: float) -> float:
        """The time here that is as far from now as a real time is: of what a clock told that may be wrong."""
        return self.now() + real - self._now()

    def real_now(self) -> float:
        """The real time."""
        return self._now()

    def real_seconds(self, seconds: float) -> float:
        """How long a time of here takes in reality."""
        return seconds * self.minute_s / MINUTE_S
