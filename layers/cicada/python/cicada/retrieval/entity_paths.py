"""Paths from one entity to another, over others that a passage names together with the one before.

All simple paths of a length are looked for level by level. Only entities from which the end is still near enough are
followed, and of a level's beginnings the :data:`KEPT` strongest: so there is always a path where there is one, and the
work is bounded where there are millions.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from cicada.index.mentions import Counts, Entities, ScopedMentions

MAX_HOPS = 6
"""Of one path: what lies further apart has little to do with each other."""
KEPT = 100
"""Beginnings of paths that are followed at a time."""
PARTNERS_HELD = 256
"""Entities whose partners are remembered while paths are looked for."""


@dataclass(frozen=True)
class FoundPaths:
    """Paths, each as its entities from start to end."""

    paths: tuple[tuple[int, ...], ...]
    """The shortest first; of one length those first whose weakest tie is strongest."""
    complete: bool
    """Whether no other path can be among them."""


@dataclass(frozen=True)
class _Beginning:
    entities: tuple[int, ...]
    weakest: int
    """Passages of its weakest tie."""


def entity_paths(scoped: ScopedMentions, start: int, end: int, *, max_hops: int, limit: int) -> FoundPaths:
    """The simple paths between two different entities.

    Args:
        scoped: the mentions to go by.
        start: where paths begin.
        end: where they end.
        max_hops: of one path at most.
        limit: paths at most.
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
    return FoundPaths(tuple(found[:limit]), complete)


class _Search:
    def __init__(self, scoped: ScopedMentions, end: int, max_hops: int) -> None:
        self.hops = scoped.hops_to(end, max_hops)
        self._scoped = scoped
        self._end = end
        self._partners: OrderedDict[int, tuple[Entities, Counts]] = OrderedDict()
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

    def _partners_of(self, entity: int) -> tuple[Entities, Counts]:
        found = self._partners.pop(entity, None) or self._scoped.partners(entity)
        self._partners[entity] = found
        if len(self._partners) > PARTNERS_HELD:
            self._partners.popitem(last=False)
        return found
