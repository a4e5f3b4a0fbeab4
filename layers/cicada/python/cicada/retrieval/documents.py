"""All passages of one document, in its order.

The index keeps passages in the order of writing, and an edit writes changed ones into a new segment.
:func:`document_rows` restores the document's order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cicada.corpus.documents import SECTION_SEPARATOR
from cicada.corpus.messages import LANGUAGE_KEY
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import DocumentUnknown, IndexCorrupt
from cicada.index.loaded_index import LoadedIndex, RowScope
from cicada.index.reader import IndexReader
from cicada.retrieval.ports import Degradation, Filters
from cicada.retrieval.shards import read_index, row_filter
from cicada.rights import Readable

BATCH_PASSAGES = 1_024  # of a document that are in memory at a time while its order is made

Section = tuple[str, ...]
"""The headings above a passage, outermost first."""


@dataclass(frozen=True)
class DocumentPassages:
    """A document, as the index has it."""

    title: str
    passages: tuple[Passage, ...]
    index_version: str
    degraded: tuple[Degradation, ...] = ()
    """Why some passages may be missing."""


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A row of a document, and what its place in the document depends on."""

    row: tuple[int, int]
    """The segment in the scope, and the row in it."""
    section: Section
    page: int
    language: str
    """Of a message in another language than the main one; else empty."""
    deleted: bool


class DocumentReader:
    """Reads documents back from the index."""

    def __init__(self, reader: IndexReader) -> None:
        self._reader = reader

    def read(
        self, collection: str, source: str, workflow_id: str | None = None, *, readable: Readable
    ) -> DocumentPassages:
        """All passages of a document, with this label if ``workflow_id`` is given.

        Raises DocumentUnknown, IndexCorrupt if it may be in an unreadable part of the collection, or another
        IndexFailure.
        """
        metadata = {"source": (source,)} | ({"workflow_id": (workflow_id,)} if workflow_id is not None else {})
        filters = Filters(collections=(collection,), metadata=metadata)
        passages, index = read_index(self._reader, readable, lambda index: _passages(index, filters))
        damaged = [entry.key for entry in index.unreadable if entry.collection == collection]
        if not passages:
            if damaged:
                raise IndexCorrupt(f"cannot read {damaged[0]}, which may contain the document", key=damaged[0])
            raise DocumentUnknown(f"{collection} has no document of this source")
        locator = passages[0].locator
        title = locator.title if isinstance(locator, DocumentLocator) else source
        told = "A part of the collection cannot be read: the document may have more passages there."
        degraded = (Degradation("partial_index", told),) if damaged else ()
        return DocumentPassages(title, passages, index.manifest.version, degraded)


def document_rows(index: LoadedIndex, scope: RowScope) -> list[DocumentRow]:
    """The live rows of one document, in its order. The scope includes deleted rows.

    The order is by page. On a page, or without pages, a later segment's passages go where their section has lost some,
    else to the section's end; a new section goes to the end of the one above it. So an edit at one place of a section
    is restored exactly. Edits at several places of a section end up together, and replacements of all its passages,
    once compaction has dropped these, as a new section.
    """
    order: list[DocumentRow] = []
    for written in _written(index, scope):
        stays = any(not one.deleted for one in order)
        order = _with(order, written) if stays else list(written)
    return sorted((one for one in order if not one.deleted), key=lambda one: one.page)


def _written(index: LoadedIndex, scope: RowScope) -> list[list[DocumentRow]]:
    """By segment, oldest first, its rows as written. Passages are read in batches: a document can have 100,000."""
    segments: list[list[DocumentRow]] = [[] for _ in scope.segments]
    rows = index.in_document_order(scope)
    for start in range(0, len(rows), BATCH_PASSAGES):
        batch = rows[start : start + BATCH_PASSAGES]
        for (segment, row), passage in zip(batch, index.passages(scope, batch), strict=True):
            alive = scope.alive[segment]
            segments[segment].append(_row(passage, (segment, row), alive is not None and not alive[row]))
    return segments


def _row(passage: Passage, row: tuple[int, int], deleted: bool) -> DocumentRow:
    locator = passage.locator
    if isinstance(locator, DocumentLocator):
        section = tuple(locator.section.split(SECTION_SEPARATOR)) if locator.section else ()
        return DocumentRow(row, section, locator.page or 0, "", deleted)
    language = passage.metadata.get(LANGUAGE_KEY, "")
    return DocumentRow(row, (locator.episode_id, locator.chapter_id), 0, language, deleted)


def _with(order: Sequence[DocumentRow], later: Sequence[DocumentRow]) -> list[DocumentRow]:
    ends: dict[Section, int] = {(): len(order)}
    losses: dict[Section, int] = {}
    for place, one in enumerate(order, 1):
        ends.update(dict.fromkeys(_from_within(one.section), place))
        if one.deleted:
            losses[one.section] = place
    after: defaultdict[int, list[DocumentRow]] = defaultdict(list)
    for one in later:
        place = losses.get(one.section) or next(ends[above] for above in _from_within(one.section) if above in ends)
        after[place].append(one)
    return [*after[0], *(one for place, before in enumerate(order, 1) for one in (before, *after[place]))]


def _passages(index: LoadedIndex, filters: Filters) -> tuple[Passage, ...]:
    where = row_filter(filters)
    if not index.scope(where).count:
        return ()
    scope = index.scope_with_deleted(where)
    return tuple(index.passages(scope, [one.row for one in document_rows(index, scope)]))


def _from_within(section: Section) -> Iterator[Section]:
    """A section and those above it, the document itself last."""
    return (section[:depth] for depth in range(len(section), -1, -1))
