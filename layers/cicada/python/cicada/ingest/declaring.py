"""What a collection declares of itself: found beside its documents, or published with those that it has."""

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
    """What the declaration among the files of a load says; None where there is none. Raises CorpusInvalid if it cannot
    be read, is no declaration, or is another collection's; every line of the message names file, line and field."""
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
    """What the current version's collection declares, as far as that can be read. Raises IndexUnavailable if the store
    does not respond."""
    current = _current(store)
    return None if current is None else current.declaration(collection)


def as_published(recipe: Recipe, store: ObjectStore, collection: str) -> Recipe:
    """The recipe by which a document that is loaded by itself joins a collection: in the sections that it has. Raises
    IndexUnavailable if the store does not respond."""
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

    What stands beside the documents counts. Where nothing does, a collection that is to hold exactly these documents
    declares nothing any more, and one that they are added to goes on as before. Raises CorpusInvalid if documents are
    to be added to others, which are divided otherwise than the declaration says, and IndexUnavailable if the store does
    not respond.
    """
    if exactly:
        return divided(recipe, declaration), declaration
    if declaration is None:
        return as_published(recipe, store, collection), "as before"
    if not _joins(rules_digest(declaration), _current(store), collection):
        raise CorpusInvalid(
            f"{DECLARATION}: its sections or names are not those by which {collection} is divided, and what the "
            "collection has would keep those: load the folder as a whole, without adding to it"
        )
    return divided(recipe, declaration), declaration


def refuse_divided_otherwise(
    prepared: Sequence[Prepared], current: Manifest | None, collection: str, declares: Declares
) -> None:
    """Refuse documents that are to join others, if they are divided by other rules than the collection declares. Raises
    DeclarationChanged if somebody else has changed the declaration since they were prepared."""
    for one in prepared:
        if declares == "as before":
            joins = one.divided_by == rules_digest(None if current is None else current.declaration(collection))
        else:
            joins = _joins(one.divided_by, current, collection)
        if not joins:
            raise DeclarationChanged(f"{collection} declares other sections or names than {one.source} is divided by")


def _joins(rules: str, current: Manifest | None, collection: str) -> bool:
    """Whether a collection is divided by these rules, or holds nothing."""
    if current is None or not current.of_collection(collection):
        return True
    return rules == rules_digest(current.declaration(collection))


def _current(store: ObjectStore) -> Manifest | None:
    """The current version's manifest, if there is one that can be read."""
    try:
        current = read_current(store)
    except (IndexCorrupt, IndexMismatch) as error:  # whoever publishes says so
        logger.warning("what the index holds cannot be used", exc_info=error)
        return None
    return None if current is None else current.manifest


def rules_digest(declaration: CollectionDeclaration | None) -> str:
    """The digest of a declaration's rules, as documents have it."""
    return "" if declaration is None else SectionRules.of(declaration).digest()


def refuse_own_section(recipe: Recipe, metadata: Mapping[str, str]) -> None:
    """Raise CorpusInvalid if metadata gives the section of a collection that declares its own."""
    if recipe.sections is not None and SECTION in metadata:
        raise CorpusInvalid(f"the metadata key {SECTION} is reserved: the collection declares its sections")
