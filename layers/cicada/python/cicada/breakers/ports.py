"""The port of the circuit breakers: a small store that all workers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cicada.breakers.decide import Breaker


class Overtaken(Exception):
    """A breaker has changed meanwhile; ``stored`` is what it is now."""

    def __init__(self, stored: Breaker) -> None:
        super().__init__(f"the breaker is at revision {stored.revision}")
        self.stored = stored


class BreakerStore(Protocol):
    """Keeps breakers. Every method raises :class:`cicada.delivery.ports.StoreFault` when the store fails."""

    def read(self) -> Mapping[str, Breaker]:
        """The stored breakers by name; may lag by a moment."""
        ...

    def swap(self, name: str, old: Breaker, new: Breaker) -> None:
        """Replace ``old`` by ``new``. Raises Overtaken if the stored revision differs from that of ``old``."""
        ...
