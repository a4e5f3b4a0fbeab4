"""The ports of the steps from a question to its context, and the values that they exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.index.manifest import Manifest
from cicada.retrieval.ports import SearchLimits
from cicada.rights import Readable

MAX_NAMES = 12
"""Of a question, the surest; each is looked up in every chosen collection."""


@dataclass(frozen=True)
class Catalogue:
    """The declarations of one version of the index, as far as the asker may read their collections."""

    index_version: str
    collections: tuple[CollectionDeclaration, ...]
    """In the order of their names."""
    undeclared: tuple[str, ...] = ()
    """The version's collections without a declaration, which cannot be chosen, in the order of their names."""
    readable: Readable = field(kw_only=True)

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for equal declarations: the version, and whose declarations these are."""
        return (self.index_version, *(one.collection for one in self.collections))

    def find(self, collection: str) -> CollectionDeclaration | None:
        """The declaration of a collection, if it has one."""
        return next((one for one in self.collections if one.collection == collection), None)


@dataclass(frozen=True)
class CollectionChoice:
    """A collection that the question needs, and what it wants of it."""

    collection: str
    intention: str
    confidence: float
    """In [0, 1]."""


@dataclass(frozen=True)
class NamedEntity:
    """Who or what a question names."""

    name: str
    """As in the index where known, else as in the question."""
    confidence: float
    """In [0, 1]."""
    matched: str
    """The question's words."""
    by: Literal["model", "gazetteer"]


@dataclass(frozen=True)
class NamedSection:
    """One section of one collection in which an entity is found."""

    entity: str
    """As that collection's passages name it."""
    collection: str
    section: str
    confidence: float
    """In [0, 1]: how surely the question's name is this entity."""
    matched: str
    """The question's words."""
    passages: int
    """The number of passages there that name it."""
    spellings: tuple[str, ...] = ()
    """Every way in which these passages spell it; ``entity`` alone if empty."""

    @property
    def spelt(self) -> tuple[str, ...]:
        """What a search for the entity filters by."""
        return self.spellings or (self.entity,)


@dataclass(frozen=True)
class CollectionPlan:
    """What is asked of one collection."""

    collection: str
    choices: tuple[CollectionChoice, ...]
    sections: tuple[str, ...]
    """Those that the intentions need and those in which entities were found, each once."""
    places: tuple[NamedSection, ...]


class Selector(Protocol):
    """Chooses collections and intentions."""

    def select(self, question: str, catalogue: Catalogue, limits: SearchLimits) -> tuple[CollectionChoice, ...]:
        """What the question needs, surest first, none below the threshold. Notes uses of models on ``limits``.

        Raises ModelError, BudgetSpent, OutOfTime or Stopped.
        """


class Extractor(Protocol):
    """Finds who and what a question names."""

    def extract(self, question: str, catalogue: Catalogue, limits: SearchLimits) -> tuple[NamedEntity, ...]:
        """The distinct names, surest first, none below the threshold. Notes uses of models on ``limits``.

        Raises ModelError, BudgetSpent, OutOfTime, Stopped or IndexFailure.
        """


class Resolver(Protocol):
    """Finds where entities stand."""

    def resolve(
        self, names: Sequence[NamedEntity], collections: Sequence[str], limits: SearchLimits, *, readable: Readable
    ) -> tuple[NamedSection, ...]:
        """Every place of every name in those of these collections that may be read, in the order of the names.

        Raises IndexFailure, or OutOfTime without time left.
        """


def catalogue_of(manifest: Manifest, readable: Readable) -> Catalogue:
    """The declarations of a version that an asker may read, from its manifest."""
    seen = manifest.readable_by(readable)
    declared = tuple(one for one in manifest.declarations if one.collection in seen)
    undeclared = sorted(seen.difference(one.collection for one in declared))
    return Catalogue(manifest.version, declared, tuple(undeclared), readable=readable)
