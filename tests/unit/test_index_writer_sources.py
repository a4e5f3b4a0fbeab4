"""Documents in the index: which passages a source has is told by the index itself."""

from __future__ import annotations

import numpy as np
import pytest

from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import CorpusInvalid, IndexMissing, PublishConflict
from cicada.index.versions import must_be_published
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.index_changes import replace_sources
from tests.support.index_content import content, expected
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages


def pages(source, *texts, collection="shelf"):
    return [
        Passage(
            id=f"{source}#{text}",
            collection=collection,
            text=text,
            context=text,
            locator=DocumentLocator(source=source, title=source),
        )
        for text in texts
    ]


A, B, C = pages("a.md", "one", "two", "three"), pages("b.md", "four", "five"), pages("c.md", "six")


@pytest.fixture
def embedder():
    return WordEmbedder()


@pytest.fixture
def store():
    """An index that holds the documents A and B, in segments of two."""
    store = InMemoryStore()
    IndexWriter(store, WordEmbedder(), segment_rows=2).replace("shelf", indexable([*A, *B]))
    return store


def held(store):
    return content(store)["shelf"]


def test_the_documents_that_are_named_consist_of_exactly_these_passages(store, embedder):
    changed = [A[0], *pages("a.md", "new")]
    written = replace_sources(IndexWriter(store, embedder), "shelf", indexable([*changed, *C]), ["a.md", "c.md"])
    assert held(store) == expected([*changed, *B, *C])
    assert embedder.asked == ["new", "six"]
    assert (written.added, written.removed, written.passages) == (2, 2, 5)


def test_a_document_that_is_held_just_so_publishes_nothing(store, embedder):
    version = must_be_published(store).manifest.version
    written = replace_sources(IndexWriter(store, embedder), "shelf", indexable(A), ["a.md"])
    assert (written.published, written.version, embedder.asked) == (False, version, [])


def test_documents_are_deleted_by_their_sources(store, embedder):
    written = replace_sources(IndexWriter(store, embedder), "shelf", [], ["a.md", "unknown.md"])
    assert held(store) == expected(B)
    assert (written.removed, written.published) == (3, True)


def test_the_last_document_of_a_collection_can_be_deleted(store, embedder):
    replace_sources(IndexWriter(store, embedder), "shelf", [], ["a.md", "b.md"])
    assert content(store) == {}


def test_what_is_known_is_not_embedded(store, embedder):
    vector = np.zeros(embedder.dimensions, dtype=np.float32)
    vector[3] = 1.0
    items = indexable(C)
    written = replace_sources(IndexWriter(store, embedder), "shelf", items, ["c.md"], known={items[0].recipe(): vector})
    assert (embedder.asked, written.embedded) == ([], 0)
    assert np.array_equal(held(store)[C[0].id].vector, vector)


def test_a_whole_collection_is_replaced_with_known_vectors(store, embedder):
    vector = np.zeros(embedder.dimensions, dtype=np.float32)
    vector[3] = 1.0
    items = indexable(C)
    IndexWriter(store, embedder).replace("shelf", items, known={items[0].recipe(): vector})
    assert embedder.asked == []
    assert list(held(store)) == [C[0].id]


def test_a_passage_with_the_id_of_one_in_another_document_is_refused(store, embedder):
    stolen = C[0].model_copy(update={"id": B[0].id})
    before = dict(store.objects)
    with pytest.raises(CorpusInvalid, match="1 passages have ids that other documents of shelf have"):
        replace_sources(IndexWriter(store, embedder), "shelf", indexable([stolen]), ["c.md"])
    assert store.objects == before


def test_a_passage_may_move_between_documents_that_are_replaced_together(store, embedder):
    moved = C[0].model_copy(update={"id": A[0].id})
    replace_sources(IndexWriter(store, embedder), "shelf", indexable([*A[1:], moved]), ["a.md", "c.md"])
    assert held(store) == expected([*A[1:], *B, moved])


def test_passages_without_a_source_stay(store, embedder):
    messages = make_passages(2, collection="shelf")
    IndexWriter(store, embedder).add("shelf", indexable(messages))
    replace_sources(IndexWriter(store, embedder), "shelf", [], ["a.md"])
    assert held(store) == expected([*B, *messages])


def test_nothing_can_be_deleted_of_an_index_that_is_not_there(embedder):
    with pytest.raises(IndexMissing):
        replace_sources(IndexWriter(InMemoryStore(), embedder), "shelf", [], ["a.md"])


class Meanwhile(WordEmbedder):
    """Lets somebody else publish while texts are embedded."""

    def __init__(self, publish):
        super().__init__()
        self.publish = publish

    def embed(self, texts, *, time_budget_s):
        publish, self.publish = self.publish, lambda: None
        publish()
        return super().embed(texts, time_budget_s=time_budget_s)


def test_two_writers_of_different_documents_both_get_through(store):
    def other():
        replace_sources(IndexWriter(store, WordEmbedder()), "shelf", indexable(pages("b.md", "four", "neu")), ["b.md"])

    replace_sources(IndexWriter(store, Meanwhile(other)), "shelf", indexable([*A, *pages("a.md", "new")]), ["a.md"])
    assert held(store) == expected([*A, *pages("a.md", "new"), *pages("b.md", "four", "neu")])


@pytest.mark.parametrize("theirs", [["other"], []])
def test_of_two_writers_of_one_document_the_later_one_is_told(store, theirs):
    def other():
        replace_sources(IndexWriter(store, WordEmbedder()), "shelf", indexable(pages("a.md", *theirs)), ["a.md"])

    with pytest.raises(PublishConflict):
        replace_sources(IndexWriter(store, Meanwhile(other)), "shelf", indexable(pages("a.md", "new")), ["a.md"])
    assert held(store) == expected([*pages("a.md", *theirs), *B])
