"""What is to become of a collection: which passages to write, and which rows to bury."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.indexable import Indexable
from cicada.errors import CorpusInvalid
from cicada.index.contents import content_digest, digests, id_digest
from cicada.index.held import Held, IdDigests, words


@dataclass(frozen=True)
class Change:
    """A change of one collection, planned upon what it holds in one version."""

    collection: str
    items: Sequence[Indexable]
    """To write: new or changed."""
    gone: IdDigests
    """Of the passages whose rows are to be deleted: changed or gone."""
    stands: Callable[[Held], bool]
    """Whether it still makes sense for what the collection holds after others have changed it."""


def replacement(collection: str, items: Sequence[Indexable], held: Held) -> Change:
    """The collection holds exactly these passages. It stands while nobody changes the collection's content."""
    changed = _changed(held, items)
    return Change(
        collection=collection,
        items=_chosen(items, changed),
        gone=np.setdiff1d(held.ids, _ids(items)[~changed]),
        stands=held.same_as,
    )


def addition(collection: str, items: Sequence[Indexable], held: Held) -> Change:
    """The collection has these passages, in place of those of their ids. It stands while nobody changes the same."""
    ids = _ids(items)
    before, changed = held.states(ids), _changed(held, items)
    return Change(
        collection=collection,
        items=_chosen(items, changed),
        gone=np.intersect1d(ids[changed], held.ids),
        stands=lambda current: np.array_equal(current.states(ids), before),
    )


def removal(collection: str, passage_ids: Collection[str], held: Held) -> Change:
    """The collection has no passages of these ids. It stands while nobody changes the same."""
    ids = np.unique(np.fromiter(map(id_digest, passage_ids), dtype=np.uint64, count=len(passage_ids)))
    before = held.states(ids)
    return Change(
        collection=collection,
        items=[],
        gone=np.intersect1d(ids, held.ids),
        stands=lambda current: np.array_equal(current.states(ids), before),
    )


def checked(collection: str, passages: Iterable[Indexable], *, empty: bool = True) -> list[Indexable]:
    """The passages, if they may be written to the collection together.

    Raises:
        CorpusInvalid: two have one id, one is of another collection, or there is none and that is not allowed.
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


def _ids(items: Sequence[Indexable]) -> IdDigests:
    return np.fromiter((id_digest(item.passage.id) for item in items), dtype=np.uint64, count=len(items))


def _changed(held: Held, items: Sequence[Indexable]) -> NDArray[np.bool_]:
    """Of each passage whether the collection does not hold it just so."""
    contents = words(digests(map(content_digest, items)))
    changed: NDArray[np.bool_] = (held.states(_ids(items)) != contents).any(axis=1)
    return changed


def _chosen(items: Sequence[Indexable], mask: NDArray[np.bool_]) -> list[Indexable]:
    return [item for item, chosen in zip(items, mask.tolist(), strict=True) if chosen]
