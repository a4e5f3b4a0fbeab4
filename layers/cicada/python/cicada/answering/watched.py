"""What an agent's searches have seen of the index: one version, for whoever tells where its sources come from."""

from __future__ import annotations

import threading
from dataclasses import replace

from cicada.errors import DependencyDown, IndexFailure, IndexUnavailable
from cicada.retrieval.ports import Pin, Retriever, SearchQuery, SearchResult

NO_VERSION = "none"
"""The index's version where none was searched, and there is none to be."""


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
            IndexUnavailable: the engine searches another version by now, and cannot search the run's any more.
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
        """The version that the searches used; without a search, the one that it would use."""
        if self._first is not None:
            return self._first.index_version
        try:
            return self._retriever.version()
        except (IndexFailure, DependencyDown):
            return NO_VERSION  # what the user noted is there without an index

    @property
    def searched(self) -> int:
        """Passages that one search has ranked, at most."""
        return self._searched

    @property
    def engine(self) -> str:
        """What searched; ``shards`` without a search."""
        return "shards" if self._first is None else self._first.engine
