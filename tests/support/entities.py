"""Passages that name entities, and an index of them in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cicada.corpus.passages import Passage
from cicada.index.ports import ObjectStore
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passage


def naming(
    number: int, *entities: str, codes: Sequence[str] = (), collection: str = "script", **metadata: str
) -> Passage:
    """A passage that names entities and has codes."""
    update = {"entities": entities, "codes": tuple(codes), "metadata": metadata}
    return make_passage(number, collection=collection).model_copy(update=update)


def stored(*passages: Passage, segment_rows: int = 4, store: InMemoryStore | None = None) -> InMemoryStore:
    """An index of passages, in several segments."""
    store = store or InMemoryStore()
    for collection in dict.fromkeys(passage.collection for passage in passages):
        own = [passage for passage in passages if passage.collection == collection]
        IndexWriter(store, WordEmbedder(), segment_rows=segment_rows).replace(collection, indexable(own))
    return store


@contextmanager
def reading(store: ObjectStore, **options: Any) -> Iterator[IndexReader]:
    """A reader of an index, closed afterwards."""
    settings: dict[str, Any] = {
        "embedding_model_id": "test.words",
        "dimensions": 64,
        "refresh_interval_s": 3600,
        **options,
    }
    reader = IndexReader(store, **settings)
    try:
        yield reader
    finally:
        reader.close()
