"""What a view of the index holds, for people: its collections with episodes and sections, and their documents."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import TypeVar

import numpy as np

from cicada.corpus.documents import SECTION_SEPARATOR
from cicada.corpus.passages import DocumentLocator, Passage, ScriptLocator
from cicada.index.columns import EPISODE, SECTION_PATH, SOURCE, ValueColumn
from cicada.index.facets import count_values, load_field
from cicada.index.loaded_index import COLLECTION, PLACES, LoadedIndex, RowScope
from cicada.protocol.corpus import CollectionListed, DocumentListed, EpisodeListed, SectionListed

MAX_EPISODES = 100  # of one collection that are listed
MAX_SECTIONS = 50  # of one collection that are listed
MAX_DOCUMENT_SECTIONS = 20  # of one document that are listed
PAGE_DOCUMENTS = 50

_Made = TypeVar("_Made")


def collections_of(view: LoadedIndex) -> tuple[CollectionListed, ...]:
    """The collections of a view, by name. Raises IndexCorrupt or IndexUnavailable."""
    return tuple(
        _kept(view, ("collection", name), partial(_collection, view, name))
        for name in sorted(view.manifest.collections)
    )


@dataclass(frozen=True)
class DocumentsPage:
    """Documents of a collection, by source."""

    documents: tuple[DocumentListed, ...]
    """``original`` is false throughout: the index does not know which files are kept."""
    more: bool


def documents_of(view: LoadedIndex, collection: str, *, prefix: str = "", after: str = "") -> DocumentsPage:
    """At most :data:`PAGE_DOCUMENTS` documents whose sources begin with ``prefix`` and come after ``after``.

    Raises IndexCorrupt or IndexUnavailable.
    """
    scope = view.scope({COLLECTION: (collection,)})
    counts = _kept(view, ("documents", collection), partial(_sources, view, scope))
    sources = list(counts)
    start = max(bisect_right(sources, after), bisect_left(sources, prefix))
    found = list(takewhile(lambda source: source.startswith(prefix), sources[start : start + PAGE_DOCUMENTS + 1]))
    page = found[:PAGE_DOCUMENTS]
    titles, sections = _first_passages(view, scope, SOURCE, page), _sections_of(view, scope, page)
    return DocumentsPage(
        tuple(
            DocumentListed(
                source=source,
                title=title_of(titles[source], source),
                passages=counts[source],
                sections=sections.get(source, ()),
                original=False,
            )
            for source in page
        ),
        more=len(found) > len(page),
    )


def title_of(passage: Passage, source: str) -> str:
    """The title of a document, from one of its passages."""
    locator = passage.locator
    return locator.title or source if isinstance(locator, DocumentLocator) else source


def _kept(view: LoadedIndex, key: tuple[str, str], make: Callable[[], _Made]) -> _Made:
    """What was made of a view is kept with it: one value of each kind a collection."""
    if key not in view.derived:
        view.derived[key] = make()
    made: _Made = view.derived[key]
    return made


def _collection(view: LoadedIndex, name: str) -> CollectionListed:
    scope = view.scope({COLLECTION: (name,)})
    declared = view.manifest.declaration(name)
    episodes, sections = _episodes(view, scope), _sections(view, scope)
    return CollectionListed(
        name=name,
        title=None if declared is None else declared.title,
        description=None if declared is None else declared.description,
        passages=scope.count,
        documents=count_values(view, scope, SOURCE, 0).unique,
        episodes=episodes[:MAX_EPISODES],
        sections=sections[:MAX_SECTIONS],
        more_episodes=max(0, len(episodes) - MAX_EPISODES),
        more_sections=max(0, len(sections) - MAX_SECTIONS),
    )


def _episodes(view: LoadedIndex, scope: RowScope) -> tuple[EpisodeListed, ...]:
    """In the order of their ids, numbers in them by value."""
    counts = dict(count_values(view, scope, EPISODE, scope.count).values)
    ids = sorted(counts, key=lambda one: [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", one)])
    first = _first_passages(view, scope, EPISODE, ids[:MAX_EPISODES])
    return tuple(EpisodeListed(id=one, name=_episode_name(first.get(one)), passages=counts[one]) for one in ids)


def _episode_name(passage: Passage | None) -> str | None:
    return passage.locator.episode_name if passage and isinstance(passage.locator, ScriptLocator) else None


def _sections(view: LoadedIndex, scope: RowScope) -> tuple[SectionListed, ...]:
    counts: Counter[str] = Counter()
    for path, count in count_values(view, scope, SECTION_PATH, scope.count).values:
        counts[_first_heading(path)] += count
    ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return tuple(SectionListed(path=path, passages=count) for path, count in ranked)


def _first_heading(path: str) -> str:
    return path.partition(SECTION_SEPARATOR)[0]


def _sources(view: LoadedIndex, scope: RowScope) -> dict[str, int]:
    return dict(sorted(count_values(view, scope, SOURCE, scope.count).values))


def _first_passages(view: LoadedIndex, scope: RowScope, field: str, values: Sequence[str]) -> dict[str, Passage]:
    """A passage for each of these values of a field."""
    wanted, found = set(values), dict[str, tuple[int, int]]()
    for number, column in _columns(view, scope, field):
        if column is None or not wanted:
            continue
        allowed = scope.allowed[number]
        codes, rows = np.unique(column.codes if allowed is None else column.codes * allowed, return_index=True)
        for code, row in zip(codes.tolist(), rows.tolist(), strict=True):
            if code and (value := column.values[code - 1]) in wanted:
                found[value] = (number, row)
                wanted.discard(value)
    return dict(zip(found, view.passages(scope, list(found.values())), strict=True))


def _sections_of(view: LoadedIndex, scope: RowScope, sources: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The headings of the first level of documents, in their order as far as a segment tells it."""
    found: dict[str, dict[str, None]] = {source: {} for source in sources}
    view.load_places(scope)
    owners = dict(_columns(view, scope, SOURCE))
    for number, paths in _columns(view, scope, SECTION_PATH):
        owner = owners[number]
        if owner is None or paths is None:
            continue
        for source_code, path_code in _pairs_in_order(scope, number, owner, paths, found):
            headings = found[owner.values[source_code - 1]]
            if len(headings) < MAX_DOCUMENT_SECTIONS:
                headings[_first_heading(paths.values[path_code - 1])] = None
    return {source: tuple(headings) for source, headings in found.items()}


