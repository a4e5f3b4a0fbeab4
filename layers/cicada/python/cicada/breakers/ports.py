"""What circuit breakers need of the outside: a small store that all workers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cicada.breakers.decide import Breaker


class Overtaken(Exception):
    """A breaker has changed meanwhile; ``stands`` is what it is now."""

    def __init__(self, stands: Breaker) -> None:
        super().__init__(f"the breaker stands at revision {stands.revision}")
        self.stands = stands


class BreakerStore(Protocol):
    """Keeps breakers. Every method raises :class:`cicada.delivery.ports.StoreFault` when the store fails."""

    def read(self) -> Mapping[str, Breaker]:
        """All that were ever changed, by name; it may lag behind by a moment."""
        ...

    def swap(self, name: str, old: Breaker, new: Breaker) -> None:
        """Put ``new`` in the place of ``old``, if that is what is there.

        Raises:
            Overtaken: it is not: the revisions differ.
        """
        ...
