"""The searches for a question: for each intention of each collection, and for everything that is named."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cicada.concurrency import Concurrency
from cicada.corpus.declared.declaration import SECTION
from cicada.retrieval.knowledge.contracts import Catalogue, CollectionChoice, CollectionPlan, NamedSection
from cicada.retrieval.ports import Retriever, SearchQuery, SearchResult


def plan_queries(
    choices: Sequence[CollectionChoice], places: Sequence[NamedSection], catalogue: Catalogue
) -> tuple[CollectionPlan, ...]:
    """One plan a collection: the chosen ones, surest first, then those that only an entity leads to.

    Choices without a declaration in the catalogue are dropped: they may be of an earlier version.
    """
    ranked = sorted((one for one in choices if sections_of(one, catalogue)), key=lambda one: -one.confidence)
    collections = dict.fromkeys([*(one.collection for one in ranked), *(one.collection for one in places)])
    return tuple(_plan(one, ranked, places, catalogue) for one in collections if catalogue.find(one) is not None)


def _plan(
    collection: str, ranked: Sequence[CollectionChoice], places: Sequence[NamedSection], catalogue: Catalogue
) -> CollectionPlan:
    surest: dict[str, CollectionChoice] = {}
    for choice in ranked:
        if choice.collection == collection:
            surest.setdefault(choice.intention, choice)
    found = tuple(one for one in places if one.collection == collection)
    needed = [section for choice in surest.values() for section in sections_of(choice, catalogue)]
    sections = tuple(dict.fromkeys([*needed, *(one.section for one in found)]))
    return CollectionPlan(collection, tuple(surest.values()), sections, found)


def sections_of(choice: CollectionChoice, catalogue: Catalogue) -> tuple[str, ...]:
    """The sections that a choice's intention needs; none where the catalogue does not have it."""
    declared = catalogue.find(choice.collection)
    intention = None if declared is None else declared.intention(choice.intention)
    return () if intention is None else tuple(dict.fromkeys(intention.sections))


LEAST_AN_INTENTION = 3
"""Least passages of an intention's search, however many intentions the collection has."""
AN_ENTITY = 3
"""Passages of an entity's search in one section."""
A_SECTION = 3
"""Passages of the search in sections that only an entity led to."""
MAX_PLACES = 40
"""Searched places of entities: one of each name in each collection, the surest first, then another one of each, and so
on. The result says how many are left out."""
AT_ONCE = 8
"""Parallel searches: they share the function's processor."""


@dataclass(frozen=True)
class CollectionQuery:
    """One search, and what it is for."""

    query: SearchQuery
    why: Literal["intention", "entity", "section", "similarity"]
    """``section`` searches sections that only an entity led to, ``similarity`` all allowed ones."""
    choice: CollectionChoice | None = None
    """Of an intention's search."""
    place: NamedSection | None = None
    """Of an entity's search."""


@dataclass(frozen=True)
class SearchHits:
    """A search's result."""

    asked: CollectionQuery
    result: SearchResult


def collection_queries(
    plans: Sequence[CollectionPlan], catalogue: Catalogue, asked: SearchQuery, *, passages_per_collection: int
) -> tuple[CollectionQuery, ...]:
    """The searches of the plans, filtered by collection and sections within the question's own filters.

    A collection's intentions share its ``passages_per_collection``.
    """
    queries = [query for plan in plans for query in _of_plan(plan, catalogue, asked, passages_per_collection)]
    places = _in_turn([place for plan in plans for place in plan.places])
    return (*queries, *(_of_place(place, asked) for place in places[:MAX_PLACES]))


def plain_query(asked: SearchQuery, collections: Sequence[str]) -> CollectionQuery:
    """A search by similarity alone, in some collections; in all that the question allows if none is given."""
    filters = replace(asked.filters, collections=tuple(collections)) if collections else asked.filters
    return CollectionQuery(replace(asked, filters=filters), "similarity")


def search_all(
    queries: Sequence[CollectionQuery], retriever: Retriever, concurrency: Concurrency
) -> tuple[SearchHits, ...]:
    """Run the searches side by side, :data:`AT_ONCE` at most, and return what they found in their order."""
    lanes = [range(first, len(queries), AT_ONCE) for first in range(min(AT_ONCE, len(queries)))]

    def run(lane: range) -> list[tuple[int, SearchHits]]:
        return [(at, SearchHits(queries[at], retriever.search(queries[at].query))) for at in lane]

    found = [one for lane in concurrency.each(run, lanes) for one in lane]
    return tuple(one for _, one in sorted(found, key=lambda pair: pair[0]))


def _of_plan(
    plan: CollectionPlan, catalogue: Catalogue, asked: SearchQuery, passages: int
) -> Iterator[CollectionQuery]:
    share = max(LEAST_AN_INTENTION, math.ceil(passages / max(1, len(plan.choices))))
    covered: set[str] = set()
    for choice in plan.choices:
        sections = sections_of(choice, catalogue)
        covered |= set(sections)
        yield CollectionQuery(_within(asked, plan.collection, sections, share), "intention", choice=choice)
    if included := tuple(section for section in plan.sections if section not in covered):
        yield CollectionQuery(_within(asked, plan.collection, included, A_SECTION), "section")


def _in_turn(places: Sequence[NamedSection]) -> list[NamedSection]:
    """Places in turn, so that an entity in many sections leaves room for others."""
    seen: Counter[tuple[str, str]] = Counter()
    turns: list[tuple[int, NamedSection]] = []
    for place in sorted(places, key=lambda place: -place.confidence):
        turns.append((seen[place.entity, place.collection], place))
        seen[place.entity, place.collection] += 1
    return [place for _, place in sorted(turns, key=lambda pair: pair[0])]


def _of_place(place: NamedSection, asked: SearchQuery) -> CollectionQuery:
    within = _within(asked, place.collection, (place.section,), AN_ENTITY)
    named = replace(within, filters=replace(within.filters, entities=place.spelt))
    return CollectionQuery(named, "entity", place=place)


def _within(asked: SearchQuery, collection: str, sections: Sequence[str], top_k: int) -> SearchQuery:
    """The question in sections of a collection, without a least score: chosen and named passages always count."""
    metadata: Mapping[str, tuple[str, ...]] = {**asked.filters.metadata, SECTION: tuple(sections)}
    filters = replace(asked.filters, collections=(collection,), metadata=metadata)
    return replace(asked, filters=filters, top_k=top_k, min_score=0.0)
