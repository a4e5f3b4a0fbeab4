"""All passages of one document, in its order.

The index keeps passages in the order of writing, and an edit writes changed ones into a new segment.
:func:`in_order` restores the document's order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cicada.corpus.documents import SECTION_SEPARATOR
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import DocumentUnknown, IndexCorrupt
from cicada.index.loaded_index import LoadedIndex
from cicada.index.reader import IndexReader
from cicada.retrieval.ports import Degradation, Filters
from cicada.retrieval.shards import read_index, row_filter
from cicada.rights import Readable

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


@dataclass(frozen=True)
class WrittenPassage:
    """A segment's passage, and whether it is deleted."""

    passage: Passage
    deleted: bool = False


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
                raise IndexCorrupt(f"{damaged[0]} cannot be read: it may hold the document", key=damaged[0])
            raise DocumentUnknown(f"{collection} holds no document of that source")
        locator = passages[0].locator
        title = locator.title if isinstance(locator, DocumentLocator) else source
        told = "A part of the collection cannot be read: the document may have more passages there."
        degraded = (Degradation("partial_index", told),) if damaged else ()
        return DocumentPassages(title, passages, index.manifest.version, degraded)


def in_order(segments: Sequence[Sequence[WrittenPassage]]) -> list[Passage]:
    """A document's live passages in its order, from its segments' passages, oldest first, as written.

    The order is by page. On a page, or without pages, a later segment's passages go where their section has lost some,
    else to the section's end; a new section goes to the end of the one above it. So an edit at one place of a section
    is restored exactly. Edits at several places of a section end up together, and replacements of all its passages,
    once compaction has dropped these, as a new section.
    """
    order: list[WrittenPassage] = []
    for written in segments:
        stays = any(not one.deleted for one in order)
        order = _with(order, written) if stays else list(written)
    live = (one.passage for one in order if not one.deleted)
    return sorted(live, key=lambda one: (one.locator.page or 0) if isinstance(one.locator, DocumentLocator) else 0)


def _with(order: Sequence[WrittenPassage], later: Sequence[WrittenPassage]) -> list[WrittenPassage]:
    ends: dict[Section, int] = {(): len(order)}
    losses: dict[Section, int] = {}
    for place, one in enumerate(order, 1):
        section = _section(one.passage)
        ends.update(dict.fromkeys(_from_within(section), place))
        if one.deleted:
            losses[section] = place
    after: defaultdict[int, list[WrittenPassage]] = defaultdict(list)
    for one in later:
        section = _section(one.passage)
        place = losses.get(section) or next(ends[above] for above in _from_within(section) if above in ends)
        after[place].append(one)
    return [*after[0], *(one for place, before in enumerate(order, 1) for one in (before, *after[place]))]


def _passages(index: LoadedIndex, filters: Filters) -> tuple[Passage, ...]:
    where = row_filter(filters)
    if not index.scope(where).count:
        return ()
    scope = index.scope_with_deleted(where)
    rows = index.in_document_order(scope)
    segments: list[list[WrittenPassage]] = [[] for _ in scope.segments]
    for (segment, row), passage in zip(rows, index.passages(scope, rows), strict=True):
        alive = scope.alive[segment]
        segments[segment].append(WrittenPassage(passage, alive is not None and not alive[row]))
    return tuple(in_order(segments))


def _section(passage: Passage) -> Section:
    locator = passage.locator
    if isinstance(locator, DocumentLocator):
        return tuple(locator.section.split(SECTION_SEPARATOR)) if locator.section else ()
    return locator.episode_id, locator.chapter_id


def _from_within(section: Section) -> Iterator[Section]:
    """A section and those above it, the document itself last."""
    return (section[:depth] for depth in range(len(section), -1, -1))
