"""Pins all searches of an agent's run to one index version, and remembers what they used."""

from __future__ import annotations

import threading
from dataclasses import replace

from cicada.errors import DependencyDown, IndexFailure, IndexUnavailable
from cicada.retrieval.ports import Pin, Retriever, SearchQuery, SearchResult

NO_VERSION = "none"
"""The index version if there is none."""


class WatchedRetriever:
    """A :class:`cicada.retrieval.ports.Retriever` that holds one run's searches to one version. Thread-safe."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self._lock = threading.Lock()
        self._pin = Pin()
        self._first: SearchResult | None = None
        self._searched = 0

    def search(self, query: SearchQuery) -> SearchResult:
        """See the port.

        Raises:
            IndexUnavailable: the engine cannot search the run's version any more.
        """
        found = self._retriever.search(replace(query, pin=self._pin))
        with self._lock:
            first = self._first = self._first or found
            self._searched = max(self._searched, found.searched)
        if found.index_version != first.index_version:
            raise IndexUnavailable(f"{found.index_version} was published while {first.index_version} was searched")
        return found

    def version(self) -> str:
        """See the port."""
        return self._retriever.version()

    @property
    def seen(self) -> str:
        """The version that the searches used; without a search, the current one."""
        if self._first is not None:
            return self._first.index_version
        try:
            return self._retriever.version()
        except (IndexFailure, DependencyDown):
            return NO_VERSION  # profiles can be answered from without an index

    @property
    def searched(self) -> int:
        """The most passages that one search has ranked."""
        return self._searched

    @property
    def engine(self) -> str:
        """The engine that searched; ``shards`` without a search."""
        return "shards" if self._first is None else self._first.engine
