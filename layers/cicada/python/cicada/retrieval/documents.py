"""All passages of one document, in its order."""

from __future__ import annotations

from dataclasses import dataclass

from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import DocumentUnknown
from cicada.index.loaded import LoadedIndex
from cicada.index.reader import IndexReader
from cicada.retrieval.ports import Filters
from cicada.retrieval.reading import read_index
from cicada.retrieval.shards import row_filter


@dataclass(frozen=True)
class DocumentPassages:
    """A document, as the index has it."""

    title: str
    passages: tuple[Passage, ...]
    index_version: str


class DocumentReader:
    """Reads documents back from the index."""

    def __init__(self, reader: IndexReader) -> None:
        """Take the index."""
        self._reader = reader

    def read(self, collection: str, source: str, workflow_id: str | None = None) -> DocumentPassages:
        """All passages of a document.

        Args:
            collection: that it is in.
            source: what it is known by there.
            workflow_id: only passages of this tenant or workflow; another's document is unknown.

        Raises:
            DocumentUnknown: there is none.
            IndexMissing, IndexCorrupt, IndexMismatch, IndexUnavailable: the index cannot be read.
        """
        metadata = {"source": (source,)} | ({"workflow_id": (workflow_id,)} if workflow_id is not None else {})
        filters = Filters(collections=(collection,), metadata=metadata)
        passages, index = read_index(self._reader, lambda index: _passages(index, filters))
        if not passages:
            raise DocumentUnknown(f"{collection} holds no document of that source")
        locator = passages[0].locator
        title = locator.title if isinstance(locator, DocumentLocator) else source
        return DocumentPassages(title, passages, index.manifest.version)


def _passages(index: LoadedIndex, filters: Filters) -> tuple[Passage, ...]:
    scope = index.scope(row_filter(filters))
    found = index.passages(scope, index.in_document_order(scope))
    # An edit writes its passages into a segment of their own: pages put them back where they belong.
    return tuple(sorted(found, key=_page))


def _page(passage: Passage) -> int:
    return (passage.locator.page or 0) if isinstance(passage.locator, DocumentLocator) else 0
