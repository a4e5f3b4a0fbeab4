"""What an entity graph answers with: entities, the ties between them, and the passages that show these."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cicada.corpus.passages import Passage
from cicada.retrieval.ports import Degradation


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
    """A name that no passage that passes the filters names."""

    name: str
    closest: tuple[str, ...]
    """Names that they do name and that are most like it, the likest first."""


@dataclass(frozen=True)
class GraphAnswer:
    """What every answer of a graph says."""

    index_version: str
    total: int
    """Passages that pass the filters."""
    unknown: tuple[UnknownEntity, ...]
    """Names of the question that are not known; then nothing is told of them."""
    degraded: tuple[Degradation, ...]
    """Why this is less than the whole answer; empty when it is not."""


@dataclass(frozen=True)
class Cooccurring(GraphAnswer):
    """Entities that occur together."""

    entities: tuple[Entity, ...]
    """Those asked for that are known, in the order asked."""
    together: int
    """Passages that name all that were asked for; 0 where one of them is unknown, or none was asked for."""
    shown_by: tuple[Passage, ...]
    """Some of those passages."""
    ties: tuple[Tie, ...]
    """Most passages first; of equally many, the higher lift first."""
    complete: bool
    """False where there were too many pairs to look at all of them: then the ties are the best of those seen."""


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
    """Each as its ties from start to end, no entity twice; the shortest first, of one length those first whose weakest
    tie has most passages."""
    complete: bool
    """False where there were too many ways to follow all of them: then another may be as good."""
