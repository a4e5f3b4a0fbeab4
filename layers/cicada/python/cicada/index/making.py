"""What a version of the index may be made of: passages of one embedding model, and what collections declare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.errors import CorpusInvalid, IndexMismatch
from cicada.index.lexical import ANALYZER_VERSION
from cicada.index.manifest import Manifest, SegmentEntry
from cicada.models.ports import Embedder

Declares = CollectionDeclaration | Literal["as before"] | None
"""What a collection declares of itself from a version on; None for nothing."""


def declared(manifest: Manifest, collection: str, declares: Declares) -> tuple[tuple[CollectionDeclaration, ...], bool]:
    """The declarations of a version in which a collection declares this; and whether they are those of ``manifest``."""
    if declares == "as before" or declares == manifest.declaration(collection):
        return manifest.declarations, True
    others = tuple(one for one in manifest.declarations if one.collection != collection)
    return (*others, *((declares,) if isinstance(declares, CollectionDeclaration) else ())), False


def refuse_foreign(collection: str, declares: Declares) -> None:
    """Raise CorpusInvalid if a collection would declare something of another one."""
    if isinstance(declares, CollectionDeclaration) and declares.collection != collection:
        raise CorpusInvalid(f"the declaration is of collection {declares.collection}, not {collection}")


@dataclass(frozen=True)
class Making:
    """Makes the manifests of versions that hold vectors of one model, and words by today's rules of text analysis."""

    embedder: Embedder
    now: Callable[[], datetime]

    def fits(self, manifest: Manifest) -> bool:
        """Whether a version is of this model and these rules."""
        return (manifest.embedding_model_id, manifest.dimensions, manifest.analyzer_version) == (
            self.embedder.model_id,
            self.embedder.dimensions,
            ANALYZER_VERSION,
        )

    def refuse_others(self, current: Manifest | None, replaced: str | None) -> None:
        """Refuse to mix models, or rules of text analysis, in a version; a collection that is replaced is no matter.

        Raises:
            IndexMismatch: other collections of the version are of another model, or other rules.
        """
        if current is None or self.fits(current):
            return
        if others := sorted({entry.collection for entry in current.segments} - {replaced}):
            raise IndexMismatch(
                f"{', '.join(others)} are embedded with {current.embedding_model_id} at {current.dimensions} "
                f"dimensions, text analysis {current.analyzer_version}: start over, and load them again, to change to "
                f"{self.embedder.model_id} at {self.embedder.dimensions}, text analysis {ANALYZER_VERSION}"
            )

    def manifest(
        self,
        number: int,
        segments: tuple[SegmentEntry, ...],
        declarations: tuple[CollectionDeclaration, ...],
        *,
        previous: str | None,
        kept_from: int,
        allow_partial: bool = False,
    ) -> Manifest:
        """A version's manifest; see :class:`cicada.index.manifest.Manifest` for what it says."""
        return Manifest.create(
            number=number,
            created_at=self.now(),
            embedding_model_id=self.embedder.model_id,
            dimensions=self.embedder.dimensions,
            analyzer_version=ANALYZER_VERSION,
            allow_partial=allow_partial,
            segments=segments,
            previous=previous,
            kept_from=kept_from,
            declarations=declarations,
        )
