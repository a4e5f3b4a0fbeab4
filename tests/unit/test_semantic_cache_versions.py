"""The version that a search would use, told by each engine without searching."""

from __future__ import annotations

from typing import Any

import pytest

from cicada.errors import IndexMissing, IndexUnavailable
from cicada.index.load import load_passages
from cicada.index.reader import IndexReader
from cicada.retrieval.fallback import FAILURES_TO_REST, FallbackRetriever
from cicada.retrieval.kendra import KendraRetriever
from cicada.retrieval.ports import SearchQuery, SearchResult
from cicada.retrieval.shards import ShardRetriever
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore


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


def test_kendra_is_its_own_version() -> None:
    assert KendraRetriever(None, "index-1").version() == "kendra:index-1"


def test_behind_a_fallback_the_engine_is_asked_first() -> None:
    assert FallbackRetriever(Versioned("v1"), Versioned("v2")).version() == "v1"


def test_behind_a_fallback_the_shards_serve_where_the_engine_cannot() -> None:
    assert FallbackRetriever(Versioned(IndexMissing("nothing loaded")), Versioned("v2")).version() == "v2"


def test_an_engine_that_rests_is_not_asked() -> None:
    retriever = FallbackRetriever(Versioned("v1", IndexUnavailable("down")), Versioned("v2"))
    for _ in range(FAILURES_TO_REST):
        retriever.search(SearchQuery("anything"))
    assert retriever.version() == "v2"


def test_where_neither_has_a_version_there_is_none() -> None:
    with pytest.raises(IndexMissing):
        FallbackRetriever(Versioned(IndexUnavailable("down")), Versioned(IndexMissing("none"))).version()
