"""A stop that any thread may give, and that wakes whatever waits."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Stoppable:
    """The part of a :class:`cicada.models.ports.Leash` that stops what it holds. Thread-safe."""

    def __init__(self) -> None:
        """Begin without a stop."""
        self._stop_lock = threading.Lock()
        self._stopped = False
        self._wakes: list[Callable[[], None]] = []

    @property
    def stopped(self) -> bool:
        """Whether the stop was given."""
        return self._stopped

    def on_stop(self, wake: Callable[[], None]) -> Callable[[], None]:
        """See the port."""
        with self._stop_lock:
            if not self._stopped:
                self._wakes.append(wake)
                return lambda: self._forget(wake)
        wake()
        return lambda: None

    def stop(self) -> None:
        """Nobody wants the result any more: whatever is under way stops."""
        with self._stop_lock:
            self._stopped = True
            wakes, self._wakes = self._wakes, []
        for wake in wakes:
            wake()

    def _forget(self, wake: Callable[[], None]) -> None:
        with self._stop_lock:
            if wake in self._wakes:
                self._wakes.remove(wake)
