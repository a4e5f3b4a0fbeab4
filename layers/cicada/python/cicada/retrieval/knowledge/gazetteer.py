"""Finds known names in a question without a model. A background thread reads the names once a version."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, starmap
from typing import Protocol

from cicada.concurrency import THREADS, Concurrency
from cicada.corpus.declared.declaration import SECTION
from cicada.corpus.documents import SECTION_SEPARATOR
from cicada.corpus.passages import DocumentLocator
from cicada.defaults import MIN_ENTITY_CONFIDENCE
from cicada.errors import CicadaError, OutOfTime
from cicada.index.columns import METADATA
from cicada.index.facets import count_values
from cicada.index.list_columns import ENTITIES
from cicada.index.loaded_index import COLLECTION, LoadedIndex, RowScope
from cicada.index.reader import IndexReader
from cicada.models.ports import Stopped
from cicada.retrieval.knowledge.contracts import MAX_NAMES, Catalogue, NamedEntity
from cicada.retrieval.knowledge.gazetteer_names import KnownNames
from cicada.retrieval.knowledge.gazetteer_words import Filed
from cicada.retrieval.ports import UNLIMITED, SearchLimits
from cicada.retrieval.shards import read_index
from cicada.rights import Readable, Readers
from cicada.text.characters import folded
from cicada.text.terms import terms_of

logger = logging.getLogger(__name__)

NAMES_HELD = 8
"""Sets of collections whose names are held, by the filters and rights of questions."""


class NameSource(Protocol):
    """Knows the names of collections."""

    def names(self, catalogue: Catalogue, limits: SearchLimits) -> KnownNames:
        """The names of a catalogue's collections, perhaps with other readable ones', or of an earlier version.

        Raises IndexFailure, OutOfTime or Stopped if they cannot be read within the limits.
        """


@dataclass(frozen=True)
class _Held:
    index_version: str
    readers: Mapping[str, Readers | None]
    """Of its collections, as these declare them."""
    readable: Readable
    """Of the question that they were read for."""
    names: KnownNames

    def serves(self, catalogue: Catalogue) -> bool:
        """Whether it has all collections of a catalogue, and none that may not be read; perhaps of another version."""
        covers = all(one.collection in self.readers for one in catalogue.collections)
        return covers and all(starmap(catalogue.readable.allows_declared, self.readers.items()))

    def replaces(self, other: _Held) -> bool:
        """Whether this serves every question that the other serves."""
        return other.readable == self.readable and other.readers.keys() <= self.readers.keys()


class _Making:
    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.done = False
        self.failure: Exception | None = None


class IndexNames:
    """The entities of an index's passages, and the declared aliases. Thread-safe.

    A background thread reads them, about 45 microseconds of processor time a name. Meanwhile the previous version's
    names serve, which may lack new ones; found names are always looked up in the answering version. Only the first
    question, and the first after a new collection, waits.
    """

    def __init__(self, reader: IndexReader, *, concurrency: Concurrency = THREADS) -> None:
        self._reader = reader
        self._concurrency = concurrency
        self._changed = concurrency.condition()
        self._held: tuple[_Held, ...] = ()
        """Most recent first."""
        self._making: _Making | None = None

    def names(self, catalogue: Catalogue, limits: SearchLimits = UNLIMITED) -> KnownNames:
        """See the port. Fails only without held names; reading continues for later questions."""
        with self._changed:
            held = self._serving(catalogue)
            if held is None or held.index_version != catalogue.index_version:
                self._make_soon(catalogue)
        return self._awaited(catalogue, limits) if held is None else held.names

    def _serving(self, catalogue: Catalogue) -> _Held | None:
        """The held names that serve a catalogue, preferably of its own version."""
        serving = [one for one in self._held if one.serves(catalogue)]
        own = (one for one in serving if one.index_version == catalogue.index_version)
        return next(own, serving[0] if serving else None)

    def _awaited(self, catalogue: Catalogue, limits: SearchLimits) -> KnownNames:
        stopped: list[bool] = []

        def stop() -> None:
            with self._changed:
                stopped.append(True)
                self._changed.notify_all()

        forget = limits.on_stop(stop)
        try:
            with self._changed:
                while (held := self._serving(catalogue)) is None:
                    if stopped:
                        raise Stopped
                    left_s = limits.time_left_s()
                    if left_s <= 0:
                        raise OutOfTime("no time left to read the index's names")
                    making = self._make_soon(catalogue)
                    self._changed.wait(None if math.isinf(left_s) else left_s)
                    if making.failure is not None and making.catalogue == catalogue:
                        raise making.failure
                return held.names
        finally:
            forget()

    def _make_soon(self, catalogue: Catalogue) -> _Making:
        """Start reading a catalogue's names unless a read is under way; return the one under way."""
        if self._making is None:
            making = self._making = _Making(catalogue)
            self._concurrency.spawn(lambda: self._make(making), "index-names")
        return self._making

    def _make(self, making: _Making) -> None:
        made: _Held | None = None
        catalogue = making.catalogue
        try:
            names = read_index(self._reader, catalogue.readable, lambda index: known_names(index, catalogue))[0]
            readers = {one.collection: one.readers for one in catalogue.collections}
            made = _Held(catalogue.index_version, readers, catalogue.readable, names)
        except CicadaError as error:
            making.failure = error
            logger.warning("could not read the index's names", extra={"code": error.code, "why": str(error)})
        except Exception as error:
            making.failure = error  # raised in the waiting question
            logger.exception("could not read the index's names")
        with self._changed:
            if made is not None:
                others = (one for one in self._held if not made.replaces(one))
                self._held = (made, *others)[:NAMES_HELD]
            self._making = None
            self._changed.notify_all()


