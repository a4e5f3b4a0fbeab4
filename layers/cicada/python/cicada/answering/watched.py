"""What an agent's searches have seen of the index, for whoever tells where its sources come from."""

from __future__ import annotations

import threading

from cicada.errors import DependencyDown, IndexFailure
from cicada.retrieval.ports import Retriever, SearchQuery, SearchResult

NO_VERSION = "none"
"""The index's version where none was searched, and there is none to be."""


class WatchedRetriever:
    """A :class:`cicada.retrieval.ports.Retriever` that remembers what one run's searches have told. Thread-safe."""

    def __init__(self, retriever: Retriever) -> None:
        """``retriever``: what searches."""
        self._retriever = retriever
        self._lock = threading.Lock()
        self._last: SearchResult | None = None
        self._searched = 0

    def search(self, query: SearchQuery) -> SearchResult:
        """See the port."""
        found = self._retriever.search(query)
        with self._lock:
            self._last = found
            self._searched = max(self._searched, found.searched)
        return found

    def version(self) -> str:
        """See the port."""
        return self._retriever.version()

    @property
    def seen(self) -> str:
        """The version that the last search used; without a search, the one that it would use."""
        if self._last is not None:
            return self._last.index_version
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
        """What searched last; ``shards`` without a search."""
        return "shards" if self._last is None else self._last.engine