def _pairs_in_order(
    scope: RowScope, number: int, owner: ValueColumn, paths: ValueColumn, sources: Collection[str]
) -> list[tuple[int, int]]:
    """The distinct codes of source and path in a segment's rows of these sources, by their first place."""
    wanted = np.array([False, *(value in sources for value in owner.values)])
    rows = wanted[owner.codes] & (paths.codes > 0)
    allowed = scope.allowed[number]
    chosen = np.flatnonzero(rows if allowed is None else rows & allowed)
    places = np.frombuffer(scope.segments[number].sections.resident(PLACES) or b"", dtype="<u4")
    chosen = chosen[np.argsort(places[chosen], kind="stable")]
    pairs = np.stack([owner.codes[chosen].astype(np.int64), paths.codes[chosen].astype(np.int64)], axis=1)
    _, first = np.unique(pairs, axis=0, return_index=True)
    return [(int(source), int(path)) for source, path in pairs[np.sort(first)].tolist()]


def _columns(view: LoadedIndex, scope: RowScope, field: str) -> Iterator[tuple[int, ValueColumn | None]]:
    """A field of each segment of a scope, by the segment's number."""
    load_field(view, scope, field)
    for number, segment in enumerate(scope.segments):
        segment.columns.decode([field], view.rounds.gather(segment.columns.spans([field])))
        yield number, segment.columns.column(field)
