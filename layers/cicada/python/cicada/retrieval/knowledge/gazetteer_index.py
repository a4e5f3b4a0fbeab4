"""The names that an index knows, read once a version."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from cicada.corpus.declared.declaration import SECTION
from cicada.corpus.documents import SECTION_SEPARATOR
from cicada.corpus.passages import DocumentLocator
from cicada.index.columns import METADATA
from cicada.index.facets import count_values
from cicada.index.lexical.words import terms_of
from cicada.index.lists import ENTITIES
from cicada.index.loaded import COLLECTION, LoadedIndex, Scope
from cicada.index.mentions import folded
from cicada.index.reader import IndexReader
from cicada.retrieval.knowledge.contracts import Catalogue
from cicada.retrieval.knowledge.gazetteer_names import KnownNames
from cicada.retrieval.knowledge.gazetteer_spellings import Filed
from cicada.retrieval.reading import read_index

NAMES_HELD = 4
"""Sets of collections whose names are held: of a version, and of some that a question's filters chose."""


class NameSource(Protocol):
    """Knows the names of collections."""

    def names(self, catalogue: Catalogue) -> KnownNames:
        """The names of a catalogue's collections. Once they are read, it reads nothing.

        Raises:
            IndexFailure: they cannot be read.
        """
        ...


class IndexNames:
    """The entities of an index's passages, and the aliases that collections declare. Safe for several threads.

    They are kept for the version that is searched now. Where that is a later one than the catalogue's its names are as
    good: whatever is found is looked up in the version that answers.
    """

    def __init__(self, reader: IndexReader) -> None:
        """Take the index. Nothing is read yet."""
        self._reader = reader
        self._held: dict[tuple[str, ...], KnownNames] = {}
        self._making = threading.Lock()

    def names(self, catalogue: Catalogue) -> KnownNames:
        """See the port.

        Raises:
            IndexMissing, IndexCorrupt, IndexMismatch, IndexUnavailable: the index cannot serve it.
        """
        collections = tuple(one.collection for one in catalogue.collections)
        key = (catalogue.index_version, *collections)
        held = self._held.get(key)
        if held is not None:
            return held
        with self._making:
            held = self._held.get(key)
            if held is None:
                held = read_index(self._reader, lambda index: known_names(index, catalogue))[0]
                kept = {one: names for one, names in self._held.items() if one[0] == catalogue.index_version}
                self._held = {**(kept if len(kept) < NAMES_HELD else {}), key: held}
        return held


def known_names(index: LoadedIndex, catalogue: Catalogue) -> KnownNames:
    """The names of a catalogue's collections in a version of the index.

    Raises:
        IndexCorrupt, IndexUnavailable: they had to be read, and could not be.
    """
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

    Raises:
        IndexCorrupt, IndexUnavailable: they had to be read, and could not be.
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

    def __init__(self, index: LoadedIndex, scope: Scope) -> None:
        """Take the passages."""
        self._gather = index.rounds.gather
        self._parts = [segment.lexical for segment in scope.segments]

    def __call__(self, word: str) -> int:
        """Count, deleted passages included; what is not in memory is read.

        Raises:
            IndexCorrupt, IndexUnavailable: it could not be read.
        """
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
