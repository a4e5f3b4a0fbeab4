"""The context of an answer: distinct passages of all searches within a token budget.

The order: the best passage of every entity in every collection; passages plainly better than those of all intentions;
the best of every intention, so that a frequent name does not crowd out what is asked of it; the entities' other
sections; more of every intention; the rest by score. Every passage has its reasons, the weightiest first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from cicada.corpus.declared.declaration import OTHER_SECTION, SECTION
from cicada.corpus.passages import Passage
from cicada.protocol.events import Reason
from cicada.retrieval.knowledge.contracts import Catalogue, CollectionPlan, NamedSection
from cicada.retrieval.knowledge.querying import SearchHits, sections_of
from cicada.retrieval.ports import Degradation, Hit
from cicada.text.characters import folded, raised_apart

SURE_AN_INTENTION = 3
"""Passages of each intention that are considered at any score, as its sections have the answer."""
PLAINLY_BETTER = 0.2
"""The lead in score over all intentions' passages that lets another passage come before them."""
SURE_BETTER = 3
"""The most such passages."""
MAX_CONTEXT_PASSAGES = 32
"""Bounded by the event that shows them with their places and reasons."""
MAX_REASONS = 4
"""Of one passage, the weightiest."""
NAMED_LEFT_OUT = "named_left_out"
"""The code of named places without a passage in the context."""

_PlaceKey = tuple[str, str, str]
"""Collection, section and entity."""
_Named = tuple[NamedSection, Hit]
_WEIGHTS = {"entity": 0, "intention": 1, "similarity": 2}


@dataclass(frozen=True)
class Chosen:
    """A passage of the context, and why it is there."""

    hit: Hit
    why: tuple[Reason, ...]
    """The weightiest first: what is named in it, then what its section serves, then that it is near to the question."""


@dataclass(frozen=True)
class Context:
    """What an answer is written from."""

    chosen: tuple[Chosen, ...]
    """In the order in which they were admitted: if fewer are wanted, the last are the first to go."""
    found: int
    """Distinct passages that there were to choose from."""
    tokens: int
    """Of the chosen ones together."""
    degraded: tuple[Degradation, ...] = ()


@dataclass(frozen=True)
class _Candidate:
    hit: Hit
    why: tuple[Reason, ...]
    place: _PlaceKey | None = None
    """The place of an entity that it is the best passage of."""


class ContextAssembler:
    """Chooses passages within a token budget and a number."""

    def __init__(
        self,
        budget_tokens: int,
        tokens_of: Callable[[Hit], int],
        *,
        min_score: float,
        max_passages: int = MAX_CONTEXT_PASSAGES,
    ) -> None:
        """``budget_tokens`` bounds all passages together, but the first one may exceed it.

        ``tokens_of`` counts a passage with all that is shown of it. ``min_score`` in [0, 1] is for passages without a
        named entity or an intention.
        """
        self._budget_tokens = budget_tokens
        self._tokens_of = tokens_of
        self._min_score = min_score
        self._max_passages = max_passages

    def assemble(self, found: Sequence[SearchHits], plans: Sequence[CollectionPlan], catalogue: Catalogue) -> Context:
        """Choose from what was found, each passage once.

        Of several passages with the same words only the first is taken, unless another is at a named place of its own.
        A passage that does not fit with its surroundings is tried without.
        """
        reasons = _Reasons(plans, catalogue)
        chosen: list[Chosen] = []
        same: set[Hashable] = set()
        words: set[str] = set()
        held: set[_PlaceKey] = set()
        distinct: set[tuple[str, str]] = set()
        tokens = 0
        for one in self._in_order(found, reasons):
            passage = one.hit.passage
            distinct.add((passage.collection, passage.id))
            if len(chosen) == self._max_passages:
                continue
            repeats = _words(passage) in words and (one.place is None or one.place in held)
            if repeats or not same.isdisjoint(_identities(passage)):
                continue
            fitting = self._fitting(one.hit, self._budget_tokens - tokens, first=not chosen)
            if fitting is None:
                continue
            tokens += fitting[1]
            chosen.append(Chosen(fitting[0], one.why))
            same.update(_identities(passage))
            words.add(_words(passage))
            held |= _places(passage, plans) | ({one.place} if one.place else set())
        return Context(tuple(chosen), len(distinct), tokens, _left_out(_wanted(found, plans), held))

    def _in_order(self, found: Sequence[SearchHits], reasons: _Reasons) -> Iterator[_Candidate]:
        """Every hit that may be chosen, the weightiest first; one may come several times."""
        first, others = _by_collection(found)
        best, *further = _by_intention(found)
        plainly = max([self._min_score, *(hit.score + PLAINLY_BETTER for hit in best)])
        better = [hit for hit in _alike(found) if hit.score >= plainly][:SURE_BETTER]
        order: list[tuple[NamedSection | None, Hit]] = [
            *first,
            *((None, hit) for hit in (*better, *best)),
            *others,
            *((None, hit) for hit in (*chain(*further), *self._rest(found))),
        ]
        for place, hit in order:
            yield _Candidate(hit, reasons.of(hit.passage), None if place is None else _place_key(place))

    def _rest(self, found: Sequence[SearchHits]) -> list[Hit]:
        """All hits of entities, and all with the least score."""
        return _ranked(
            hit for one in found for hit in one.result.hits if one.asked.why == "entity" or hit.score >= self._min_score
        )

    def _fitting(self, hit: Hit, left_tokens: int, *, first: bool) -> tuple[Hit, int] | None:
        """The hit as it fits, and its tokens; None where it does not fit even by itself."""
        tokens = self._tokens_of(hit)
        if tokens <= left_tokens:
            return hit, tokens
        bare = replace(hit, passage=hit.passage.model_copy(update={"context": hit.passage.text}))
        tokens = self._tokens_of(bare)
        return (bare, tokens) if tokens <= left_tokens or first else None


