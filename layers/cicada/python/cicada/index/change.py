"""Plans a change of one collection: the passages to write, and the rows to delete.

The digests of a :class:`PassageStream` are in memory; its passages are read when they are written.
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

Places = NDArray[np.intp]  # positions in a PassageStream


@dataclass(frozen=True)
class Supply:
    """Some passages of a stream, in memory."""

    items: Sequence[Indexable]
    known: Mapping[bytes, Vector]  # vectors by recipe that are made already


class PassageStream(Protocol):
    """Passages of one collection with distinct ids, in the order in which to write them."""

    @property
    def ids(self) -> IdDigests:
        """A digest of each passage's id."""

    @property
    def contents(self) -> ContentDigests:
        """A digest of each passage's content."""

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
    """A change of one collection, planned on its content in one version."""

    collection: str
    stream: PassageStream
    chosen: Places  # new and changed passages, to write
    gone: IdDigests  # changed and removed passages, whose rows to delete
    still_applies: Callable[[CollectionSnapshot], bool]  # to what others made of the collection


def replacement(
    collection: str, stream: PassageStream, snapshot: CollectionSnapshot, *, kept: Collection[str] = ()
) -> CollectionChange:
    """The collection holds exactly these passages and those of the kept sources. Applies while it is unchanged.

    Raises CorpusInvalid if a kept passage has the id of one of these.
    """
    changed = _changed(snapshot, stream)
    kept_ids = snapshot.ids_of(kept)
    _refuse_shared(collection, stream, kept_ids)
    gone = np.setdiff1d(snapshot.ids, np.concatenate([stream.ids[~changed], kept_ids]))
    return CollectionChange(collection, stream, np.flatnonzero(changed), gone, snapshot.same_as)


def addition(collection: str, stream: PassageStream, snapshot: CollectionSnapshot) -> CollectionChange:
    """The passages replace those with their ids. Applies while these ids are unchanged."""
    changed = _changed(snapshot, stream)
    gone = np.intersect1d(stream.ids[changed], snapshot.ids)
    return CollectionChange(collection, stream, np.flatnonzero(changed), gone, _unchanged(snapshot, stream.ids))


def exchange(
    collection: str, stream: PassageStream, sources: Collection[str], snapshot: CollectionSnapshot
) -> CollectionChange:
    """The documents of these sources consist of exactly these passages. Applies while both are unchanged.

    Raises CorpusInvalid if a passage has the id of another document's passage.
    """
    theirs = snapshot.ids_of(sources)
    _refuse_shared(collection, stream, np.setdiff1d(snapshot.ids, theirs))
    changed, same_ids = _changed(snapshot, stream), _unchanged(snapshot, stream.ids)

    def still_applies(current: CollectionSnapshot) -> bool:
        return same_ids(current) and current.same_as(snapshot, of=sources)

    gone = np.setdiff1d(theirs, stream.ids[~changed])
    return CollectionChange(collection, stream, np.flatnonzero(changed), gone, still_applies)


def removal(collection: str, passage_ids: Collection[str], snapshot: CollectionSnapshot) -> CollectionChange:
    """The collection has no passages with these ids. Applies while these ids are unchanged."""
    ids = np.unique(np.fromiter(map(id_digest, passage_ids), dtype=np.uint64, count=len(passage_ids)))
    gone, nothing = np.intersect1d(ids, snapshot.ids), np.empty(0, dtype=np.intp)
    return CollectionChange(collection, InMemory([], {}), nothing, gone, _unchanged(snapshot, ids))


def checked(collection: str, passages: Iterable[Indexable], *, empty: bool = True) -> list[Indexable]:
    """The passages as a list.

    Raises CorpusInvalid if two have one id, one is of another collection, or there is none and ``empty`` is False.
    """
    items = list(passages)
    if not (items or empty):
        raise CorpusInvalid(f"{collection} would have no passages")
    seen: dict[int, str] = {}
    for passage in (item.passage for item in items):
        if passage.collection != collection:
            raise CorpusInvalid(f"passage {passage.id} belongs to collection {passage.collection}, not {collection}")
        digest = id_digest(passage.id)
        if seen.get(digest) == passage.id:
            raise CorpusInvalid(f"duplicate passage id {passage.id} in {collection}")
        if digest in seen:
            raise CorpusInvalid(f"the ids {seen[digest]} and {passage.id} of {collection} have the same digest")
        seen[digest] = passage.id
    return items


def _changed(snapshot: CollectionSnapshot, stream: PassageStream) -> NDArray[np.bool_]:
    """Which passages the collection lacks, or has with other content."""
    changed: NDArray[np.bool_] = (snapshot.states(stream.ids) != stream.contents).any(axis=1)
    return changed


def _unchanged(snapshot: CollectionSnapshot, ids: IdDigests) -> Callable[[CollectionSnapshot], bool]:
    """Tells whether a later snapshot holds the same of these passages."""
    before = snapshot.states(ids)
    return lambda current: np.array_equal(current.states(ids), before)


def _refuse_shared(collection: str, stream: PassageStream, others: IdDigests) -> None:
    shared = np.isin(stream.ids, others)
    if shared.any():
        raise CorpusInvalid(f"{int(shared.sum())} passages have ids that other documents of {collection} have")
