"""What the collections of a version declare of themselves."""

from __future__ import annotations

from cicada.index.manifest import Manifest
from cicada.retrieval.knowledge.contracts import Catalogue


def catalogue_of(manifest: Manifest) -> Catalogue:
    """The declarations of a version.

    They were read with its manifest: nothing is read here, and nothing needs to be kept.
    """
    declared = {one.collection for one in manifest.declarations}
    undeclared = tuple(sorted(one for one in manifest.collections if one not in declared))
    return Catalogue(manifest.version, manifest.declarations, undeclared)
