"""The passages that one request's tools have brought, numbered as its answer cites them."""

from __future__ import annotations

import hashlib
import json
import threading

from cicada.errors import ToolInvalid
from cicada.protocol.events import Reason, Source

MAX_SOURCES = 40
"""Passages of one answer: as many as an event can name, whatever becomes of their texts."""
MAX_REASONS = 4
"""Of one passage: an event is no place for a list of every search that found it."""


class NumberedSources:
    """:class:`cicada.agents.ports.SourceRegistry`. Thread-safe.

    A passage lies there once, whichever tools bring it. A text that has changed since is another source, be it a note
    or a passage of a newer index: the answer may cite what was there before and what is there now.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}
        self._sources: list[Source] = []
        self._versions: list[str] = []
        self.version = ""
        """Of the index that all its passages were found in; empty where no search has found any."""

    def put(self, source: Source, index_version: str = "") -> int:
        """See the port.

        Raises:
            ToolInvalid: the registry holds :data:`MAX_SOURCES` others, or passages of another version of the index.
        """
        key = source_key(source)
        with self._lock:
            self.version = one_version(self.version, index_version)
            place = self._places.get(key)
            if place is not None:
                held = self._sources[place]
                self._sources[place] = held.model_copy(update={"why": merged(held.why, source.why)})
                self._versions[place] = index_version or self._versions[place]
                return place + 1
            if len(self._sources) >= MAX_SOURCES:
                raise no_room()
            place = self._places[key] = len(self._sources)
            self._sources.append(source.model_copy(update={"n": place + 1, "why": merged((), source.why)}))
            self._versions.append(index_version)
            return place + 1

    def version_of(self, n: int) -> str:
        """See the port."""
        with self._lock:
            return self._versions[n - 1] if 0 < n <= len(self._versions) else ""

    @property
    def sources(self) -> tuple[Source, ...]:
        """See the port."""
        with self._lock:
            return tuple(self._sources)


def source_key(source: Source) -> str:
    """What tells sources on a registry apart: where they are from, and how they read. 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps((source.collection, source.passage_id, source.text)).encode()).hexdigest()[:16]


def merged(held: tuple[Reason, ...], added: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """The reasons of one source, each once and as it was given last, at most :data:`MAX_REASONS`.

    Those that say what was matched, evidence among them, come before those that only name a tool; of too many of them
    the oldest go.
    """
    by_what: dict[tuple[str | None, ...], Reason] = {}
    for one in (*held, *added):
        what = (one.kind, one.name, one.section, one.matched)
        by_what.pop(what, None)
        by_what[what] = one
    telling = [one for one in by_what.values() if one.matched is not None][-MAX_REASONS:]
    others = [one for one in by_what.values() if one.matched is None][: MAX_REASONS - len(telling)]
    return tuple(one for one in by_what.values() if one in telling or one in others)


def one_version(held: str, found: str) -> str:
    """The version of a registry's passages once some were found in ``found``; either may be empty.

    Raises:
        ToolInvalid: they are two: one answer never joins passages of two versions.
    """
    if held and found and held != found:
        raise ToolInvalid("the index was published anew meanwhile: answer from the passages that are here")
    return held or found


def no_room() -> ToolInvalid:
    """What a tool is told that brings more passages than an answer can have."""
    return ToolInvalid(f"{MAX_SOURCES} passages are here already, and no more can be: answer from these")
