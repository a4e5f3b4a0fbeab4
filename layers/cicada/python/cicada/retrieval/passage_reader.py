"""Reads a passage with those around it, in the order of its document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cicada.corpus.messages import LANGUAGE_KEY
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import IndexCorrupt, PassageUnknown
from cicada.index.columns import EPISODE, SOURCE, Mask, RowFilter, fields_of
from cicada.index.loaded_index import COLLECTION, LoadedIndex, RowScope
from cicada.index.segment import ROW_IDS, id_digest
from cicada.retrieval.corpus_lists import title_of
from cicada.retrieval.documents import document_rows

ORDERS_HELD = 8  # documents of a view whose order is kept

Row = tuple[int, int]  # the segment in the scope, and the row in it


@dataclass(frozen=True)
class Surroundings:
    """A passage among its neighbours."""

    source: str
    """Of the document; of passages that name none, the id of their episode."""
    title: str
    passages: tuple[Passage, ...]
    at: int
    """The place of the passage that was asked for, from 0."""
    has_previous: bool
    has_next: bool

    def narrowed(self, first: int, end: int) -> Surroundings:
        """Only the passages from ``first`` up to ``end``, which include the one that was asked for."""
        return Surroundings(
            self.source,
            self.title,
            self.passages[first:end],
            self.at - first,
            self.has_previous or first > 0,
            self.has_next or end < len(self.passages),
        )


def read_around(view: LoadedIndex, passage_id: str, collection: str | None, *, before: int, after: int) -> Surroundings:
    """A passage with up to so many neighbours on each side.

    A message's neighbours are those in its language. Raises PassageUnknown, or IndexFailure.
    """
    asked = _find(view, passage_id, collection)
    where = _document(asked)
    order = _order(view, where, asked.metadata.get(LANGUAGE_KEY, ""))
    scope = view.scope_with_deleted(where)
    at = _place(view, scope, order, asked.id)
    first, end = max(0, at - before), min(len(order), at + after + 1)
    passages = view.passages(scope, order[first:end])
    source = fields_of(asked).get(SOURCE)
    if isinstance(asked.locator, DocumentLocator):
        title = title_of(asked, asked.locator.source)
    else:
        title = asked.locator.episode_name
    return Surroundings(
        source or asked.locator.fields()[EPISODE], title, tuple(passages), at - first, first > 0, end < len(order)
    )


def _find(view: LoadedIndex, passage_id: str, collection: str | None) -> Passage:
    scope = view.scope({COLLECTION: (collection,)} if collection else {})
    for row in _rows_of(view, scope, passage_id):
        (passage,) = view.passages(scope, [row])
        if passage.id == passage_id:
            return passage
    raise PassageUnknown("the passage does not exist, or the user may not read it")


def _rows_of(view: LoadedIndex, scope: RowScope, passage_id: str) -> list[Row]:
    """The live rows whose ids have the digest of this one, by collection."""
    found: list[tuple[str, Row]] = []
    for number, same in enumerate(_same_ids(view, scope, passage_id)):
        allowed = scope.allowed[number]
        rows = np.flatnonzero(same if allowed is None else same & allowed).tolist()
        found += [(scope.segments[number].entry.collection, (number, row)) for row in rows]
    return [row for _, row in sorted(found)]


def _same_ids(view: LoadedIndex, scope: RowScope, passage_id: str) -> Iterator[Mask]:
    """By segment, the rows whose ids have the digest of this one."""
    view.rounds.load_at_once([(segment.sections, ROW_IDS) for segment in scope.segments])
    wanted = np.uint64(id_digest(passage_id))
    for segment in scope.segments:
        data = segment.sections.resident(ROW_IDS) or b""
        if len(data) != 8 * segment.entry.count:
            raise IndexCorrupt(f"{segment.entry.key}: its ids do not match its rows", key=segment.entry.key)
        yield np.frombuffer(data, dtype="<u8") == wanted


def _document(passage: Passage) -> RowFilter:
    """The filter of the document that a passage stands in."""
    source = fields_of(passage).get(SOURCE)
    part = {SOURCE: (source,)} if source else {EPISODE: (passage.locator.fields()[EPISODE],)}
    return {COLLECTION: (passage.collection,), **part}


def _order(view: LoadedIndex, where: RowFilter, language: str) -> Sequence[Row]:
    """A document's live rows in its order, those in one language."""
    key = tuple(sorted((field, *values) for field, values in where.items()))
    orders: dict[object, list[tuple[str, Row]]] = view.derived.setdefault("orders", {})
    order = orders.get(key)
    if order is None:
        order = [(one.language, one.row) for one in document_rows(view, view.scope_with_deleted(where))]
        if len(orders) >= ORDERS_HELD:
            orders.clear()
        orders[key] = order
    return [row for one, row in order if one == language]


def _place(view: LoadedIndex, scope: RowScope, order: Sequence[Row], passage_id: str) -> int:
    """The place of a passage in its document's order."""
    same = list(_same_ids(view, scope, passage_id))
    for at, (number, row) in enumerate(order):
        if same[number][row] and view.passages(scope, [(number, row)])[0].id == passage_id:
            return at
    raise PassageUnknown("the document does not have this passage")
