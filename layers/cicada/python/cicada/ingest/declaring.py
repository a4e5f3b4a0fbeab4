"""A collection's declaration: the one beside the documents to load, or the published one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from cicada.corpus.declared.declaration import DECLARATION, SECTION, CollectionDeclaration
from cicada.corpus.declared.parsing import MAX_BYTES, read_declaration
from cicada.corpus.declared.sectioning import SectionRules
from cicada.errors import CorpusInvalid, DeclarationChanged, IndexCorrupt, IndexMismatch
from cicada.index.manifest import Manifest
from cicada.index.ports import ObjectStore
from cicada.index.versions import read_current
from cicada.index.writer import Declares
from cicada.ingest.contracts import Prepared, Recipe
from cicada.ingest.sources import SourceFiles

logger = logging.getLogger(__name__)


def declaration_of(found: SourceFiles, collection: str | None = None) -> CollectionDeclaration | None:
    """The declaration among the files of a load, if any. Raises CorpusInvalid if it is invalid, or another
    collection's; every line of the message names file, line and field."""
    if found.declaration is None:
        return None
    return declaration_in(found.declaration.path, name=str(found.declaration.path), collection=collection)


def declaration_in(path: Path, *, name: str, collection: str | None = None) -> CollectionDeclaration:
    """The declaration in a file. Raises as :func:`cicada.corpus.declared.parsing.read_declaration`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CorpusInvalid(f"{name}: cannot be read: {error.strerror}") from error
    return read_declaration(data, name=name, collection=collection)


def published_declaration(store: ObjectStore, collection: str) -> CollectionDeclaration | None:
    """The collection's declaration in the current version, if it can be read. Raises IndexUnavailable."""
    current = _current(store)
    return None if current is None else current.declaration(collection)


def as_published(recipe: Recipe, store: ObjectStore, collection: str) -> Recipe:
    """The recipe of a document that joins a collection: with its published sections. Raises IndexUnavailable."""
    return divided(recipe, published_declaration(store, collection))


def divided(recipe: Recipe, declaration: CollectionDeclaration | None) -> Recipe:
    """The recipe with the sections of a declaration."""
    return recipe.model_copy(update={"sections": None if declaration is None else SectionRules.of(declaration)})


def settled(
    recipe: Recipe,
    declaration: CollectionDeclaration | None,
    store: ObjectStore,
    collection: str,
    *,
    exactly: bool,
) -> tuple[Recipe, Declares]:
    """The recipe of a load, and what the collection declares from then on.

    A declaration beside the documents applies. Without one, a collection that is to hold exactly these documents
    declares nothing any more, and one that they are added to keeps its declaration. Raises CorpusInvalid if documents
    would be added to others with different sections, and IndexUnavailable if the store does not respond.
    """
    if exactly:
        return divided(recipe, declaration), declaration
    if declaration is None:
        return as_published(recipe, store, collection), "as before"
    if not _joins(rules_digest(declaration), _current(store), collection):
        raise CorpusInvalid(
            f"{DECLARATION}: its sections or names differ from the published ones of {collection}, which the documents "
            "already loaded would keep: load the folder as a whole, without adding to it"
        )
    return divided(recipe, declaration), declaration


def refuse_divided_otherwise(
    prepared: Sequence[Prepared], current: Manifest | None, collection: str, declares: Declares
) -> None:
    """Raise DeclarationChanged if documents that join others were divided by other rules than the collection
    declares: another writer has changed the declaration since they were prepared."""
    declared = rules_digest(None if current is None else current.declaration(collection))
    for one in prepared:
        if one.divided_by != declared and (declares == "as before" or not _joins(one.divided_by, current, collection)):
            raise DeclarationChanged(f"{collection} changed its sections or names after {one.source} was prepared")


def _joins(rules: str, current: Manifest | None, collection: str) -> bool:
    """Whether a collection is divided by these rules, or holds nothing."""
    if current is None or not current.of_collection(collection):
        return True
    return rules == rules_digest(current.declaration(collection))


def _current(store: ObjectStore) -> Manifest | None:
    """The current version's manifest, if there is one that can be read."""
    try:
        current = read_current(store)
    except (IndexCorrupt, IndexMismatch) as error:  # publishing will fail with it
        logger.warning("cannot use the index", exc_info=error)
        return None
    return None if current is None else current.manifest


def rules_digest(declaration: CollectionDeclaration | None) -> str:
    """The digest of a declaration's section rules, as prepared documents carry it."""
    return "" if declaration is None else SectionRules.of(declaration).digest()


def refuse_own_section(recipe: Recipe, metadata: Mapping[str, str]) -> None:
    """Raise CorpusInvalid if metadata sets the section in a collection that declares its sections."""
    if recipe.sections is not None and SECTION in metadata:
        raise CorpusInvalid(f"the metadata key {SECTION} is reserved: the collection declares its sections")
