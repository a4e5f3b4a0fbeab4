"""A catalogue of two small collections, for tests of what chooses among them."""

from __future__ import annotations

from collections.abc import Mapping

from cicada.corpus.declared.declaration import (
    CollectionDeclaration,
    IntentionDeclared,
    NamesDeclared,
    SectionDeclared,
)
from cicada.retrieval.knowledge.contracts import Catalogue
from cicada.rights import EVERYTHING


def declared(
    collection: str,
    intentions: Mapping[str, tuple[str, tuple[str, ...]]],
    *,
    description: str = "What it holds.",
    aliases: Mapping[str, tuple[str, ...]] | None = None,
) -> CollectionDeclaration:
    """A declaration of one section; of each intention its description and examples."""
    return CollectionDeclaration(
        collection=collection,
        kind=collection,
        description=description,
        sections=(SectionDeclared(name="entries", description="All entries."),),
        intentions=tuple(
            IntentionDeclared(name=name, description=told, sections=("entries",), examples=examples)
            for name, (told, examples) in intentions.items()
        ),
        names=NamesDeclared(headings=("entries",), aliases=dict(aliases or {})),
    )


SHEET = declared(
    "sheet",
    {
        "fighting": ("How the asker's character fights: attacks and damage.", ("How hard do I hit?",)),
        "belongings": ("What the asker's character owns or carries.", ("What is in my pack?", "Have I any rope?")),
    },
    description="The asker's own character, as she is now.",
    aliases={"Gutterflame": ("the burning axe",)},
)
DIARY = declared(
    "diary",
    {"people": ("Who somebody is whom the party met in the sessions.", ("Who was that woman at the gate?",))},
    description="Notes of the sessions that the party has played.",
    aliases={"Ottoline Prawle": ("Ottoline", "the Tollwife")},
)
CATALOGUE = Catalogue("v1", (DIARY, SHEET), readable=EVERYTHING)
