"""Changes of an index as the ingest makes them, of documents that are in memory; and the versions that come of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from cicada.corpus.indexable import Indexable
from cicada.index.change import InMemory, checked, exchange
from cicada.index.embedding import Vector
from cicada.index.ports import ObjectStore
from cicada.index.versions import history, read_current
from cicada.index.writer import IndexWriter, WriteResult


def replace_sources(
    writer: IndexWriter,
    collection: str,
    items: Iterable[Indexable],
    sources: Collection[str],
    *,
    known: Mapping[bytes, Vector] | None = None,
) -> WriteResult:
    """Publish a version in which the documents of these sources consist of exactly these passages."""
    action_handlers = InMemory(checked(collection, items), known or {})
    return writer.change(collection, lambda held: exchange(collection, action_handlers, sources, held))


def published_versions(store: ObjectStore) -> list[str]:
    """The ids of the versions that can be rolled back to, oldest first; the last one is the current."""
    current = read_current(store)
    return [] if current is None else [past.version for past in history(store, current.manifest)][::-1]
