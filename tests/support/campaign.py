"""A small campaign of three collections that declare themselves, and fakes of what chooses among them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from cicada.corpus.declared.declaration import SECTION, CollectionDeclaration
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.models.ports import ModelUse, Stopped, Usage
from cicada.retrieval.knowledge.contracts import Catalogue, CollectionChoice, NamedEntity
from cicada.retrieval.ports import SearchLimits
from cicada.rights import EVERYTHING


def declared(
    collection: str, intentions: dict[str, Sequence[str]], *, immutable: bool = False, **aliases: Sequence[str]
) -> CollectionDeclaration:
    """A declaration of intentions, each with its sections."""
    sections = list(dict.fromkeys(section for needed in intentions.values() for section in needed))
    return CollectionDeclaration.model_validate(
        {
            "collection": collection,
            "kind": collection,
            "description": f"What the {collection} holds.",
            "immutable": immutable,
            "sections": [{"name": name, "description": f"All {name}.", "headings": [name]} for name in sections],
            "intentions": [
                {"name": name, "description": f"Asks for {name}.", "sections": list(needed)}
                for name, needed in intentions.items()
            ],
            "names": {"aliases": {name.replace("_", " "): list(others) for name, others in aliases.items()}},
        }
    )


CHARACTER = declared("character", {"combat_info": ["combat"], "abilities_info": ["abilities"]}, Ember=["the red axe"])
NOTES = declared("notes", {"npc_history": ["people", "events"]})
RULES = declared("rules", {"rule_mechanics": ["mechanics"]}, immutable=True)
CAMPAIGN = Catalogue("v1", (CHARACTER, NOTES, RULES), readable=EVERYTHING)


def entry(collection: str, id: str, section: str | None, text: str, *entities: str, **changes: Any) -> Passage:
    """A passage of a section, which names entities."""
    values: dict[str, Any] = {
        "id": id,
        "collection": collection,
        "text": text,
        "context": text,
        "locator": DocumentLocator(source=f"{collection}.md", title=collection, section=section),
        "metadata": {} if section is None else {SECTION: section},
        "entities": entities,
    }
    return Passage(**(values | changes))


def named(name: str, confidence: float = 0.9, matched: str | None = None) -> NamedEntity:
    """Something that a question names."""
    return NamedEntity(name, confidence, matched or name, "gazetteer")


class FixedSelector:
    """Chooses what it was given; an exception is raised in its place."""

    def __init__(
        self, *choices: CollectionChoice, error: Exception | None = None, uses: Sequence[ModelUse] = ()
    ) -> None:
        self.choices = choices
        self.error = error
        self.uses = uses
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def select(self, question: str, catalogue: Catalogue, limits: SearchLimits) -> tuple[CollectionChoice, ...]:
        self.asked.append((question, tuple(one.collection for one in catalogue.collections)))
        for use in self.uses:
            limits.call()
            limits.note(use)
        if self.error is not None:
            raise self.error
        return self.choices


class FixedExtractor:
    """Finds the names that it was given; an exception is raised in their place."""

    def __init__(self, *names: NamedEntity, error: Exception | None = None) -> None:
        self.names = names
        self.error = error

    def extract(self, question: str, catalogue: Catalogue, limits: SearchLimits) -> tuple[NamedEntity, ...]:
        if self.error is not None:
            raise self.error
        return self.names


def a_use(purpose: str = "select_intentions") -> ModelUse:
    """One call of a small model."""
    return ModelUse(purpose, "local.extractive", 1, Usage(300, 20), 12)


def held_until_stopped(limits: SearchLimits) -> None:
    """Wait as a call to a model does, until the limits' stop; note its use, and raise as the port says."""
    stopped = threading.Event()
    forget = limits.on_stop(stopped.set)
    try:
        assert stopped.wait(20), "nobody stopped the call"
    finally:
        forget()
    limits.note(ModelUse("extract_entities", "local.extractive", 1, Usage(reported=False), 3, "stopped"))
    raise Stopped
