"""The version that a search would use, told by each engine without searching."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from cicada.errors import IndexMissing, IndexUnavailable
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from cicada.retrieval.fallback import FAILURES_TO_REST, FallbackRetriever
from cicada.retrieval.kendra import KendraRetriever
from cicada.retrieval.ports import SearchQuery, SearchResult
from cicada.retrieval.s3vectors import S3VectorsRetriever
from cicada.retrieval.s3vectors.collection_state import HELD_KEY, CollectionState
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages


class Versioned:
    """A retriever of which only the version matters."""

    def __init__(self, version: str | Exception, search: Exception | None = None) -> None:
        self._version = version
        self._search = search

    def version(self) -> str:
        if isinstance(self._version, Exception):
            raise self._version
        return self._version

    def search(self, query: SearchQuery) -> SearchResult:
        if self._search is not None:
            raise self._search
        return SearchResult((), self.version(), 0)

    def held_version(self) -> str | None:
        return None


def shards_over(store: InMemoryStore) -> ShardRetriever:
    reader = IndexReader(store, embedding_model_id="test.words", dimensions=64, refresh_interval_s=3600)
    reader.close()  # no thread: what it holds it can still give
    return ShardRetriever(reader, WordEmbedder())


def test_the_shards_tell_the_version_that_they_search() -> None:
    store = InMemoryStore()
    IndexWriter(store, WordEmbedder()).replace("script", indexable(make_passages(3)))
    shards = shards_over(store)
    assert shards.version() == shards.search(SearchQuery("Line 1", readable=EVERYTHING)).index_version


def test_shards_without_an_index_have_no_version() -> None:
    with pytest.raises(IndexMissing):
        shards_over(InMemoryStore()).version()


def vectors_holding(**changes: Any) -> S3VectorsRetriever:
    store = InMemoryStore()
    values: dict[str, Any] = {
        "index_arn": "arn:index", "status": "ready", "version": "000007-g", "previous": None, "passages": 3,
        "embedding_model_id": "test.words", "dimensions": 64, "run": "r", "updated_at": datetime.now(UTC),
    }  # fmt: skip
    store.write(HELD_KEY, CollectionState(**(values | changes)).to_bytes(), replaces=None)
    operation = SimpleNamespace(input_shape=SimpleNamespace(members={}))
    model = SimpleNamespace(operation_model=lambda _: operation)
    client = SimpleNamespace(meta=SimpleNamespace(service_model=model))
    return S3VectorsRetriever(client, "arn:index", WordEmbedder(), store)


def test_s3_vectors_tells_the_version_that_it_was_loaded_with() -> None:
    assert vectors_holding().version() == "000007-g"


def test_while_s3_vectors_is_loaded_its_version_is_the_one_before() -> None:
    assert vectors_holding(status="loading", previous="000006-f").version() == "000006-f"


def test_while_s3_vectors_is_loaded_for_the_first_time_it_has_no_version() -> None:
    with pytest.raises(IndexUnavailable):
        vectors_holding(status="loading").version()


def test_kendra_is_its_own_version() -> None:
    assert KendraRetriever(None, "index-1").version() == "kendra:index-1"


def test_behind_a_fallback_the_engine_is_asked_first() -> None:
    assert FallbackRetriever(Versioned("v1"), Versioned("v2")).version() == "v1"


def test_behind_a_fallback_the_shards_serve_where_the_engine_cannot() -> None:
    assert FallbackRetriever(Versioned(IndexMissing("nothing loaded")), Versioned("v2")).version() == "v2"


def test_an_engine_that_rests_is_not_asked() -> None:
    retriever = FallbackRetriever(Versioned("v1", IndexUnavailable("down")), Versioned("v2"))
    for _ in range(FAILURES_TO_REST):
        retriever.search(SearchQuery("anything", readable=EVERYTHING))
    assert retriever.version() == "v2"


def test_where_neither_has_a_version_there_is_none() -> None:
    with pytest.raises(IndexMissing):
        FallbackRetriever(Versioned(IndexUnavailable("down")), Versioned(IndexMissing("none"))).version()
