"""Whom a collection's declaration names, among those whom enrichment finds."""

from __future__ import annotations

from collections.abc import Sequence

from cicada.corpus.declared.naming import DeclaredNames
from cicada.corpus.indexable import Indexable
from cicada.ingest.enrichment.names import MAX_ENTITIES
from cicada.text.normal import folded


def with_names(item: Indexable, declared: Sequence[str], aliases: DeclaredNames) -> Indexable:
    """A passage that names the declared first; what was found beside is filed under the name that it is an alias of."""
    found = (name for entity in item.passage.entities for name in aliases.filed_under(entity))
    names: dict[str, str] = {}
    for name in (*declared, *found):
        names.setdefault(folded(name), name)
    entities = tuple(names.values())[:MAX_ENTITIES]
    return Indexable(item.passage.model_copy(update={"entities": entities}), item.parts)
