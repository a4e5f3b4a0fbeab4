"""Finds every section in which passages of the selected collections name an entity.

The look-up is exact, over the live passages of all segments of a version. In each collection an entity is found by its
name in any spelling, or a declared alias; else, less surely, by longer names (*Tovin* finds *Tovin Ashgrove*).
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cicada.corpus.declared.declaration import OTHER_SECTION, SECTION, CollectionDeclaration
from cicada.errors import OutOfTime
from cicada.index.columns import METADATA, Mask
from cicada.index.facets import load_field
from cicada.index.list_columns import ENTITIES, Postings
from cicada.index.loaded_index import COLLECTION, LoadedIndex, OpenSegment
from cicada.index.reader import IndexReader
from cicada.retrieval.knowledge.contracts import Catalogue, NamedEntity, NamedSection
from cicada.retrieval.ports import UNLIMITED, SearchLimits
from cicada.retrieval.shards import read_index
from cicada.rights import Readable
from cicada.text.characters import folded, stands_in, word_pattern
from cicada.text.names import bare_key, spelling_key

MIN_PART_CHARS = 3
"""Shorter names are parts of too many others."""


class SegmentNames:
    """A segment's entities by the keys of their names: about 400 bytes each. Immutable."""

    def __init__(self, values: Sequence[str]) -> None:
        self._codes: dict[str, list[int]] = {}
        self._with_article: dict[str, list[str]] = {}
        for code, value in enumerate(values):
            name, without = spelling_key(value), bare_key(value)
            self._codes.setdefault(name, []).append(code)
            if without != name:
                self._with_article.setdefault(without, []).append(name)
        self._having: dict[str, list[str]] = {}
        """By word."""
        for name in self._codes:
            for word in dict.fromkeys(word_pattern().findall(name)):
                self._having.setdefault(word, []).append(name)

    def __len__(self) -> int:
        """How many names."""
        return len(self._codes)

    def codes(self, name: str) -> Sequence[int]:
        """The numbers of the values that are a name, given as its key."""
        return self._codes[name]

    def whole(self, wanted: Iterable[str]) -> Iterator[str]:
        """The names that are, but for an article, one of these; all are keys."""
        for one in wanted:
            if one in self._codes:
                yield one
            yield from self._with_article.get(one, ())

    def with_part(self, wanted: Iterable[str]) -> Iterator[str]:
        """The names that one of these, of :data:`MIN_PART_CHARS` at least, is a part of, in whole words."""
        for one in wanted:
            words = word_pattern().findall(one)
            if not words or len(one) < MIN_PART_CHARS:
                continue
            rarest = min((self._having.get(word, ()) for word in words), key=len)
            yield from (name for name in rarest if stands_in(name, one))


class OtherNames:
    """The joined aliases of a version's declarations. Immutable.

    An entity that several collections declare is one, as are an entity and its declared alias. A shared alias (two
    captains) does not join its entities: it may mean any of them, and their own names do not mean it.
    """

    def __init__(self, declarations: Iterable[CollectionDeclaration]) -> None:
        aliases: defaultdict[str, set[str]] = defaultdict(set)
        self._owners: defaultdict[str, set[str]] = defaultdict(set)
        for declared in declarations:
            for entity, others in declared.names.aliases.items():
                name = bare_key(entity)
                aliases[name].update({bare_key(one) for one in others} - {name})
        for name in aliases:
            for other in aliases[name]:
                self._owners[other].add(name)
        self._names = _joined(aliases, self._owners)

    def of(self, name: str) -> frozenset[str]:
        """A name and its declared synonyms: their keys, without articles."""
        wanted = bare_key(name)
        if (own := self._names.get(wanted)) is not None:
            return own
        return frozenset({wanted}).union(*(self._names[owner] for owner in self._owners.get(wanted, ())))


