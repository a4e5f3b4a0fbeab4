"""Retrieval from the index in S3: ranks every passage by meaning and by words, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from cicada.corpus.passages import Passage
from cicada.errors import IndexCorrupt
from cicada.index.columns import EPISODE, METADATA, SECTION_PATH, SOURCE, RowFilter
from cicada.index.embedding import Vector
from cicada.index.list_columns import ENTITIES, ENTITY_CODES
from cicada.index.loaded_index import COLLECTION, LoadedIndex, rest_of
from cicada.index.reader import IndexReader
from cicada.models.ports import Embedder
from cicada.retrieval.ports import Degradation, Filters, Hit, Laps, SearchMode, SearchQuery, SearchResult
from cicada.retrieval.query_vectors import EMBED_BUDGET_S, vector_or_words
from cicada.retrieval.ranking import languages_of, rank
from cicada.rights import Readable

MAX_LANGUAGES = 4
"""A message's passages in more languages are unlikely to be all among the best."""
MAX_DEPTH = 10_000
"""Passages that a search ranks at most when many are the same messages in other languages."""


class ShardRetriever:
    """The retrieval port over an :class:`~cicada.index.reader.IndexReader`."""

    def __init__(self, reader: IndexReader, embedder: Embedder, *, embed_budget_s: float = EMBED_BUDGET_S) -> None:
        self._reader = reader
        self._embedder = embedder
        self._embed_budget_s = embed_budget_s

    def search(self, query: SearchQuery) -> SearchResult:
        """Return the best passages for the query, one a message: see :class:`cicada.retrieval.ports.Retriever`."""
        timer = Laps()
        self._reader.refresh_soon()  # while the query is embedded the first version is loaded, or a new one looked for
        vector, degraded = vector_or_words(self._embedder, query, self._embed_budget_s)
        mode = query.mode if vector is not None else "keyword"
        timer.lap("embed")
        pinned = query.pin is not None and query.pin.index is not None
        index = query.pin.index if query.pin and pinned else self._reader.current(query.limits.time_left_s() / 2)
        timer.lap("load")
        while True:
            try:
                hits, searched = self._best(index.seen_by(query.readable), query, vector, mode)
            except IndexCorrupt as error:
                index = rest_of(index, error) if pinned else self._reader.after_damage(index, error)
            else:
                break
        timer.lap("rank")
        if query.pin is not None:
            query.pin.index, query.pin.version = index, index.manifest.version
        self._reader.warm_soon()
        degraded = (*degraded, *partial_index(index.seen_by(query.readable), "searched"))
        return SearchResult(hits, index.manifest.version, searched, timer.ms, degraded=degraded)

    def version(self) -> str:
        """The current version: see :class:`cicada.retrieval.ports.Retriever`."""
        self._reader.refresh_soon()
        return self._reader.current().manifest.version

    def _best(
        self, index: LoadedIndex, query: SearchQuery, vector: Vector | None, mode: SearchMode
    ) -> tuple[tuple[Hit, ...], int]:
        """The best hits, and how many passages were ranked.

        A message in several languages has a passage in each, and is one hit: so more rows than hits may be needed,
        usually by a factor of the number of languages. These are read in one round.
        """
        scope = index.scope(row_filter(query.filters))
        depth = min(query.top_k * min(max(1, len(languages_of(scope))), MAX_LANGUAGES), MAX_DEPTH)
        shown: dict[tuple[int, int], Passage] = {}
        while True:
            ranking = rank(index, scope, query.text, vector, mode, self._embedder.model_id, depth)
            good = [pair for pair, score in zip(ranking.rows, ranking.scores, strict=True) if score >= query.min_score]
            missing = [pair for pair in good if pair not in shown]
            shown.update(zip(missing, index.passages(scope, missing), strict=True))
            hits = _one_a_message(shown, good, ranking.scores)[: query.top_k]
            if len(hits) == query.top_k or len(good) < depth or depth == MAX_DEPTH:
                return tuple(hits), scope.count
            depth = min(2 * depth, MAX_DEPTH)


def row_filter(filters: Filters) -> RowFilter:
    """A query's filters as the index's fields."""
    where = {
        COLLECTION: filters.collections,
        EPISODE: filters.episodes,
        "speaker": filters.speakers,
        ENTITIES: filters.entities,
        ENTITY_CODES: filters.codes,
        SOURCE: filters.sources,
        SECTION_PATH: filters.sections,
    }
    return where | {METADATA + key: allowed for key, allowed in filters.metadata.items() if key != SOURCE}


def _one_a_message(
    shown: Mapping[tuple[int, int], Passage], rows: Sequence[tuple[int, int]], scores: Sequence[float]
) -> list[Hit]:
    """Hits in the order of rows, without translations of earlier ones."""
    hits: list[Hit] = []
    seen: set[tuple[str, str]] = set()
    for pair, score in zip(rows, scores, strict=False):
        passage = shown[pair]
        whole = passage.locator.whole()
        if whole is not None:
            if (passage.collection, whole) in seen:
                continue
            seen.add((passage.collection, whole))
        hits.append(Hit(passage, score))
    return hits


def partial_index(index: LoadedIndex, done: str) -> tuple[Degradation, ...]:
    """The unreadable part of a version, if any; ``done`` says what was not done with it, such as ``searched``."""
    if not index.unreadable:
        return ()
    missing = sum(entry.live for entry in index.unreadable)
    told = f"{missing:,} of {index.manifest.count:,} passages cannot be read, and were not {done}."
    return (Degradation("partial_index", told),)


_Found = TypeVar("_Found")


def read_index(
    reader: IndexReader, readable: Readable, work: Callable[[LoadedIndex], _Found]
) -> tuple[_Found, LoadedIndex]:
    """Run ``work`` on what may be read of the current version; returns its result and that view.

    Raises IndexFailure.
    """
    reader.refresh_soon()
    index = reader.current()
    while True:
        try:
            found = work(index.seen_by(readable))
        except IndexCorrupt as error:
            index = reader.after_damage(index, error)
        else:
            break
    reader.warm_soon()
    return found, index.seen_by(readable)
