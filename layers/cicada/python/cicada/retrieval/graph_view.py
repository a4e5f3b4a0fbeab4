"""One version's entities as one filter lets them be seen: what a question to the entity graph is answered from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from cicada.corpus.passages import Passage
from cicada.index.facets import most_frequent
from cicada.index.list_columns import Rows
from cicada.index.loaded_index import LoadedIndex, Scope
from cicada.index.mentions import ScopedMentions
from cicada.retrieval.closest_names import closest_names
from cicada.retrieval.entity_ties import Entity, Tie, UnknownEntity, tie
from cicada.retrieval.shards import partial_index
from cicada.text.normal import folded

CLOSEST = 5
"""Known names that an unknown one is answered with."""
MAX_COMPARED = 50_000
"""Of more names, the most frequent are compared with an unknown one."""

Pair = tuple[int, int, int]
"""Two entities, and how many passages name both."""


class GraphView:
    """Entities, by their numbers, and what is shown of them."""

    def __init__(
        self, index: LoadedIndex, scope: Scope, mentions: ScopedMentions, places: Sequence[int], show: int
    ) -> None:
        """Take a scope and its mentions.

        Args:
            index: the version.
            scope: the passages that pass the filters.
            mentions: in those of its segments that have some.
            places: of these segments in the scope.
            show: passages that are shown of one thing, at most.
        """
        self.mentions = mentions
        self._index = index
        self._scope = scope
        self._places = places
        self._show = show

    def told(self, unknown: tuple[UnknownEntity, ...]) -> dict[str, Any]:
        """What every answer says: the fields of :class:`~cicada.retrieval.entity_ties.GraphAnswer`."""
        return {
            "index_version": self._index.manifest.version,
            "total": self._scope.count,
            "unknown": unknown,
            "degraded": partial_index(self._index, "looked at"),
        }

    def resolved(self, names: Sequence[str]) -> tuple[list[int | None], tuple[UnknownEntity, ...]]:
        """The entity of each name, None for those that are not known, and these."""
        found = [self.mentions.find(name) for name in names]
        missing = dict.fromkeys(name for name, one in zip(names, found, strict=True) if one is None)
        return found, tuple(UnknownEntity(name, self._closest(name)) for name in missing)

    def entity(self, entity: int) -> Entity:
        """An entity as it is shown."""
        return Entity(self.mentions.name(entity), int(self.mentions.counts[entity]))

    def best_partners(self, entity: int, limit: int) -> tuple[list[Pair], int]:
        """The pairs of an entity with those that most passages name with it, and how many there are in all."""
        partners, counts = self.mentions.partners(entity)
        rarest_first = np.lexsort((partners, self.mentions.counts[partners], -counts))[:limit]
        chosen = zip(partners[rarest_first].tolist(), counts[rarest_first].tolist(), strict=True)
        return [(entity, partner, count) for partner, count in chosen], len(partners)

    def pairs_among(self, entities: Sequence[int]) -> list[Pair]:
        """The pairs of entities that passages name together; most passages first, then the higher lift."""
        counts = self.mentions.counts
        pairs = [(one, other, self.together([one, other])) for one, other in combinations(entities, 2)]
        met = [pair for pair in pairs if pair[2]]
        return sorted(met, key=lambda pair: (-pair[2], int(counts[pair[0]]) * int(counts[pair[1]]), pair))

    def together(self, entities: Sequence[int]) -> int:
        """How many passages name all of some entities."""
        return sum(map(len, self.mentions.rows_of_all(entities)))

    def ties(self, pairs: Sequence[Pair]) -> tuple[Tie, ...]:
        """Pairs as they are shown."""
        entities = {entity: self.entity(entity) for one, other, _ in pairs for entity in (one, other)}
        shown = self.shown_by([self.mentions.rows_of_all([one, other]) for one, other, _ in pairs])
        return tuple(
            tie(entities[one], entities[other], count, self._scope.count, passages)
            for (one, other, count), passages in zip(pairs, shown, strict=True)
        )

    def shown_by(self, rows: Sequence[Sequence[Rows]]) -> list[tuple[Passage, ...]]:
        """Of each of several sets of rows, given by segment, some passages; all are read at once."""
        chosen = [self._clearest(of_segments) for of_segments in rows]
        wanted = list(dict.fromkeys(pair for pairs in chosen for pair in pairs))
        passages = dict(zip(wanted, self._index.passages(self._scope, wanted), strict=True))
        return [tuple(passages[pair] for pair in pairs) for pairs in chosen]

    def _clearest(self, rows: Sequence[Rows]) -> list[tuple[int, int]]:
        """The rows that name the fewest entities, each as its segment in the scope and its row."""
        found: list[tuple[int, int, int]] = []
        for place, segment, of_segment in zip(self._places, self.mentions.mentions.segments, rows, strict=True):
            lengths = segment.lengths(of_segment)
            best = np.argsort(lengths, kind="stable")[: self._show]
            found += [(int(lengths[at]), place, int(of_segment[at])) for at in best.tolist()]
        return [(place, row) for _, place, row in sorted(found)[: self._show]]

    def _closest(self, name: str) -> tuple[str, ...]:
        frequent = most_frequent(self.mentions.counts, MAX_COMPARED).tolist()
        by_key = {self.mentions.key(entity): entity for entity in frequent}
        return tuple(self.mentions.name(by_key[key]) for key in closest_names(folded(name), by_key, CLOSEST))