def _joined(aliases: Mapping[str, set[str]], owners: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """By entity its names: its own, and those that no other entity has."""
    names: dict[str, frozenset[str]] = {}
    for entity in aliases:
        if entity not in names:
            same = _same_as(entity, aliases, owners)
            others = {other for one in same for other in aliases[one] if other not in aliases and owners[other] <= same}
            names.update(dict.fromkeys(same, frozenset(same | others)))
    return names


def _same_as(entity: str, aliases: Mapping[str, set[str]], owners: Mapping[str, set[str]]) -> set[str]:
    """An entity and those that declarations join with it, directly or by others."""
    same, left = {entity}, [entity]
    while left:
        one = left.pop()
        near = {other for other in aliases[one] if other in aliases and owners[other] == {one}}
        near |= owners.get(one, set()) if len(owners.get(one, ())) == 1 else set()
        left += near - same
        same |= near
    return same


PART_CONFIDENCE = 0.9
"""The factor of a name that is only a part of the entity's."""
MAX_PART_OF = 32
"""A part of more names in a collection identifies none of them."""
ANSWERS_HELD = 2_000
"""Cached places of names in immutable collections, least recently used dropped first."""
CATALOGUES_HELD = 16
"""Catalogues whose other names are in memory: one a version and set of readable collections."""
NAMES_HELD = 200_000
"""Names of segments in memory."""

_SECTION_FIELD = METADATA + SECTION


@dataclass(frozen=True)
class _Spot:
    """A section that names an entity."""

    entity: str
    section: str
    passages: int
    spellings: tuple[str, ...]
    whole: bool
    """Whether the name is the entity's whole name, not a part of it."""


class IndexResolver:
    """:class:`cicada.retrieval.knowledge.contracts.Resolver` over an index reader. Safe for several threads."""

    def __init__(
        self,
        reader: IndexReader,
        *,
        catalogue_of: Callable[[LoadedIndex, Readable], Catalogue],
        answers_held: int = ANSWERS_HELD,
        names_held: int = NAMES_HELD,
    ) -> None:
        """``catalogue_of`` gives a version's declarations: aliases, and which collections are immutable."""
        self._reader = reader
        self._catalogue_of = catalogue_of
        self._answers_held = answers_held
        self._names_held = names_held
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[tuple[str, ...], str, str], tuple[_Spot, ...]] = OrderedDict()
        self._names: OrderedDict[str, SegmentNames] = OrderedDict()
        self._other_names: OrderedDict[tuple[str, ...], OtherNames] = OrderedDict()
        """Of the catalogues that were last looked in."""

    def resolve(
        self,
        names: Sequence[NamedEntity],
        collections: Sequence[str],
        limits: SearchLimits = UNLIMITED,
        *,
        readable: Readable,
    ) -> tuple[NamedSection, ...]:
        """See the port. The places of an entity with two names come once, by the surer name."""

        def found(index: LoadedIndex) -> tuple[NamedSection, ...]:
            catalogue = self._catalogue_of(index, readable)
            best: dict[tuple[str, str, str], NamedSection] = {}
            for name in names:
                for collection in dict.fromkeys(collections):
                    if limits.time_left_s() <= 0:
                        raise OutOfTime("no time left to resolve names")
                    for spot in self._spots(index, catalogue, collection, name.name):
                        place = _place(name, collection, spot)
                        key = (collection, place.section, folded(place.entity))
                        if key not in best or best[key].confidence < place.confidence:
                            best[key] = place
            return tuple(best.values())

        return read_index(self._reader, readable, found)[0]

    def _spots(self, index: LoadedIndex, catalogue: Catalogue, collection: str, name: str) -> tuple[_Spot, ...]:
        """Where a collection names an entity; cached for a fully readable, immutable collection."""
        declared = catalogue.find(collection)
        keeps = declared is not None and declared.immutable and not index.unreadable
        key = (catalogue.key, collection, folded(name))
        if keeps:
            with self._lock:
                if (known := self._answers.get(key)) is not None:
                    self._answers.move_to_end(key)
                    return known
        spots = self._looked_up(index, collection, self._all_names(name, catalogue))
        if keeps:
            with self._lock:
                self._answers[key] = spots
                while len(self._answers) > self._answers_held:
                    self._answers.popitem(last=False)
        return spots

    def _looked_up(self, index: LoadedIndex, collection: str, wanted: frozenset[str]) -> tuple[_Spot, ...]:
        """The sections with one of the names, else with names that these are a part of."""
        scope = index.scope({COLLECTION: (collection,)})
        load_field(index, scope, ENTITIES)
        load_field(index, scope, _SECTION_FIELD)
        parts: list[_Part] = []
        for segment, alive in zip(scope.segments, scope.allowed, strict=True):
            postings = segment.lists.postings(ENTITIES, index.rounds.gather)
            if postings is not None:
                segment.columns.decode([_SECTION_FIELD], index.rounds.gather(segment.columns.spans([_SECTION_FIELD])))
                parts.append(_Part(segment, postings, alive, self._names_of(segment, postings)))
        if spots := _found_at(((part, part.names.whole(wanted)) for part in parts), whole=True):
            return spots
        having = [(part, tuple(part.names.with_part(wanted))) for part in parts]
        if len({name for _, names in having for name in names}) > MAX_PART_OF:
            return ()
        return _found_at(having, whole=False)

    def _all_names(self, name: str, catalogue: Catalogue) -> frozenset[str]:
        """A name and what the catalogue's declarations say is the same."""
        with self._lock:
            others = self._other_names.pop(catalogue.key, None) or OtherNames(catalogue.collections)
            self._other_names[catalogue.key] = others
            if len(self._other_names) > CATALOGUES_HELD:
                self._other_names.popitem(last=False)
        return others.of(name)

    def _names_of(self, segment: OpenSegment, postings: Postings) -> SegmentNames:
        key = segment.entry.key
        with self._lock:
            if (known := self._names.get(key)) is not None:
                self._names.move_to_end(key)
                return known
        names = SegmentNames(postings.dictionary.values())
        with self._lock:
            self._names[key] = names
            while len(self._names) > 1 and sum(map(len, self._names.values())) > self._names_held:
                self._names.popitem(last=False)
        return names


@dataclass(frozen=True)
class _Part:
    segment: OpenSegment
    postings: Postings
    alive: Mask | None
    names: SegmentNames

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


def _found_at(found: Iterable[tuple[_Part, Iterable[str]]], *, whole: bool) -> tuple[_Spot, ...]:
    """The sections of names, found in segments; the names in their order, the sections of each in theirs."""
    spelt: dict[tuple[str, str], Counter[str]] = {}
    for part, names in found:
        for name in dict.fromkeys(names):
            for code in part.names.codes(name):
                value = part.postings.dictionary.value(code)
                for section, count in part.sections(code).items():
                    spelt.setdefault((name, section), Counter())[value] += count
    return tuple(
        _Spot(_most_frequent(counts), section, counts.total(), tuple(sorted(counts)), whole)
        for (_, section), counts in sorted(spelt.items())
    )


def _most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda value: (-counts[value], value))


def _place(name: NamedEntity, collection: str, spot: _Spot) -> NamedSection:
    confidence = name.confidence if spot.whole else name.confidence * PART_CONFIDENCE
    return NamedSection(
        entity=spot.entity,
        collection=collection,
        section=spot.section,
        confidence=round(confidence, 4),
        matched=name.matched,
        passages=spot.passages,
        spellings=spot.spellings,
    )
