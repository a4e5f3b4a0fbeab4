"""Planning a change of one collection: the passages to write, and the rows to delete.

A :class:`PassageStream` holds incoming passages: their digests are in memory, the rest is read when it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.indexable import Indexable
from cicada.errors import CorpusInvalid
from cicada.index.collection_snapshot import CollectionSnapshot, ContentDigests, IdDigests, as_integers
from cicada.index.embedding import Vector
from cicada.index.segment import content_digest, digests, id_digest

Places = NDArray[np.intp]  # positions in an intake


@dataclass(frozen=True)
class Supply:
    """Some of an intake's passages, whole."""

    items: Sequence[Indexable]
    known: Mapping[bytes, Vector]  # vectors by recipe, as far as they are made already


class PassageStream(Protocol):
    """Passages of one collection, no two with one id, in the order in which to write them."""

    @property
    def ids(self) -> IdDigests:
        """One for each passage."""

    @property
    def contents(self) -> ContentDigests:
        """Digests of each passage's content."""

    def slices(self, chosen: Places, rows: int) -> Sequence[Places]:
        """Cut the chosen passages into pieces that fit into memory and into segments of ``rows`` rows."""

    def supply(self, places: Places) -> Supply:
        """Read one of the :meth:`slices`. Raises IndexCorrupt or IndexUnavailable if it cannot be read."""


@dataclass(frozen=True)
class InMemory:
    """An :class:`PassageStream` of passages that are in memory."""

    items: Sequence[Indexable]
    known: Mapping[bytes, Vector]

    @cached_property
    def ids(self) -> IdDigests:  # noqa: D102 (the port's contract)
        return np.fromiter((id_digest(item.passage.id) for item in self.items), dtype=np.uint64, count=len(self.items))

    @cached_property
    def contents(self) -> ContentDigests:  # noqa: D102
        return as_integers(digests(map(content_digest, self.items)))

    def slices(self, chosen: Places, rows: int) -> list[Places]:  # noqa: D102
        return [chosen[start : start + rows] for start in range(0, len(chosen), rows)]

    def supply(self, places: Places) -> Supply:  # noqa: D102
        return Supply([self.items[place] for place in places.tolist()], self.known)


@dataclass(frozen=True)
class CollectionChange:
    """A change of one collection, planned upon what it holds in one version."""

    collection: str
    intake: PassageStream
    chosen: Places  # passages of the intake to write: the new and the changed ones
    gone: IdDigests  # passages whose rows to delete: the changed and the removed ones
    stands: Callable[[CollectionSnapshot], bool]
    """Whether the change still applies to what the collection holds after others have changed it."""


def replacement(
    collection: str, intake: PassageStream, snapshot: CollectionSnapshot, *, kept: Collection[str] = ()
) -> CollectionChange:
    """The collection holds exactly these passages, and what it has of the sources that are kept.

    It stands while nobody changes the collection's content. Raises CorpusInvalid if a kept passage has the same id as
    one of these.
    """
    changed = _changed(snapshot, intake)
    kept_ids = snapshot.ids_of(kept)
    _refuse_shared(collection, intake, kept_ids)
    gone = np.setdiff1d(snapshot.ids, np.concatenate([intake.ids[~changed], kept_ids]))
    return CollectionChange(collection, intake, np.flatnonzero(changed), gone, snapshot.same_as)


def addition(collection: str, intake: PassageStream, snapshot: CollectionSnapshot) -> CollectionChange:
    """The collection has these passages, in place of those with their ids. It stands while nobody changes the same."""
    ids = intake.ids
    before, changed = snapshot.states(ids), _changed(snapshot, intake)
    gone = np.intersect1d(ids[changed], snapshot.ids)
    return CollectionChange(
        collection, intake, np.flatnonzero(changed), gone, lambda current: np.array_equal(current.states(ids), before)
    )


def exchange(
    collection: str, intake: PassageStream, sources: Collection[str], snapshot: CollectionSnapshot
) -> CollectionChange:
    """The documents of these sources consist of exactly these passages. It stands while nobody changes the same.

    Raises CorpusInvalid if a passage has the id of one that another document has.
    """
    ids = intake.ids
    theirs = snapshot.ids_of(sources)
    _refuse_shared(collection, intake, np.setdiff1d(snapshot.ids, theirs))
    before, changed = snapshot.states(ids), _changed(snapshot, intake)

    def stands(current: CollectionSnapshot) -> bool:
        return np.array_equal(current.states(ids), before) and current.same_as(snapshot, of=sources)

    gone = np.setdiff1d(theirs, ids[~changed])
    return CollectionChange(collection, intake, np.flatnonzero(changed), gone, stands)


def removal(collection: str, passage_ids: Collection[str], snapshot: CollectionSnapshot) -> CollectionChange:
    """The collection has no passages with these ids. It stands while nobody changes the same."""
    ids = np.unique(np.fromiter(map(id_digest, passage_ids), dtype=np.uint64, count=len(passage_ids)))
    before = snapshot.states(ids)
    gone = np.intersect1d(ids, snapshot.ids)
    return CollectionChange(
        collection,
        InMemory([], {}),
        np.empty(0, dtype=np.intp),
        gone,
        lambda current: np.array_equal(current.states(ids), before),
    )


def checked(collection: str, passages: Iterable[Indexable], *, empty: bool = True) -> list[Indexable]:
    """The passages, if they may be written to the collection together.

    Raises CorpusInvalid if two have one id, one is of another collection, or there is none and that is not allowed.
    """
    items = list(passages)
    if not (items or empty):
        raise CorpusInvalid(f"{collection} would hold no passage")
    seen: dict[int, str] = {}
    for passage in (item.passage for item in items):
        if passage.collection != collection:
            raise CorpusInvalid(f"passage {passage.id} is of collection {passage.collection}, not {collection}")
        digest = id_digest(passage.id)
        if seen.get(digest) == passage.id:
            raise CorpusInvalid(f"two passages of {collection} have the id {passage.id}")
        if digest in seen:
            raise CorpusInvalid(f"the ids {seen[digest]} and {passage.id} of {collection} cannot be told apart")
        seen[digest] = passage.id
    return items


def _changed(snapshot: CollectionSnapshot, intake: PassageStream) -> NDArray[np.bool_]:
    """Which passages the collection lacks, or holds with other content."""
    changed: NDArray[np.bool_] = (snapshot.states(intake.ids) != intake.contents).any(axis=1)
    return changed


def _refuse_shared(collection: str, intake: PassageStream, others: IdDigests) -> None:
    shared = np.isin(intake.ids, others)
    if shared.any():
        raise CorpusInvalid(f"{int(shared.sum())} passages have ids that other documents of {collection} have")
