"""Passages on their way into a collection: what tells them apart is at hand, the rest is read as it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.indexable import Indexable
from cicada.index.contents import content_digest, digests, id_digest
from cicada.index.embedding import Vector
from cicada.index.held import ContentDigests, IdDigests, words

Places = NDArray[np.intp]
"""Positions in an intake."""


@dataclass(frozen=True)
class Supply:
    """Some of an intake's passages, whole."""

    items: Sequence[Indexable]
    known: Mapping[bytes, Vector]
    """Vectors by recipe, as far as they are made already."""


class Intake(Protocol):
    """Passages of one collection, no two of one id, in the order in which they are to be written."""

    @property
    def ids(self) -> IdDigests:
        """One a passage."""
        ...

    @property
    def contents(self) -> ContentDigests:
        """What each passage's content is known by."""
        ...

    def slices(self, chosen: Places, rows: int) -> Sequence[Places]:
        """Cut the chosen passages into pieces that fit into memory, and into segments of so many rows."""
        ...

    def supply(self, places: Places) -> Supply:
        """Read one of the :meth:`slices`.

        Raises:
            IndexCorrupt, IndexUnavailable: it cannot be read.
        """
        ...


@dataclass(frozen=True)
class InMemory:
    """An :class:`Intake` of passages that are in memory."""

    items: Sequence[Indexable]
    known: Mapping[bytes, Vector]

    @cached_property
    def ids(self) -> IdDigests:
        """See the port."""
        return np.fromiter((id_digest(item.passage.id) for item in self.items), dtype=np.uint64, count=len(self.items))

    @cached_property
    def contents(self) -> ContentDigests:
        """See the port."""
        return words(digests(map(content_digest, self.items)))

    def slices(self, chosen: Places, rows: int) -> list[Places]:
        """See the port."""
        return [chosen[start : start + rows] for start in range(0, len(chosen), rows)]

    def supply(self, places: Places) -> Supply:
        """See the port."""
        return Supply([self.items[place] for place in places.tolist()], self.known)
