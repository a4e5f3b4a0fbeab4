"""The context of an answer: what all searches brought, each passage once, as much as a budget of tokens takes.

What was named is kept first: the best passage of every entity in every collection. Then come the best of every
intention, so that a name that stands everywhere does not crowd out what is asked of it, and before them what is plainly
better than all that the intentions brought; then the entities' other sections, more of every intention, and the rest by
score. Every passage says why it is there, the weightiest reason first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cicada.corpus.declared.declaration import OTHER_SECTION, SECTION
from cicada.corpus.passages import Passage
from cicada.protocol.events import Reason
from cicada.retrieval.knowledge.contracts import Catalogue, CollectionPlan, NamedSection
from cicada.retrieval.knowledge.querying import SearchHits, sections_of
from cicada.retrieval.ports import Degradation, Hit
from cicada.text.normal import folded, raised_apart

SURE_AN_INTENTION = 3
"""Passages of each intention that are considered whatever their score: its sections are where the answer stands."""
PLAINLY_BETTER = 0.2
"""How much more than the best of all intentions a passage must score that none of them vouches for, to come before
them."""
SURE_BETTER = 3
"""Such passages that come before them; others come by their score."""
MAX_CONTEXT_PASSAGES = 32
"""However small they are: with where each stands and why it is there, the event that shows them must hold them all."""
MAX_REASONS = 4
"""Told of one passage, the weightiest."""
NAMED_LEFT_OUT = "named_left_out"
"""The code of places of what is named that are not in the context."""

_PlaceKey = tuple[str, str, str]
"""Collection, section and entity."""
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
    """Chooses passages within a budget of tokens, and of a number."""

    def __init__(
        self,
        budget_tokens: int,
        tokens_of: Callable[[Hit], int],
        *,
        min_score: float,
        max_passages: int = MAX_CONTEXT_PASSAGES,
    ) -> None:
        """Bound the context.

        Args:
            budget_tokens: of all passages together; a single one may have more, where it is the first.
            tokens_of: a passage's tokens, with all that is shown of it.
            min_score: for a passage that no name and no intention vouches for, in [0, 1].
        """
        self._budget_tokens = budget_tokens
        self._tokens_of = tokens_of
        self._min_score = min_score
        self._max_passages = max_passages

    def assemble(self, found: Sequence[SearchHits], plans: Sequence[CollectionPlan], catalogue: Catalogue) -> Context:
        """Choose from what was found.

        A passage comes once. Of several with the same words the first is taken, and another one only where it is what
        stands at a place of its own of something named. What does not fit with its surroundings is tried without.
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
        named = [
            (one.asked.place, one.result.hits[0]) for one in found if one.asked.place is not None and one.result.hits
        ]
        first, others = _by_collection(named)
        of_intentions = [one.result.hits[:SURE_AN_INTENTION] for one in found if one.asked.why == "intention"]
        best, *further = [
            sorted((hits[rank] for hits in of_intentions if rank < len(hits)), key=lambda hit: -hit.score)
            for rank in range(SURE_AN_INTENTION)
        ]
        plainly = max([self._min_score, *(hit.score + PLAINLY_BETTER for hit in best)])
        alike = [hit for one in found if one.asked.why == "similarity" for hit in one.result.hits]
        better = sorted((hit for hit in alike if hit.score >= plainly), key=lambda hit: -hit.score)[:SURE_BETTER]
        yield from (_Candidate(hit, reasons.of(hit.passage), _place_key(place)) for place, hit in first)
        yield from (_Candidate(hit, reasons.of(hit.passage)) for hit in (*better, *best))
        yield from (_Candidate(hit, reasons.of(hit.passage), _place_key(place)) for place, hit in others)
        yield from (_Candidate(hit, reasons.of(hit.passage)) for hits in further for hit in hits)
        rest = [
            hit for one in found for hit in one.result.hits if one.asked.why == "entity" or hit.score >= self._min_score
        ]
        yield from (_Candidate(hit, reasons.of(hit.passage)) for hit in sorted(rest, key=lambda hit: -hit.score))

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


def _by_collection(
    named: Sequence[tuple[NamedSection, Hit]],
) -> tuple[list[tuple[NamedSection, Hit]], list[tuple[NamedSection, Hit]]]:
    """The best passage of every entity in every collection, and those of its other sections; the surest names first."""
    first: dict[tuple[str, str], tuple[NamedSection, Hit]] = {}
    others: list[tuple[NamedSection, Hit]] = []
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
