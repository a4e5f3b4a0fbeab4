"""Where entities stand: every section in which passages of the selected collections name what a question names.

The look-up is exact, over the live passages of all segments of a version. In each collection an entity is found by its
name, however it is spelt, or by one of its declared other names; where neither is there, by names that the question's
is a part of (*Tovin* finds *Tovin Ashgrove*), which is less sure.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cicada.corpus.declared.declaration import OTHER_SECTION, SECTION, CollectionDeclaration
from cicada.index.columns import METADATA, Mask
from cicada.index.facets import load_field
from cicada.index.list_part import Postings
from cicada.index.lists import ENTITIES
from cicada.index.loaded import COLLECTION, LoadedIndex, OpenSegment
from cicada.index.mentions import folded
from cicada.index.reader import IndexReader
from cicada.retrieval.knowledge.contracts import Catalogue, Named, Place
from cicada.retrieval.reading import read_index

PART_CONFIDENCE = 0.9
"""What a name's confidence is multiplied by where it is only a part of the entity's."""
MIN_PART_CHARS = 3
"""A shorter name is a part of too many."""
ANSWERS_HELD = 2_000
"""Names, each in one immutable collection of one version, whose places are remembered."""
NAMES_HELD = 200_000
"""Distinct names, over all segments, that are kept folded: about 150 bytes each."""

_ARTICLE = re.compile(r"^(?:the|an?) ")
_SECTION_FIELD = METADATA + SECTION


@dataclass(frozen=True)
class _Spot:
    """A section that names an entity, whoever asks for it."""

    entity: str
    section: str
    passages: int
    spellings: tuple[str, ...]
    whole: bool
    """The name that was looked for is the entity's, not only a part of it."""


class IndexResolver:
    """:class:`cicada.retrieval.knowledge.contracts.Resolver` over an index reader. Safe for several threads."""

    def __init__(
        self,
        reader: IndexReader,
        *,
        catalogue_of: Callable[[LoadedIndex], Catalogue],
        answers_held: int = ANSWERS_HELD,
        names_held: int = NAMES_HELD,
    ) -> None:
        """Take the index; nothing is read yet.

        Args:
            reader: holds the version that is looked in.
            catalogue_of: the declarations of a version: the other names, and which collections are immutable.
            answers_held: names whose places in immutable collections are remembered, those asked for last.
            names_held: distinct names of segments that are kept in folded form.
        """
        self._reader = reader
        self._catalogue_of = catalogue_of
        self._answers_held = answers_held
        self._names_held = names_held
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[str, str, str], tuple[_Spot, ...]] = OrderedDict()
        self._names: OrderedDict[str, Mapping[str, Sequence[int]]] = OrderedDict()

    def resolve(self, names: Sequence[Named], collections: Sequence[str]) -> tuple[Place, ...]:
        """See the port. Of an entity that two names lead to, the places are told once, of the surer name.

        Raises:
            IndexMissing, IndexCorrupt, IndexMismatch, IndexUnavailable: the index cannot serve it.
        """

        def found(index: LoadedIndex) -> tuple[Place, ...]:
            catalogue = self._catalogue_of(index)
            best: dict[tuple[str, str, str], Place] = {}
            for name in names:
                for collection in dict.fromkeys(collections):
                    for spot in self._spots(index, catalogue, collection, name.name):
                        place = _place(name, collection, spot)
                        key = (collection, place.section, folded(place.entity))
                        if key not in best or best[key].confidence < place.confidence:
                            best[key] = place
            return tuple(best.values())

        return read_index(self._reader, found)[0]

    def _spots(self, index: LoadedIndex, catalogue: Catalogue, collection: str, name: str) -> tuple[_Spot, ...]:
        """Where a collection names an entity; remembered where the collection is immutable, and readable as a whole."""
        declared = catalogue.find(collection)
        keeps = declared is not None and declared.immutable and not index.unreadable
        key = (index.manifest.version, collection, folded(name))
        if keeps:
            with self._lock:
                if (known := self._answers.get(key)) is not None:
                    self._answers.move_to_end(key)
                    return known
        spots = self._looked_up(index, collection, _other_names(name, catalogue.collections))
        if keeps:
            with self._lock:
                self._answers[key] = spots
                while len(self._answers) > self._answers_held:
                    self._answers.popitem(last=False)
        return spots

    def _looked_up(self, index: LoadedIndex, collection: str, wanted: frozenset[str]) -> tuple[_Spot, ...]:
        """The sections of a collection that name one of the folded names, or else one that these are a part of."""
        scope = index.scope({COLLECTION: (collection,)})
        load_field(index, scope, ENTITIES)
        load_field(index, scope, _SECTION_FIELD)
        parts: list[_Part] = []
        for segment, alive in zip(scope.segments, scope.allowed, strict=True):
            postings = segment.lists.postings(ENTITIES, index.rounds.gather)
            if postings is not None:
                segment.columns.decode([_SECTION_FIELD], index.rounds.gather(segment.columns.spans([_SECTION_FIELD])))
                parts.append(_Part(segment, postings, alive, self._names_of(segment, postings)))
        if spots := _spots(parts, lambda name: _bare(name) in wanted, whole=True):
            return spots
        patterns = [
            re.compile(rf"(?<![^\W_]){re.escape(one)}(?![^\W_])") for one in wanted if len(one) >= MIN_PART_CHARS
        ]
        return _spots(parts, lambda name: any(pattern.search(name) for pattern in patterns), whole=False)

    def _names_of(self, segment: OpenSegment, postings: Postings) -> Mapping[str, Sequence[int]]:
        """The values of a segment's entities by their folded form."""
        key = segment.entry.key
        with self._lock:
            if (known := self._names.get(key)) is not None:
                self._names.move_to_end(key)
                return known
        names: dict[str, list[int]] = {}
        for code, value in enumerate(postings.dictionary.values()):
            names.setdefault(folded(value), []).append(code)
        with self._lock:
            self._names[key] = names
            while len(self._names) > 1 and sum(map(len, self._names.values())) > self._names_held:
                self._names.popitem(last=False)
        return names


