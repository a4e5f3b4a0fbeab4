"""Retrieval by Amazon S3 Vectors: one call that ranks by vectors, by words, or by both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from cicada.errors import IndexMismatch, IndexUnavailable
from cicada.index.ports import ObjectStore
from cicada.models.ports import Embedder
from cicada.retrieval.calibration import Calibration, calibration_of
from cicada.retrieval.managed import reading_failures, top_k_capped
from cicada.retrieval.ports import Degradation, Hit, Laps, SearchQuery, SearchResult
from cicada.retrieval.query_vectors import EMBED_BUDGET_S, vector_or_words
from cicada.retrieval.s3vectors.collection_state import CollectionState, CollectionStateReader
from cicada.retrieval.s3vectors.setup import NAME
from cicada.retrieval.s3vectors.vector_records import SEARCHED_KEYS, metadata_filter, passage_of, passes

ENGINE = "s3vectors"
MAX_TOP_K = 100
MAX_QUERY_TEXT_CHARS = 1024
"""Of one full-text query; the rest of a longer one is searched by meaning alone."""

WORDS_CALIBRATION = Calibration(midpoint=0.6, slope=8.0)
"""From a match's BM25 score, as a share of that of a word in one passage alone, to a relevance in [0, 1]: such a word
passes 0.5, a few common words do not. The service's own constants are not published."""

_OLD_SDK = "This function's AWS SDK is too old to search S3 Vectors by words."


