"""Ties between entities, and the paths over ties from one entity to another.

Simple paths are searched level by level. Only entities from which the end is near enough are followed, and only the
:data:`KEPT` strongest beginnings of a level: this finds a path wherever there is one, in bounded work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cicada.corpus.passages import Passage
from cicada.index.mentions import ScopedMentions
from cicada.retrieval.ports import Degradation

MAX_HOPS = 6
"""Of one path."""
KEPT = 100
"""Beginnings of paths that are followed at a time."""
PARTNERS_HELD = 256
"""Entities whose partners are cached during a search."""


class _Beginning(NamedTuple):
    entities: tuple[int, ...]
    weakest: int
    """Passages of its weakest tie."""


def entity_paths(
    scoped: ScopedMentions, start: int, end: int, *, max_hops: int, limit: int
) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """The best simple paths between two different entities, each as its entities, and whether no other may be better.

    The shortest come first, of one length those with the strongest weakest tie.
    """
    search = _Search(scoped, end, max_hops)
    found: list[tuple[int, ...]] = []
    complete = True
    shortest = int(search.hops[start])
    if shortest > 0:
        for hops in range(shortest, max_hops + 1):
            level, whole = search.of_length(start, hops)
            complete &= whole
            found += [one.entities for one in level]
            if len(found) >= limit:
                break
    return tuple(found[:limit]), complete


class _Search:
    def __init__(self, scoped: ScopedMentions, end: int, max_hops: int) -> None:
        self.hops = scoped.hops_to(end, max_hops)
        self._scoped = scoped
        self._end = end
        self._partners_of = lru_cache(PARTNERS_HELD)(scoped.partners)
        last, ties = scoped.partners(end)
        self._tie_to_end = dict(zip(last.tolist(), ties.tolist(), strict=True))

    def of_length(self, start: int, hops: int) -> tuple[list[_Beginning], bool]:
        """Paths of so many hops, the strongest first, and whether none was left out."""
        beginnings = [_Beginning((start,), self._scoped.total)]
        complete = True
        for left in range(hops - 1, 0, -1):
            beginnings, whole = self._longer(beginnings, left)
            complete &= whole
        ended = [
            _Beginning((*one.entities, self._end), min(one.weakest, tie))
            for one in beginnings
            if (tie := self._tie_to_end.get(one.entities[-1])) is not None
        ]
        return sorted(ended, key=lambda one: (-one.weakest, one.entities)), complete

    def _longer(self, beginnings: list[_Beginning], left: int) -> tuple[list[_Beginning], bool]:
        """Beginnings with one entity more, from which the end is at most ``left`` hops away."""
        if not beginnings:
            return [], True
        sources, entities, weakest = [], [], []
        for number, one in enumerate(beginnings):
            partners, ties = self._partners_of(one.entities[-1])
            hops = self.hops[partners]
            near = (hops > 0) & (hops <= left) & ~np.isin(partners, one.entities)
            sources.append(np.full(np.count_nonzero(near), number))
            entities.append(partners[near])
            weakest.append(np.minimum(ties[near], one.weakest))
        source, entity, weak = map(np.concatenate, (sources, entities, weakest))
        best = np.lexsort((entity, source, -weak))[:KEPT]
        chosen = zip(source[best].tolist(), entity[best].tolist(), weak[best].tolist(), strict=True)
        longer = [_Beginning((*beginnings[at].entities, other), tie) for at, other, tie in chosen]
        return longer, len(entity) <= KEPT


@dataclass(frozen=True)
class Entity:
    """An entity, as most passages spell it."""

    name: str
    passages: int
    """That name it."""


@dataclass(frozen=True)
class Tie:
    """Two entities that passages name together."""

    first: Entity
    second: Entity
    passages: int
    """That name both."""
    lift: float
    """How many times as many these are as if the two were independent: n(ab) · n / (n(a) · n(b)), n passages in all."""
    npmi: float
    """The normalised pointwise mutual information, in [-1, 1]: 0 for independent ones, 1 for two that always occur
    together. (Bouma, Normalized (pointwise) mutual information in collocation extraction, 2009.)"""
    shown_by: tuple[Passage, ...]
    """Some of the passages that name both: those first that name the fewest others."""


def tie(first: Entity, second: Entity, passages: int, total: int, shown_by: tuple[Passage, ...]) -> Tie:
    """The tie of two entities that ``passages`` of ``total`` name together; at least one does."""
    lift = passages * total / (first.passages * second.passages)
    information = -math.log(passages / total)
    npmi = math.log(lift) / information if information > 0 else 1.0  # in all passages: always together
    return Tie(first, second, passages, lift, max(-1.0, min(1.0, npmi)), shown_by)


@dataclass(frozen=True)
class UnknownEntity:
    """A name in no passage that passes the filters."""

    name: str
    closest: tuple[str, ...]
    """The most similar names that are, best first."""


@dataclass(frozen=True)
class GraphAnswer:
    """What every answer of a graph says."""

    index_version: str
    total: int
    """Passages that pass the filters."""
    unknown: tuple[UnknownEntity, ...]
    """Unknown names of the question."""
    degraded: tuple[Degradation, ...]
    """Why this is incomplete, if it is."""


@dataclass(frozen=True)
class Cooccurring(GraphAnswer):
    """Entities that occur together."""

    entities: tuple[Entity, ...]
    """The known ones asked for, in the order asked."""
    together: int
    """Passages that name all that were asked for; 0 if one is unknown, or none was asked for."""
    shown_by: tuple[Passage, ...]
    """Some of those passages."""
    ties: tuple[Tie, ...]
    """Most passages first; of equally many, the higher lift first."""
    complete: bool
    """False if there were too many pairs to look at all: the ties are the best ones seen."""


@dataclass(frozen=True)
class Neighbours(GraphAnswer):
    """The entities that occur together with one."""

    entity: Entity | None
    """The one asked for; None if it is not known."""
    unique: int
    """How many neighbours it has, those not listed included."""
    ties: tuple[Tie, ...]
    """From the entity to its neighbours; most passages first, of equally many the higher lift first."""


@dataclass(frozen=True)
class Paths(GraphAnswer):
    """Ways from one entity to another."""

    start: Entity | None
    end: Entity | None
    paths: tuple[tuple[Tie, ...], ...]
    """Each as its ties from start to end, no entity twice, ordered as by :func:`entity_paths`."""
    complete: bool
    """False if there were too many ways to follow all: another may be as good."""


MIN_LIKENESS = 0.3
"""The least similarity of a suggestion."""
SAME_WORDS = 0.6
"""The least similarity of a name to one with all its words and more: *Oake* to *Mira Oake*."""


def closest_names(wanted: str, known: Iterable[str], limit: int) -> list[str]:
    """The names most similar to one, best first, by the Dice coefficient of their trigrams; case is significant.

    Source: Adamson and Boreham, The use of an association measure based on character structure, 1974.
    """
    grams, words = _trigrams(wanted), set(wanted.split())
    found: list[tuple[float, str]] = []
    for name in known:
        own = _trigrams(name)
        likeness = 2 * len(grams & own) / (len(grams) + len(own))
        if likeness < SAME_WORDS and likeness > 0:
            of_name = set(name.split())
            if words <= of_name or of_name <= words:
                likeness = SAME_WORDS
        if likeness >= MIN_LIKENESS:
            found.append((-likeness, name))
    return [name for _, name in sorted(found)[:limit]]


def _trigrams(name: str) -> set[str]:
    padded = f"  {name} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}