@dataclass(frozen=True)
class _Part:
    """What a segment tells of entities."""

    segment: OpenSegment
    postings: Postings
    alive: Mask | None
    names: Mapping[str, Sequence[int]]
    """Folded, with the values' numbers."""

    def sections(self, code: int) -> Counter[str]:
        """How many live passages of each section have a value."""
        starts = self.postings.dictionary.starts
        rows = self.postings.rows[int(starts[code]) : int(starts[code + 1])]
        rows = rows if self.alive is None else rows[self.alive[rows]]
        column = self.segment.columns.column(_SECTION_FIELD)
        if column is None:
            return Counter({OTHER_SECTION: len(rows)} if len(rows) else {})
        counts = np.bincount(column.codes[rows], minlength=len(column.values) + 1).tolist()
        found = Counter({value: count for value, count in zip(column.values, counts[1:], strict=True) if count})
        if counts[0]:
            found[OTHER_SECTION] += counts[0]
        return found


def _spots(parts: Sequence[_Part], fits: Callable[[str], bool], *, whole: bool) -> tuple[_Spot, ...]:
    """The sections of the names that fit, over all segments; names in their order, the sections of each in theirs."""
    spelt: dict[tuple[str, str], Counter[str]] = {}
    for part in parts:
        for name in filter(fits, part.names):
            for code in part.names[name]:
                value = part.postings.dictionary.value(code)
                for section, count in part.sections(code).items():
                    spelt.setdefault((name, section), Counter())[value] += count
    return tuple(
        _Spot(_most_frequent(counts), section, counts.total(), tuple(sorted(counts)), whole)
        for (_, section), counts in sorted(spelt.items())
    )


def _most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda value: (-counts[value], value))


def _other_names(name: str, declared: Iterable[CollectionDeclaration]) -> frozenset[str]:
    """A name and all that declarations say is the same, folded and without their articles."""
    wanted = {_bare(folded(name))}
    groups = [
        {_bare(folded(one)) for one in (entity, *aliases)}
        for declaration in declared
        for entity, aliases in declaration.names.aliases.items()
    ]
    for group in groups:
        if group & wanted:
            wanted |= group
    return frozenset(wanted)


def _bare(name: str) -> str:
    """A folded name without its article."""
    return _ARTICLE.sub("", name)


def _place(name: Named, collection: str, spot: _Spot) -> Place:
    confidence = name.confidence if spot.whole else name.confidence * PART_CONFIDENCE
    return Place(
        entity=spot.entity,
        collection=collection,
        section=spot.section,
        confidence=round(confidence, 4),
        matched=name.matched,
        passages=spot.passages,
        spellings=spot.spellings,
    )
