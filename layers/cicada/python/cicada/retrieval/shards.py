"""Retrieval from the index in S3: every passage ranked, by meaning and by words, in this very process."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from cicada.corpus.passages import Locator
from cicada.errors import IndexCorrupt, ModelBusy, ModelUnavailable
from cicada.index.columns import METADATA, RowFilter
from cicada.index.embedding import Vector, unit_vectors
from cicada.index.loaded import COLLECTION, LoadedIndex, Scope
from cicada.index.reader import IndexReader
from cicada.models.ports import Embedder
from cicada.retrieval.ports import Degradation, Filters, Hit, SearchMode, SearchQuery, SearchResult
from cicada.retrieval.ranking import Ranking, rank

logger = logging.getLogger(__name__)

EMBED_BUDGET_S = 8.0
"""Seconds for embedding a query, retries included: the asker waits for it."""
MAX_DEPTH = 10_000
"""Passages that a search looks through at most when those before were all the same messages in other languages."""


class ShardRetriever:
    """The retrieval port over an :class:`~cicada.index.reader.IndexReader`."""

    def __init__(self, reader: IndexReader, embedder: Embedder, *, embed_budget_s: float = EMBED_BUDGET_S) -> None:
        """Take the index and the model that it was embedded with."""
        self._reader = reader
        self._embedder = embedder
        self._embed_budget_s = embed_budget_s

    def search(self, query: SearchQuery) -> SearchResult:
        """Return the best passages for the query, one a message: see :class:`cicada.retrieval.ports.Retriever`.

        A hybrid search for which the query cannot be embedded goes by words alone, and says so.
        """
        timer = _Timer()
        self._reader.refresh_soon()  # while the query is embedded the first version is loaded, or a new one looked for
        vector, mode, degraded = self._embed(query)
        timer.lap("embed")
        index = self._reader.current()
        timer.lap("load")
        while True:
            try:
                hits, searched = self._best(index, query, vector, mode)
            except IndexCorrupt as error:
                index = self._reader.without(index, error)
            else:
                break
        timer.lap("rank")
        self._reader.warm_soon()
        if index.unreadable:
            degraded = (*degraded, _partial(index))
        return SearchResult(hits, index.manifest.version, searched, timer.laps_ms, degraded=degraded)

    def _embed(self, query: SearchQuery) -> tuple[Vector | None, SearchMode, tuple[Degradation, ...]]:
        if query.mode == "keyword":
            return None, "keyword", ()
        try:
            vector = unit_vectors(self._embedder, [query.text], time_budget_s=self._embed_budget_s)[0]
        except (ModelBusy, ModelUnavailable) as error:
            if query.mode == "dense":
                raise
            logger.warning("searching by words alone", extra={"code": error.code, "why": str(error)})
            words_only = Degradation("words_only", "The question could only be compared by its words, not its meaning.")
            return None, "keyword", (words_only,)
        return vector, query.mode, ()

    def _best(
        self, index: LoadedIndex, query: SearchQuery, vector: Vector | None, mode: SearchMode
    ) -> tuple[tuple[Hit, ...], int]:
        """The best hits, and how many passages were ranked.

        A message in several languages has a passage in each, and is one hit, its best: so more rows than hits may be
        needed.
        """
        scope = index.scope(row_filter(query.filters))
        depth = query.top_k
        while True:
            depth = min(2 * depth, MAX_DEPTH)
            ranking = rank(index, scope, query.text, vector, mode, self._embedder.model_id, depth)
            hits = tuple(_hits(index, scope, ranking, query))
            exhausted = len(ranking.scores) < depth or depth == MAX_DEPTH or ranking.scores[-1] < query.min_score
            if len(hits) == query.top_k or exhausted:
                return hits, scope.count


def row_filter(filters: Filters) -> RowFilter:
    """A query's filters as the index's fields."""
    where = {COLLECTION: filters.collections, "episode": filters.episodes, "speaker": filters.speakers}
    for key, allowed in filters.metadata.items():
        where["source" if key == "source" else METADATA + key] = allowed
    return where


def _hits(index: LoadedIndex, scope: Scope, ranking: Ranking, query: SearchQuery) -> Iterator[Hit]:
    """The passages of a ranking, a few at a time, one a place, down to the minimum score."""
    seen: set[tuple[str, Locator]] = set()
    good = sum(score >= query.min_score for score in ranking.scores)
    start = 0
    while start < good and len(seen) < query.top_k:
        end = min(start + query.top_k - len(seen), good)
        rows = ranking.rows[start:end]
        for passage, score in zip(index.passages(scope, rows), ranking.scores[start:end], strict=True):
            place = (passage.collection, passage.locator)
            if place not in seen:
                seen.add(place)
                yield Hit(passage, score)
        start = end


def _partial(index: LoadedIndex) -> Degradation:
    missing = sum(entry.live for entry in index.unreadable)
    return Degradation(
        "partial_index", f"{missing:,} of {index.manifest.count:,} passages cannot be read, and were not searched."
    )


class _Timer:
    """Milliseconds of a search's steps."""

    def __init__(self) -> None:
        self.laps_ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.laps_ms[step] = round((now - self._last) * 1000, 3)
        self._last = now
