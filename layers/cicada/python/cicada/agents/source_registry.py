"""The passages that the tools of one request have found, numbered as the answer cites them."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence

from cicada.errors import ToolInvalid
from cicada.protocol.events import Reason, Source

MAX_SOURCES = 40
"""Passages of one answer, bounded by what an event can name."""
MAX_REASONS = 4
"""Of one passage: events have a size limit."""


class NumberedSources:
    """:class:`cicada.agents.ports.SourceRegistry`. Thread-safe.

    A passage has one number, whichever tools find it. A changed text is another source: the answer may cite the old and
    the new one.
    """

    def __init__(self, known: Sequence[str] = (), version: str = "") -> None:
        """``known`` are the keys of earlier sources in the order of their numbers, found in the index ``version``."""
        self.version = version
        self._known = tuple(known)
        self._lock = threading.Lock()
        self._numbers = {key: n for n, key in enumerate(known, 1)}
        self._sources: dict[int, Source] = {}
        self._versions: dict[int, str] = {}

    def put(self, source: Source, index_version: str = "") -> int:
        """See the port. Raises ToolInvalid beyond :data:`MAX_SOURCES`, or for two versions of the index."""
        key = source_key(source)
        with self._lock:
            if self.version and index_version and self.version != index_version:
                raise ToolInvalid("a new index version was published: answer from the passages you already have")
            self.version = self.version or index_version
            n = self._numbers.get(key, len(self._numbers) + 1)
            if n > MAX_SOURCES:
                raise ToolInvalid(f"the limit of {MAX_SOURCES} passages is reached: answer from these")
            self._numbers[key] = n
            held = self._sources.get(n)
            why = merged(() if held is None else held.why, source.why)
            self._sources[n] = (held or source).model_copy(update={"n": n, "why": why})
            if index_version:
                self._versions[n] = index_version
            return n

    def version_of(self, n: int) -> str:
        """See the port."""
        return self._versions.get(n, "")

    @property
    def sources(self) -> tuple[Source, ...]:
        """See the port."""
        with self._lock:
            return tuple(self._sources[n] for n in sorted(self._sources))


def source_key(source: Source) -> str:
    """A digest of a source's place and text, 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps((source.collection, source.passage_id, source.text)).encode()).hexdigest()[:16]


def merged(held: tuple[Reason, ...], added: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """The distinct reasons of one source, each as last given, at most :data:`MAX_REASONS`.

    Reasons with a match, such as evidence, win over those that only name a tool, and newer ones over older ones.
    """
    by_what: dict[tuple[str | None, ...], Reason] = {}
    for one in (*held, *added):
        what = (one.kind, one.name, one.section, one.matched)
        by_what.pop(what, None)
        by_what[what] = one
    telling = [one for one in by_what.values() if one.matched is not None][-MAX_REASONS:]
    others = [one for one in by_what.values() if one.matched is None][: MAX_REASONS - len(telling)]
    return tuple(one for one in by_what.values() if one in telling or one in others)
