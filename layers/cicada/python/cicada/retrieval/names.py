"""Collections, episodes, documents and sections that a search is limited to, and that do not exist in what its asker
may read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from heapq import nsmallest
from itertools import chain

from cicada.errors import (
    CollectionUnknown,
    DocumentUnknown,
    EpisodeUnknown,
    IndexFailure,
    NameUnknown,
    SectionUnknown,
)
from cicada.index.columns import EPISODE, SECTION_PATH, SOURCE, headings_above
from cicada.index.facets import count_values
from cicada.index.loaded_index import LoadedIndex
from cicada.index.reader import IndexReader
from cicada.retrieval.ports import Degradation, Filters, Retriever, SearchQuery, SearchResult
from cicada.rights import Readable
from cicada.text.visible import visible

MAX_KNOWN = 10
"""Names of a kind that a message lists."""
MAX_NEAR = 3
"""Of these, names that are most like the first unknown one, wherever they are in the alphabet."""
MAX_COMPARED_CHARS = 30_000
"""Of all names together, up to which they are compared with an unknown one: long names of few letters take
up to two seconds, others a tenth of it."""
MAX_NAME_CHARS = 60
"""Of each of them."""


def unknown_names(view: LoadedIndex, filters: Filters) -> tuple[Degradation, ...]:
    """What to tell of the filter's unknown names. ``view`` is the asker's view of a version.

    Raises CollectionUnknown, EpisodeUnknown, DocumentUnknown or SectionUnknown if all of a kind are unknown, or
    IndexFailure.
    """
    degraded = _told(CollectionUnknown, "collection", filters.collections, frozenset(view.manifest.collections))
    if view.unreadable:  # the others may be in a segment that cannot be read
        return degraded
    for error, kind, field, names in (
        (EpisodeUnknown, "episode", EPISODE, filters.episodes),
        (DocumentUnknown, "document", SOURCE, filters.documents),
        (SectionUnknown, "section", SECTION_PATH, filters.sections),
    ):
        if names:
            degraded += _told(error, kind, names, _values(view, field))
    return degraded


def _values(view: LoadedIndex, field: str) -> frozenset[str]:
    """Listing them takes some milliseconds a million passages, so a view's are kept with it."""
    key = ("values", field)
    if key not in view.derived:
        scope = view.scope({})
        values: Iterable[str] = (value for value, _ in count_values(view, scope, field, scope.count).values)
        if field == SECTION_PATH:
            values = chain.from_iterable(map(headings_above, values))
        view.derived[key] = frozenset(values)
    found: frozenset[str] = view.derived[key]
    return found


def _told(error: type[NameUnknown], kind: str, names: Sequence[str], found: frozenset[str]) -> tuple[Degradation, ...]:
    unknown = [name for name in dict.fromkeys(names) if name not in found]
    if not unknown:
        return ()
    told = f"Unknown {kind} {_listed(unknown)}."
    if len(unknown) > 1:
        told = f"Unknown {kind}s {_listed(unknown)}."
    if not found.isdisjoint(names):
        return (Degradation(error.code, f"{told} Searched the others."),)
    near = get_close_matches(unknown[0], found, MAX_NEAR) if sum(map(len, found)) <= MAX_COMPARED_CHARS else []
    shown = sorted({*near, *nsmallest(MAX_KNOWN - len(near), found.difference(near))})
    exist = f" Available: {_listed(shown)}." if len(shown) == len(found) else f" Examples: {_listed(shown)}."
    raise error(f"unknown {kind}s: {len(unknown)}", told=told + exist * bool(shown), known=shown)


def _listed(names: Sequence[str]) -> str:
    shown = [_quoted(name) for name in names[:MAX_KNOWN]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _quoted(name: str) -> str:
    told = " ".join(visible(name).split())
    return f"“{told if len(told) <= MAX_NAME_CHARS else told[: MAX_NAME_CHARS - 1] + '…'}”"


class NameChecker:
    """Checks names against the current version, and unknown ones once more against the newest."""

    def __init__(self, reader: IndexReader) -> None:
        self._reader = reader

    def check(
        self, filters: Filters, readable: Readable, *, time_budget_s: float = math.inf
    ) -> tuple[Degradation, ...]:
        """What to tell of unknown names: see :func:`unknown_names`. Nothing if the index cannot be read."""
        if not filters.named:
            return ()
        try:
            if self._all_known(filters, readable, time_budget_s):
                return ()
            self._reader.refresh()  # a collection is not unknown because it is new
            return unknown_names(self._reader.current(time_budget_s).seen_by(readable), filters)
        except IndexFailure:
            return ()  # the search itself says what is wrong

    def _all_known(self, filters: Filters, readable: Readable, time_budget_s: float) -> bool:
        try:
            return not unknown_names(self._reader.current(time_budget_s).seen_by(readable), filters)
        except NameUnknown:
            return False


class NameCheckingRetriever:
    """A :class:`~cicada.retrieval.ports.Retriever` that tells unknown names, whatever the engine."""

    def __init__(self, retriever: Retriever, names: NameChecker) -> None:
        self._retriever = retriever
        self._names = names

    def search(self, query: SearchQuery) -> SearchResult:
        """See the port. Raises also as :func:`unknown_names`."""
        degraded = self._names.check(query.filters, query.readable, time_budget_s=query.limits.time_left_s() / 2)
        found = self._retriever.search(query)
        return replace(found, degraded=(*degraded, *found.degraded)) if degraded else found

    def version(self) -> str:
        """See the port."""
        return self._retriever.version()
