"""What a collection declares of itself: found beside its documents, or published with those that it has."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from cicada.corpus.declared.declaration import SECTION, CollectionDeclaration
from cicada.corpus.declared.reading import MAX_BYTES, read_declaration
from cicada.corpus.declared.sectioning import SectionRules
from cicada.errors import CorpusInvalid, IndexCorrupt, IndexMismatch
from cicada.index.publish import read_current
from cicada.index.store import ObjectStore
from cicada.index.writer import Declares
from cicada.ingest.contracts import Recipe
from cicada.ingest.sources import Found

logger = logging.getLogger(__name__)


def declaration_of(found: Found, collection: str | None = None) -> CollectionDeclaration | None:
    """What the declaration among the files of a load says; None where there is none.

    Raises:
        CorpusInvalid: it cannot be read, is no declaration, or is another collection's; every line of the message names
            file, line and field.
    """
    if found.declaration is None:
        return None
    return declaration_in(found.declaration.path, name=str(found.declaration.path), collection=collection)


def declaration_in(path: Path, *, name: str, collection: str | None = None) -> CollectionDeclaration:
    """The declaration in a file, see :func:`cicada.corpus.declared.reading.read_declaration`.

    Raises:
        CorpusInvalid: as above.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CorpusInvalid(f"{name}: cannot be read: {error.strerror}") from error
    return read_declaration(data, name=name, collection=collection)


def published_declaration(store: ObjectStore, collection: str) -> CollectionDeclaration | None:
    """What the current version's collection declares, as far as that can be read.

    Raises:
        IndexUnavailable: the store does not respond.
    """
    try:
        current = read_current(store)
    except (IndexCorrupt, IndexMismatch) as error:  # whoever publishes says so
        logger.warning("what the index holds cannot be used", exc_info=error)
        return None
    return None if current is None else current.manifest.declaration(collection)


def as_published(recipe: Recipe, store: ObjectStore, collection: str) -> Recipe:
    """The recipe by which a document that is loaded by itself joins a collection: in the sections that it has.

    Raises:
        IndexUnavailable: the store does not respond.
    """
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
    """What a load goes by, and has the collection declare from then on.

    What stands beside the documents counts. Where nothing does, a collection that is to hold exactly these documents
    declares nothing any more, and one that they are added to goes on as before.

    Raises:
        IndexUnavailable: the store does not respond.
    """
    if declaration is not None or exactly:
        return divided(recipe, declaration), declaration
    return as_published(recipe, store, collection), "as before"


def refuse_own_section(recipe: Recipe, metadata: Mapping[str, str]) -> None:
    """Refuse metadata that gives the section of a collection that declares its own.

    Raises:
        CorpusInvalid: it does.
    """
    if recipe.sections is not None and SECTION in metadata:
        raise CorpusInvalid(f"the metadata key {SECTION} is reserved: the collection declares its sections")
