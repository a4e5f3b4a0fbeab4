"""The passages that one request's tools have brought, numbered as its answer cites them."""

from __future__ import annotations

import threading

from cicada.errors import ToolInvalid
from cicada.protocol.events import Reason, Source

MAX_SOURCES = 40
"""Passages of one answer: as many as an event can name, whatever becomes of their texts."""
MAX_REASONS = 4
"""Of one passage: an event is no place for a list of every search that found it."""


class NumberedShelf:
    """:class:`cicada.agents.ports.Shelf`. Thread-safe.

    A passage lies there once, whichever tools bring it. A note whose text has changed since is another one: the answer
    may cite what was there before and what is there now.
    """

    def __init__(self, first: int = 1) -> None:
        """``first``: the number of the first source, for a shelf that goes on with another's numbers."""
        self._first = first
        self._lock = threading.Lock()
        self._places: dict[tuple[str, str, str], int] = {}
        self._sources: list[Source] = []

    def put(self, source: Source) -> int:
        """See the port. Of a source that lies there already, the reasons are added.

        Raises:
            ToolInvalid: the shelf holds :data:`MAX_SOURCES` others.
        """
        key = (source.collection, source.passage_id, source.text)
        with self._lock:
            place = self._places.get(key)
            if place is not None:
                held = self._sources[place]
                self._sources[place] = held.model_copy(update={"why": _merged(held.why, source.why)})
                return self._first + place
            if len(self._sources) >= MAX_SOURCES:
                raise ToolInvalid(f"{MAX_SOURCES} passages are here already, and no more can be: answer from these")
            place = len(self._sources)
            self._places[key] = place
            self._sources.append(source.model_copy(update={"n": self._first + place}))
            return self._first + place

    @property
    def sources(self) -> tuple[Source, ...]:
        """See the port."""
        with self._lock:
            return tuple(self._sources)


def _merged(held: tuple[Reason, ...], added: tuple[Reason, ...]) -> tuple[Reason, ...]:
    return (*held, *(reason for reason in added if reason not in held))[:MAX_REASONS]
