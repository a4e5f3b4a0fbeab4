"""A collection's declaration: its kind, its sections, and the intentions that it serves with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator
from pydantic_core import PydanticCustomError

from cicada.corpus.passages import CorpusModel
from cicada.rights import GROUP_NAME
from cicada.text.visible import visible

SECTION = "section"  # metadata key: the declared section of a passage
OTHER_SECTION = "other"
"""The section of passages in no declared one. It may be declared itself, to be described and asked for."""

INCONSISTENT = "declaration_inconsistent"  # type of a validation error with a list of ``problems`` in its context


def _one_line(value: str) -> str:
    if visible(value) != value:
        raise PydanticCustomError("unseen", "contains invisible characters")
    return " ".join(value.split())


def _with_words(value: str) -> str:
    if not any(map(str.isalnum, value)):
        raise PydanticCustomError("wordless", "has no letter or digit")
    return value


def _group_name(value: str) -> str:
    if re.match(GROUP_NAME, value) is None:
        raise PydanticCustomError("no_group", "must be a group's name: 1 to 128 characters, without commas")
    return value


Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Sentence = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400), AfterValidator(_one_line)
]
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=120),
    AfterValidator(_one_line),
    AfterValidator(_with_words),
]
GroupOfReaders = Annotated[
    str, StringConstraints(strip_whitespace=True), AfterValidator(_one_line), AfterValidator(_group_name)
]
Pattern = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_one_line)
]
Problem = tuple[tuple[str | int, ...], str]  # a field's location as pydantic gives it, and the problem


class SectionDeclared(CorpusModel):
    """A part of a collection that can be asked for by itself.

    A passage belongs to the first section, in the order of the declaration, one of whose patterns fits it.
    """

    name: Word
    description: Sentence = Field(description="what stands in it, as the selector is told")
    headings: tuple[Pattern, ...] = Field(
        (),
        description="patterns (`*`, `?`) over the headings above a passage, or a record's path, outermost first and "
        "joined by ` > `; letters' case does not count; a pattern also fits whatever stands below it",
    )
    sources: tuple[Pattern, ...] = Field((), description="patterns (`*`, `?`) over the documents' sources")


class IntentionDeclared(CorpusModel):
    """What one may want of a collection."""

    name: Word
    description: Sentence = Field(description="when it is meant, as the selector is told")
    sections: tuple[Word, ...] = Field(min_length=1, description="where what answers it stands")
    examples: tuple[Sentence, ...] = Field((), max_length=5, description="questions that mean it")


class NamesDeclared(CorpusModel):
    """Who and what a collection names, beside what enrichment finds in its texts."""

    headings: tuple[Word, ...] = Field(
        (), description="sections whose innermost headings, or records' names, are names of entities"
    )
    aliases: dict[Name, tuple[Name, ...]] = Field(
        default_factory=dict, description="other names of an entity, by the name that it is filed under"
    )


class CollectionDeclaration(CorpusModel):
    """All that a collection says of itself."""

    collection: Word
    kind: Word = Field(description="what sort of collection it is, such as character_data, session_notes or rulebook")
    title: Name | None = Field(
        None, exclude_if=lambda title: title is None, description="what people call it; its name where it is left out"
    )
    description: Sentence = Field(description="what it holds, as the selector is told")
    examples: tuple[Sentence, ...] = Field(
        (),
        max_length=6,
        exclude_if=lambda examples: not examples,
        description="questions that it answers, for people who ask what they can ask",
    )
    immutable: bool = Field(
        False, description="its content changes only with a new edition: what is resolved in it is kept by version"
    )
    readers: tuple[GroupOfReaders, ...] | None = Field(
        None,
        max_length=100,
        exclude_if=lambda readers: readers is None,
        description="the groups that may read it: members of any of them may, and nobody else; an empty list is for "
        "nobody. Without this field the deployment's default holds. See `docs/access.md`",
    )
    sections: tuple[SectionDeclared, ...] = Field(min_length=1, max_length=40)
    intentions: tuple[IntentionDeclared, ...] = Field(min_length=1, max_length=60)
    names: NamesDeclared = Field(default_factory=NamesDeclared)

    @field_validator("readers", mode="before")
    @classmethod
    def _blank_is_no_list(cls, value: object) -> object:
        """A field that is left blank must not open the collection to everybody."""
        if value is None:
            raise PydanticCustomError("blank", "must be a list of groups: [] is for nobody")
        return value

    def intention(self, name: str) -> IntentionDeclared | None:
        """The intention of this name, if any."""
        return next((one for one in self.intentions if one.name == name), None)

    @model_validator(mode="after")
    def _names_are_known_and_differ(self) -> Self:
        if problems := list(self._problems()):
            told = "; ".join(problem for _, problem in problems)
            raise PydanticCustomError(INCONSISTENT, "{told}", {"told": told, "problems": problems})
        return self

    def _problems(self) -> Iterator[Problem]:
        sections = [one.name for one in self.sections]
        yield from _repeated("section", sections)
        yield from _repeated("intention", [one.name for one in self.intentions])
        known = {*sections, OTHER_SECTION}
        for number, intention in enumerate(self.intentions):
            for place, name in enumerate(intention.sections):
                if name not in known:
                    told = f"intention {intention.name} needs the section {name}, which is not declared"
                    yield ("intentions", number, "sections", place), told
        for place, name in enumerate(self.names.headings):
            if name not in known:
                yield ("names", "headings", place), f"names.headings: the section {name} is not declared"


def _repeated(what: str, names: Sequence[str]) -> Iterator[Problem]:
    for place, name in enumerate(names):
        if name in names[:place]:
            yield (f"{what}s", place, "name"), f"{what} {name} is declared twice"


DECLARATION = "collection.yaml"
"""The file at the top of a collection's folder that declares it: no document of the collection."""
_TAKEN_FOR_ONE = (DECLARATION, "collection.yml")


def misplaced(source: str) -> str | None:
    """Why a file is neither a document nor its folder's declaration; None if it is one of them."""
    folder, _, name = source.rpartition("/")
    if name.casefold() not in _TAKEN_FOR_ONE or source == DECLARATION:
        return None
    if folder:
        return f"declares the collection of its own folder: load {folder} by itself"
    return f"a collection is declared in a file called {DECLARATION}"
