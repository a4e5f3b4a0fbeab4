"""Prepared documents on their way into a collection: which may come in, and what the report tells of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.corpus.indexable import Indexable
from cicada.errors import DocumentInvalid
from cicada.index.change import Places, Supply
from cicada.index.collection_snapshot import CollectionSnapshot, ContentDigests, IdDigests
from cicada.index.columns import MAX_FIELDS
from cicada.index.embedding import Vector
from cicada.index.ports import ObjectStore
from cicada.index.writer import Declares
from cicada.ingest.contracts import Quarantined, spans
from cicada.ingest.declaring import rules_digest
from cicada.ingest.prepared import PreparedFile, PreparedText

SLICE_BYTES = 64 * 2**20
"""Of passages with their parts, as JSON, that are in memory at once; a segment ends there. What is made of them while
a segment is written takes about twelve times as much."""
PARALLEL_READS = 8  # prepared documents read in parallel


@dataclass(frozen=True)
class Arrivals:
    """A :class:`~cicada.index.change.PassageStream` of prepared documents; memory: 28 bytes a passage, one slice."""

    store: ObjectStore
    files: Sequence[PreparedFile]

    @cached_property
    def ids(self) -> IdDigests:
        """See the port."""
        return np.concatenate([np.empty(0, dtype=np.uint64), *(file.ids for file in self.files)])

    @cached_property
    def contents(self) -> ContentDigests:
        """See the port."""
        return np.concatenate([np.empty((0, 2), dtype=np.uint64), *(file.contents for file in self.files)])

    def slices(self, chosen: Places, rows: int) -> list[Places]:
        """See the port."""
        sizes = np.concatenate([np.empty(0, dtype=np.int64), *(file.sizes for file in self.files)])[chosen]
        return [chosen[start:end] for start, end in spans(sizes.tolist(), rows, SLICE_BYTES)]

    def supply(self, places: Places) -> Supply:
        """See the port."""
        of_file = np.searchsorted(self._starts, places, side="right") - 1

        def read(number: int) -> PreparedText:
            chosen = places[of_file == number] - self._starts[number]
            return self.files[number].read(self.store, chosen.tolist())

        items: list[Indexable] = []
        known: dict[bytes, Vector] = {}
        with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="prepared-read") as pool:
            for text in pool.map(read, np.unique(of_file).tolist()):
                items += text.items
                known.update((item.recipe(), vector) for item, vector in zip(text.items, text.vectors, strict=True))
        return Supply(items, known)

    @cached_property
    def _starts(self) -> Places:
        return np.cumsum([0, *(file.count for file in self.files)])


@dataclass
class Admission:
    """The documents that go into a collection together, and those that conflict with another."""

    files: list[PreparedFile] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)


def admit(
    store: ObjectStore,
    files: Sequence[PreparedFile],
    held: CollectionSnapshot,
    staying: IdDigests,
    fields: Collection[str],
) -> Admission:
    """Admit documents in order; one that conflicts with an earlier one, or with what stays, is quarantined.

    Args:
        store: where the documents are, to name a passage.
        staying: the ids of what it holds that none of these documents replaces.
        fields: what that can be filtered by.

    Raises:
        IndexCorrupt, IndexUnavailable: a document cannot be read.
    """
    ids = np.concatenate([staying, *(file.ids for file in files)])
    unique = len(np.unique(ids)) == len(ids)
    taken = set() if unique else set(staying.tolist())
    owner: dict[int, str] = {}
    known = set(fields)
    found = Admission()
    for file in files:
        theirs = [] if unique else file.ids.tolist()
        shared = next((place for place, one in enumerate(theirs) if one in taken), None)
        if shared is not None:
            one = theirs[shared]
            other = owner.get(one) or held.source_of(one) or "a document without a source"
            passage = file.read(store, [shared]).items[0].passage
            found.quarantined.append(_invalid(file, f"its passage {passage.id} has an id that one of {other} has"))
        elif len(known | set(file.fields)) > MAX_FIELDS:
            told = f"with its metadata's keys the collection would have more than {MAX_FIELDS} fields to filter by"
            found.quarantined.append(_invalid(file, told))
        else:
            known.update(file.fields)
            taken.update(theirs)
            owner.update((one, file.source) for one in theirs)
            found.files.append(file)
    return found


def _invalid(file: PreparedFile, message: str) -> Quarantined:
    return Quarantined(source=file.source, code=DocumentInvalid.code, message=message)


KEPT_SECTIONS = "what the collection holds of it keeps the sections of the previous declaration"
KEPT_UNDIVIDED = "what the collection holds of it has no sections"


def counted_sections(found: Iterable[Mapping[str, int]], declares: Declares) -> dict[str, int]:
    """Passages by section; those that are declared are named even where they have none."""
    declared = declares.sections if isinstance(declares, CollectionDeclaration) else ()
    total = Counter({section.name: 0 for section in declared})
    for one in found:
        total.update(one)
    return dict(total)


def notes_of_kept(
    sources: Iterable[str], declares: Declares, before: CollectionDeclaration | None
) -> dict[str, tuple[str, ...]]:
    """Notes on documents that keep their passages, though the collection is divided otherwise from now on."""
    if declares == "as before" or rules_digest(declares) == rules_digest(before):
        return {}
    note = KEPT_UNDIVIDED if before is None else KEPT_SECTIONS
    return dict.fromkeys(sorted(sources), (note,))


def sum_of_costs(costs: Sequence[float | None]) -> float | None:
    """Costs together; None where one is not known."""
    return None if None in costs else sum(cost for cost in costs if cost is not None)
