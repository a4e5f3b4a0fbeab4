"""What is to become of a collection: which passages to write, and which rows to bury."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cicada.corpus.indexable import Indexable
from cicada.errors import CorpusInvalid
from cicada.index.contents import id_digest
from cicada.index.held import Held, IdDigests
from cicada.index.intake import Intake, Places


@dataclass(frozen=True)
class Change:
    """A change of one collection, planned upon what it holds in one version."""

    collection: str
    intake: Intake
    chosen: Places
    """To write: what is new or changed of the intake."""
    gone: IdDigests
    """Of the passages whose rows are to be deleted: changed or gone."""
    stands: Callable[[Held], bool]
    """Whether it still makes sense for what the collection holds after others have changed it."""


def replacement(collection: str, intake: Intake, held: Held, *, kept: Collection[str] = ()) -> Change:
    """The collection holds exactly these passages, beside what it has of the sources that are kept.

    It stands while nobody changes the collection's content.

    Raises:
        CorpusInvalid: a passage has the id of one that is kept.
    """
    changed = _changed(held, intake)
    kept_ids = held.ids_of(kept)
    _refuse_shared(collection, intake, kept_ids)
    return Change(
        collection=collection,
        intake=intake,
        chosen=np.flatnonzero(changed),
        gone=np.setdiff1d(held.ids, np.concatenate([intake.ids[~changed], kept_ids])),
        stands=held.same_as,
    )


def addition(collection: str, intake: Intake, held: Held) -> Change:
    """The collection has these passages, in place of those of their ids. It stands while nobody changes the same."""
    ids = intake.ids
    before, changed = held.states(ids), _changed(held, intake)
    return Change(
        collection=collection,
        intake=intake,
        chosen=np.flatnonzero(changed),
        gone=np.intersect1d(ids[changed], held.ids),
        stands=lambda current: np.array_equal(current.states(ids), before),
    )


def exchange(collection: str, intake: Intake, sources: Collection[str], held: Held) -> Change:
    """The documents of these sources consist of exactly these passages. It stands while nobody changes the same.

    Raises:
        CorpusInvalid: a passage has the id of one that another document has.
    """
    ids = intake.ids
    theirs = held.ids_of(sources)
    _refuse_shared(collection, intake, np.setdiff1d(held.ids, theirs))
    before, changed = held.states(ids), _changed(held, intake)

    def stands(current: Held) -> bool:
        return np.array_equal(current.states(ids), before) and current.same_as(held, of=sources)

    return Change(
        collection=collection,
        intake=intake,
        chosen=np.flatnonzero(changed),
        gone=np.setdiff1d(theirs, ids[~changed]),
        stands=stands,
    )


def removal(collection: str, passage_ids: Collection[str], intake: Intake, held: Held) -> Change:
    """The collection has no passages of these ids. It stands while nobody changes the same."""
    ids = np.unique(np.fromiter(map(id_digest, passage_ids), dtype=np.uint64, count=len(passage_ids)))
    before = held.states(ids)
    return Change(
        collection=collection,
        intake=intake,
        chosen=np.empty(0, dtype=np.intp),
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


def _changed(held: Held, intake: Intake) -> NDArray[np.bool_]:
    """Of each passage whether the collection does not hold it just so."""
    changed: NDArray[np.bool_] = (held.states(intake.ids) != intake.contents).any(axis=1)
    return changed


def _refuse_shared(collection: str, intake: Intake, others: IdDigests) -> None:
    shared = np.isin(intake.ids, others)
    if shared.any():
        raise CorpusInvalid(f"{int(shared.sum())} passages have ids that other documents of {collection} have")
