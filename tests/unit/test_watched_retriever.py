"""One run's searches are of one version of the index, whatever is published meanwhile."""

from __future__ import annotations

import pytest

from cicada.answering.watched import NO_VERSION, WatchedRetriever
from cicada.errors import IndexMissing, IndexUnavailable
from cicada.retrieval.ports import SearchQuery, SearchResult
from cicada.rights import EVERYTHING


class Publishing:
    """A retriever whose index is published anew between two searches; it can search an older version, or not."""

    def __init__(self, *, keeps: bool):
        self.current, self.keeps = 1, keeps

    def search(self, query):
        held = query.pin.version if self.keeps and query.pin.version else f"v{self.current}"
        query.pin.version = held
        self.current += 1
        return SearchResult((), held, self.current)

    def version(self):
        if not self.current:
            raise IndexMissing("nothing was published")
        return f"v{self.current}"


def test_the_first_search_chooses_the_version_of_all():
    watched = WatchedRetriever(Publishing(keeps=True))
    assert [watched.search(SearchQuery("a", readable=EVERYTHING)).index_version for _ in range(3)] == ["v1"] * 3
    assert (watched.seen, watched.searched) == ("v1", 4)


def test_a_search_that_could_only_be_of_another_version_fails():
    watched = WatchedRetriever(Publishing(keeps=False))
    watched.search(SearchQuery("a", readable=EVERYTHING))
    with pytest.raises(IndexUnavailable, match="v2 was published while v1"):
        watched.search(SearchQuery("a", readable=EVERYTHING))
    assert watched.seen == "v1"


def test_two_runs_do_not_share_a_version():
    index = Publishing(keeps=True)
    assert WatchedRetriever(index).search(SearchQuery("a", readable=EVERYTHING)).index_version == "v1"
    assert WatchedRetriever(index).search(SearchQuery("a", readable=EVERYTHING)).index_version == "v2"


def test_without_a_search_it_is_the_version_that_one_would_use():
    index = Publishing(keeps=True)
    assert WatchedRetriever(index).seen == "v1"
    index.current = 0
    assert WatchedRetriever(index).seen == NO_VERSION
