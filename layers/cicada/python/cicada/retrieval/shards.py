"""Retrieval from the index in S3: the whole of it in memory, every passage ranked."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice

from cicada.corpus.passages import Locator
from cicada.index.embedding import unit_vectors
from cicada.index.reader import IndexReader, LoadedIndex
from cicada.index.search import Ranked
from cicada.index.segment import Vector
from cicada.models.ports import Embedder
from cicada.retrieval.calibration import Calibration, calibration_of
from cicada.retrieval.ports import Hit, SearchQuery, SearchResult

EMBED_BUDGET_S = 8.0
"""Seconds for embedding a query, retries included: the asker waits for it."""


class ShardRetriever:
    """The retrieval port over an :class:`~cicada.index.reader.IndexReader`."""

    def __init__(
        self,
        reader: IndexReader,
        embedder: Embedder,
        *,
        calibration: Calibration | None = None,
        embed_budget_s: float = EMBED_BUDGET_S,
    ) -> None:
        """Take the index and the model that it was embedded with."""
        self._reader = reader
        self._embedder = embedder
        self._calibration = calibration or calibration_of(embedder.model_id)
        self._embed_budget_s = embed_budget_s

    def search(self, query: SearchQuery) -> SearchResult:
        """Return the best passages for the query, one a message: see :class:`cicada.retrieval.ports.Retriever`."""
        timer = _Timer()
        self._reader.refresh_soon()  # while the query is embedded the first version is loaded, or a new one looked for
        vector = unit_vectors(self._embedder, [query.text], time_budget_s=self._embed_budget_s)[0]
        timer.lap("embed")
        index = self._reader.current()
        timer.lap("load")
        hits, searched = self._best(index, vector, query)
        timer.lap("rank")
        return SearchResult(hits, index.manifest.version, searched, timer.laps_ms)

    def _best(self, index: LoadedIndex, vector: Vector, query: SearchQuery) -> tuple[tuple[Hit, ...], int]:
        """The best hits, and how many passages were ranked.

        A message in several languages has a passage in each, and is one hit, its best: so more rows than hits may be
        needed.
        """
        where = {
            "collection": query.filters.collections,
            "episode": query.filters.episodes,
            "speaker": query.filters.speakers,
        }
        limit = query.top_k
        while True:
            limit *= 2
            ranking = index.rank(vector, where, limit)
            hits = tuple(islice(self._hits(ranking.rows, query.min_score), query.top_k))
            if len(hits) == query.top_k or limit >= ranking.searched or self._score(ranking.rows[-1]) < query.min_score:
                return hits, ranking.searched

    def _hits(self, rows: Iterable[Ranked], min_score: float) -> Iterator[Hit]:
        seen: set[tuple[str, Locator]] = set()
        for ranked in rows:
            score = self._score(ranked)
            if score < min_score:
                return
            passage = ranked.segment.passage(ranked.row)
            place = (passage.collection, passage.locator)
            if place not in seen:
                seen.add(place)
                yield Hit(passage, score)

    def _score(self, ranked: Ranked) -> float:
        return self._calibration.score(ranked.cosine)


class _Timer:
    """Milliseconds of a search's steps."""

    def __init__(self) -> None:
        self.laps_ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.laps_ms[step] = round((now - self._last) * 1000, 3)
        self._last = now
