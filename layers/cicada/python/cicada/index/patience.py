"""Waiting for a look at what is new, made beside the caller, for no longer than the caller may.

A function is frozen between its calls, its threads too: what runs beside calls of a few milliseconds never comes to its
end. So what serves such calls waits when a look is due.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Patience:
    """Has a look made when it is due, one for all who wait. Safe for several threads."""

    def __init__(
        self,
        look: Callable[[], None],
        due: Callable[[], bool],
        *,
        wait_s: float,
        rest_s: float,
        clock: Callable[[], float],
    ) -> None:
        """Take what is waited for.

        Args:
            look: looks; it handles its own errors.
            due: whether the last look that succeeded is too long ago.
            wait_s: seconds that a caller waits at most; with 0 none does.
            rest_s: seconds for which nobody waits again after it did not help.
            clock: seconds, those of a frozen function included.
        """
        self._look = look
        self._due = due
        self._wait_s = wait_s
        self._rest_s = rest_s
        self._clock = clock
        self._gave_up_at = -math.inf
        self._starting = threading.Lock()
        self._looking: threading.Thread | None = None

    def wait(self, at_most_s: float = math.inf) -> None:
        """Wait for a look if one is due: until it has succeeded or failed, or the time is over."""
        time_s = min(self._wait_s, at_most_s)
        if time_s <= 0 or not self._due() or 0 <= self._clock() - self._gave_up_at < self._rest_s:
            return
        began_s = time.monotonic()
        own = late = False
        while self._due() and not (own or late):  # one frozen under way, that fails for it, says nothing of now
            looking, own = self._begun()
            looking.join(max(0.0, began_s + time_s - time.monotonic()))
            late = looking.is_alive()
        if self._due():
            self._gave_up_at = self._clock()
            logger.warning(
                "not looked in time: what is held answers" if late else "the look failed: what is held answers",
                extra={"waited_s": round(time.monotonic() - began_s, 3)},
            )

    def _begun(self) -> tuple[threading.Thread, bool]:
        """The look under way, and whether it was begun just now."""
        with self._starting:
            if self._looking is not None and self._looking.is_alive():
                return self._looking, False
            self._looking = threading.Thread(target=self._look, name="index-look", daemon=True)
            self._looking.start()
            return self._looking, True