class _Reasons:
    def __init__(self, plans: Sequence[CollectionPlan], catalogue: Catalogue) -> None:
        self._plans = {plan.collection: plan for plan in plans}
        self._catalogue = catalogue

    def of(self, passage: Passage) -> tuple[Reason, ...]:
        """The reasons, the weightiest first."""
        plan = self._plans.get(passage.collection)
        if plan is None:
            return (Reason(kind="similarity"),)
        section = section_of(passage)
        found = [
            Reason(
                kind="entity", name=place.entity, section=section, matched=place.matched, confidence=place.confidence
            )
            for place in plan.places
            if stands_in(passage, place)
        ]
        found += [
            Reason(kind="intention", name=choice.intention, section=section, confidence=choice.confidence)
            for choice in plan.choices
            if section in sections_of(choice, self._catalogue)
        ]
        found.sort(key=lambda reason: (_WEIGHTS[reason.kind], -(reason.confidence or 0.0)))
        return tuple(found[:MAX_REASONS]) or (Reason(kind="similarity", section=section),)


def section_of(passage: Passage) -> str:
    """The section of its collection in which a passage stands."""
    return passage.metadata.get(SECTION, OTHER_SECTION)


def stands_in(passage: Passage, place: NamedSection) -> bool:
    """Whether a passage is one of those that make a place of an entity."""
    here = passage.collection == place.collection and section_of(passage) == place.section
    return here and not set(place.spelt).isdisjoint(passage.entities)


def _identities(passage: Passage) -> Iterator[Hashable]:
    yield passage.collection, "id", passage.id
    whole = passage.locator.whole()
    if whole is not None:
        yield passage.collection, "whole", whole


def _words(passage: Passage) -> str:
    return folded(raised_apart(passage.text))


def _ranked(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: -hit.score)


def _alike(found: Sequence[SearchHits]) -> list[Hit]:
    return _ranked(hit for one in found if one.asked.why == "similarity" for hit in one.result.hits)


def _by_intention(found: Sequence[SearchHits]) -> list[list[Hit]]:
    """The best hits of all intentions, then their second ones, and so on."""
    of_intentions = [one.result.hits[:SURE_AN_INTENTION] for one in found if one.asked.why == "intention"]
    return [_ranked(hits[rank] for hits in of_intentions if rank < len(hits)) for rank in range(SURE_AN_INTENTION)]


def _by_collection(found: Sequence[SearchHits]) -> tuple[list[_Named], list[_Named]]:
    """The best passage of every entity in every collection, and those of its other sections; the surest names first."""
    named = [(one.asked.place, one.result.hits[0]) for one in found if one.asked.place and one.result.hits]
    first: dict[tuple[str, str], _Named] = {}
    others: list[_Named] = []
    for place, hit in sorted(named, key=lambda pair: (-pair[0].confidence, -pair[1].score)):
        key = (place.entity, place.collection)
        if key in first:
            others.append((place, hit))
        else:
            first[key] = (place, hit)
    return list(first.values()), others


def _place_key(place: NamedSection) -> _PlaceKey:
    return place.collection, place.section, place.entity


def _places(passage: Passage, plans: Iterable[CollectionPlan]) -> set[_PlaceKey]:
    """The places that a passage stands for."""
    return {_place_key(place) for plan in plans for place in plan.places if stands_in(passage, place)}


def _wanted(found: Sequence[SearchHits], plans: Iterable[CollectionPlan]) -> set[_PlaceKey]:
    """The places of what is named, but those whose passages the question's own filters hold back."""
    held_back = {_place_key(one.asked.place) for one in found if one.asked.place and not one.result.hits}
    return {_place_key(place) for plan in plans for place in plan.places} - held_back


def _left_out(wanted: set[_PlaceKey], held: set[_PlaceKey]) -> tuple[Degradation, ...]:
    if wanted <= held:
        return ()
    missing = len(wanted - held)
    told = f"What the question names stands in {len(wanted)} sections; {missing} of them found no room in the context."
    return (Degradation(NAMED_LEFT_OUT, told),)