def known_names(index: LoadedIndex, catalogue: Catalogue) -> KnownNames:
    """The names of a catalogue's collections in a version of the index; raises IndexFailure if they are unreadable."""
    scope = index.scope({COLLECTION: tuple(one.collection for one in catalogue.collections)})
    unique = count_values(index, scope, ENTITIES, 0).unique
    entries = entry_names(index, catalogue)
    filed = [
        Filed(name, passages, folded(name) in entries)
        for name, passages in count_values(index, scope, ENTITIES, max(1, unique)).values
    ]
    aliases = [(name, others) for one in catalogue.collections for name, others in one.names.aliases.items()]
    return KnownNames(filed, aliases, counts=WordCounts(index, scope))


def entry_names(index: LoadedIndex, catalogue: Catalogue) -> frozenset[str]:
    """What has an entry of its own, by the innermost headings of the sections that name entities, folded.

    Raises IndexFailure if the sections are unreadable.
    """
    found: set[str] = set()
    for one in catalogue.collections:
        if not one.names.headings:
            continue
        scope = index.scope({COLLECTION: (one.collection,), METADATA + SECTION: one.names.headings})
        for passage in index.passages(scope, index.in_document_order(scope)):
            if isinstance(passage.locator, DocumentLocator) and passage.locator.section:
                found.add(folded(passage.locator.section.rpartition(SECTION_SEPARATOR)[2]))
    return frozenset(found)


class WordCounts:
    """How many passages of a scope have a word, in any of its forms. Safe for several threads."""

    def __init__(self, index: LoadedIndex, scope: RowScope) -> None:
        self._gather = index.rounds.gather
        self._parts = [segment.lexical for segment in scope.segments]

    def __call__(self, word: str) -> int:
        """Count, deleted passages included; raises IndexFailure if what is not in memory is unreadable."""
        return sum(self._in_part(number, word) for number in range(len(self._parts)))

    def _in_part(self, number: int, word: str) -> int:
        part = self._parts[number]
        terms: Sequence[bytes] = [
            term.encode() for language in part.languages for term in dict.fromkeys(terms_of(word, language).parts[:1])
        ]
        total = 0
        for term in dict.fromkeys(terms):
            known, entry = part.remembered(term)
            if not known and (block := part.dictionary.block_of(term)) is not None:
                (data,) = self._gather([part.block_span(block)])
                entry = part.look_up(term, part.block(data))
            total += 0 if entry is None else sum(entry.counts)
        return total


class Gazetteer:
    """Looks names up; see :class:`~cicada.retrieval.knowledge.gazetteer_names.KnownNames`. Thread-safe."""

    def __init__(self, names: NameSource, *, min_confidence: float = MIN_ENTITY_CONFIDENCE) -> None:
        self._names = names
        self._min_confidence = min_confidence

    def extract(self, question: str, catalogue: Catalogue, limits: SearchLimits) -> tuple[NamedEntity, ...]:
        """See the port. Takes time only where the names must be read first."""
        sure = (
            NamedEntity(one.name, one.confidence, one.matched, "gazetteer")
            for one in self._names.names(catalogue, limits).find(question)
            if one.confidence >= self._min_confidence
        )
        return tuple(islice(sure, MAX_NAMES))