class S3VectorsRetriever:
    """The retrieval port over a vector index that ``cicada engine load s3vectors`` has filled.

    The service's ranking is kept. A hit's score is the better of its calibrated cosine and BM25 score, as far as the
    service returns them; it only serves ``min_score``.
    """

    def __init__(
        self,
        client: Any,
        index_arn: str,
        embedder: Embedder,
        store: ObjectStore,
        *,
        held: CollectionStateReader | None = None,
        calibration: Calibration | None = None,
        embed_budget_s: float = EMBED_BUDGET_S,
    ) -> None:
        """``client`` is made with :func:`cicada.retrieval.managed.query_config`, ``embedder`` is the index's.

        ``store`` has the record of what was loaded, and passages too large for the service.
        """
        self._client = client
        self._index_arn = index_arn
        self._embedder = embedder
        self._store = store
        self._held = held or CollectionStateReader(store, index_arn)
        self._calibration = calibration or calibration_of(embedder.model_id)
        self._embed_budget_s = embed_budget_s
        members = client.meta.service_model.operation_model("QueryVectors").input_shape.members
        self._knows_words = "queryTexts" in members

    def held_version(self) -> str | None:
        """The version that the vector index holds, as far as is known without asking."""
        held = self._held.known()
        return held.version if held is not None and held.status == "ready" else None

    def version(self) -> str:
        """The version that the vector index holds: see :class:`cicada.retrieval.ports.Retriever`."""
        self._held.refresh_soon()
        return self._version(self._held.current())[0]

    def search(self, query: SearchQuery) -> SearchResult:
        """Return the best passages for the query: see :class:`cicada.retrieval.ports.Retriever`."""
        laps = Laps()
        self._held.refresh_soon()
        request, notes = self._request(query)
        laps.lap("embed")
        where = metadata_filter(query.filters, query.readable)
        if where is not None:
            request["filter"] = where
        nothing = query.readable.among(query.filters.collections)[0] == ()
        # A message in several languages has several passages, and is one hit: more vectors than hits are needed.
        try:
            found = [] if nothing else self._query({**request, "topK": min(MAX_TOP_K, 2 * query.top_k)})
            laps.lap("query")
            held = self._held.current()
            self._check_model(held)
            hits = tuple(islice(self._hits(found, held.passages, query), query.top_k))
            # Where min_score excludes a result, it would also exclude those that the service did not return.
            capped = len(found) >= MAX_TOP_K and len(hits) < query.top_k
            if capped and all(self._score(vector, held.passages) >= query.min_score for vector in found):
                notes = (*notes, top_k_capped(NAME, MAX_TOP_K))
        except IndexMismatch:
            self._held.current()  # raises IndexMissing where nothing was loaded
            raise
        except (KeyError, TypeError) as error:
            raise IndexUnavailable(f"cannot parse the response of {NAME}: {error!r}") from error
        laps.lap("read")
        version, loading = self._version(held)
        return SearchResult(hits, version, 0, laps.ms, ENGINE, (*notes, *loading))

    def _request(self, query: SearchQuery) -> tuple[dict[str, Any], tuple[Degradation, ...]]:
        """The query's parameters, and degradations. Raises the model's failure, or IndexUnavailable, without any."""
        notes: list[Degradation] = []
        request: dict[str, Any] = {}
        vector, degraded = vector_or_words(self._embedder, query, self._embed_budget_s)
        notes += degraded
        if vector is not None:
            request["queryVector"] = {"float32": vector.tolist()}
        if query.mode != "dense":
            if self._knows_words:
                text = query.text[:MAX_QUERY_TEXT_CHARS]
                request["queryTexts"] = [{"metadataKey": key, "text": text} for key in SEARCHED_KEYS]
                request["returnScores"] = True
            elif not request:
                raise IndexUnavailable(_OLD_SDK)
            else:
                notes.append(Degradation("mode_fallback", f"{_OLD_SDK} The search went by meaning alone."))
        return request, tuple(notes)

    def _query(self, request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        asked = {
            "indexArn": self._index_arn,
            "returnMetadata": True,
            "returnDistance": "queryVector" in request,
            **request,
        }
        with reading_failures(NAME):
            page = self._client.query_vectors(**asked)
            found: list[Mapping[str, Any]] = list(page["vectors"])
            while page.get("nextToken") and len(found) < request["topK"]:
                page = self._client.query_vectors(**asked, nextToken=page["nextToken"])
                found += page["vectors"]
            return found

    def _hits(self, found: Sequence[Mapping[str, Any]], passages: int, query: SearchQuery) -> Iterator[Hit]:
        seen: set[tuple[str, str | None]] = set()
        for vector in found:
            score = self._score(vector, passages)
            if score < query.min_score:
                continue
            passage = passage_of(vector.get("metadata"), self._store)
            if not passes(passage, query.filters, query.readable):
                continue
            whole = passage.locator.whole()
            if whole is None or (passage.collection, whole) not in seen:
                seen.add((passage.collection, whole))
                yield Hit(passage, score)

    def _score(self, vector: Mapping[str, Any], passages: int) -> float:
        """A result's score in [0, 1], 0 without any from the service; ``passages`` are those of the index."""
        scores = vector.get("scores", {})
        distance = scores.get("vectorDistance", vector.get("distance"))
        meaning = 0.0 if distance is None or math.isnan(distance) else self._calibration.score(1.0 - distance)
        matched = [one["score"] for one in scores.get("bm25Scores", ()) if one["score"] > 0]
        if not matched:
            return meaning
        weight_of_a_unique_word = math.log(1 + (max(passages, 1) - 0.5) / 1.5)  # BM25's, for one passage that has it
        return max(meaning, WORDS_CALIBRATION.score(max(matched) / weight_of_a_unique_word))

    def _check_model(self, held: CollectionState) -> None:
        asked = (self._embedder.model_id, self._embedder.dimensions)
        if (held.embedding_model_id, held.dimensions) != asked:
            raise IndexMismatch(
                f"S3 Vectors was loaded with vectors of {held.embedding_model_id} at {held.dimensions} dimensions, "
                f"queries are embedded with {asked[0]} at {asked[1]}"
            )

    @staticmethod
    def _version(held: CollectionState) -> tuple[str, tuple[Degradation, ...]]:
        """The version to name, with degradations. Raises IndexUnavailable during the first load."""
        if held.status == "ready":
            return held.version, ()
        if held.previous is None:
            raise IndexUnavailable(f"S3 Vectors is being loaded with version {held.version} for the first time")
        if held.previous == held.version:  # a load that only checks
            return held.version, ()
        told = (
            f"S3 Vectors is being loaded with version {held.version} over {held.previous}: passages of either may be "
            "found."
        )
        return held.previous, (Degradation("partial_index", told),)
