"""Prepared documents to be committed: which are admitted to a collection, and what the report says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
"""Of passages with their parts, as JSON, in memory at once; a segment ends there. Writing it takes about twelve times
as much."""
PARALLEL_READS = 8  # prepared documents read in parallel


@dataclass(frozen=True)
class Arrivals:
    """A :class:`~cicada.index.change.PassageStream` of prepared documents; memory: 28 bytes a passage, one slice."""

    store: ObjectStore
    files: Sequence[PreparedFile]

    @cached_property
    def ids(self) -> IdDigests:  # noqa: D102 (the port's contract)
        return np.concatenate([np.empty(0, dtype=np.uint64), *(file.ids for file in self.files)])

    @cached_property
    def contents(self) -> ContentDigests:  # noqa: D102
        return np.concatenate([np.empty((0, 2), dtype=np.uint64), *(file.contents for file in self.files)])

    def slices(self, chosen: Places, rows: int) -> list[Places]:  # noqa: D102
        sizes = np.concatenate([np.empty(0, dtype=np.int64), *(file.sizes for file in self.files)])[chosen]
        return [chosen[start:end] for start, end in spans(sizes.tolist(), rows, SLICE_BYTES)]

    def supply(self, places: Places) -> Supply:  # noqa: D102
        starts = np.cumsum([0, *(file.count for file in self.files)])
        of_file = np.searchsorted(starts, places, side="right") - 1

        def read(number: int) -> PreparedText:
            return self.files[number].read(self.store, (places[of_file == number] - starts[number]).tolist())

        items: list[Indexable] = []
        known: dict[bytes, Vector] = {}
        with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="prepared-read") as pool:
            for text in pool.map(read, np.unique(of_file).tolist()):
                items += text.items
                known.update((item.recipe(), vector) for item, vector in zip(text.items, text.vectors, strict=True))
        return Supply(items, known)


def admit(
    store: ObjectStore,
    files: Sequence[PreparedFile],
    held: CollectionSnapshot,
    staying: IdDigests,
    fields: Collection[str],
) -> tuple[list[PreparedFile], list[Quarantined]]:
    """Admit documents in order; one that conflicts with an earlier one, or with what stays, is quarantined.

    ``staying``: ids that the collection keeps; ``fields``: those that it can be filtered by. Raises IndexCorrupt or
    IndexUnavailable if a document cannot be read.
    """
    ids = np.concatenate([staying, *(file.ids for file in files)])
    unique = len(np.unique(ids)) == len(ids)  # the usual case: no set of Python integers is needed
    taken = set() if unique else set(staying.tolist())
    owner: dict[int, str] = {}
    known = set(fields)
    admitted: list[PreparedFile] = []
    quarantined: list[Quarantined] = []
    for file in files:
        theirs = [] if unique else file.ids.tolist()
        problem = None
        if not taken.isdisjoint(theirs):
            place, one = next((place, one) for place, one in enumerate(theirs) if one in taken)
            other = owner.get(one) or held.source_of(one) or "a document without a source"
            passage = file.read(store, [place]).items[0].passage
            problem = f"its passage {passage.id} has an id that one of {other} has"
        elif len(known | set(file.fields)) > MAX_FIELDS:
            problem = f"its metadata keys would give the collection more than {MAX_FIELDS} fields to filter by"
        if problem is not None:
            quarantined.append(Quarantined(source=file.source, code=DocumentInvalid.code, message=problem))
            continue
        known.update(file.fields)
        taken.update(theirs)
        owner |= dict.fromkeys(theirs, file.source)
        admitted.append(file)
    return admitted, quarantined


KEPT_SECTIONS = "what the collection holds of it keeps the sections of the previous declaration"
KEPT_UNDIVIDED = "what the collection holds of it has no sections"


def counted_sections(found: Iterable[Mapping[str, int]], declares: Declares) -> dict[str, int]:
    """Passages by section; declared sections are listed even if empty."""
    declared = declares.sections if isinstance(declares, CollectionDeclaration) else ()
    total = Counter({section.name: 0 for section in declared})
    for one in found:
        total.update(one)
    return dict(total)


def notes_of_kept(
    sources: Iterable[str], declares: Declares, before: CollectionDeclaration | None
) -> dict[str, tuple[str, ...]]:
    """Notes on documents that keep their passages, although the collection's sections have changed."""
    if declares == "as before" or rules_digest(declares) == rules_digest(before):
        return {}
    note = KEPT_UNDIVIDED if before is None else KEPT_SECTIONS
    return dict.fromkeys(sorted(sources), (note,))


def sum_of_costs(costs: Sequence[float | None]) -> float | None:
    """The sum; None if a cost is unknown."""
    return None if None in costs else sum(cost for cost in costs if cost is not None)
