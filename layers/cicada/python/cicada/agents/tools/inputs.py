"""What each tool takes from a model. The docstrings and descriptions are what the model is told."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from cicada.agents.ports import ToolInput
from cicada.profiles.record import Verdict
from cicada.profiles.rules import (
    ID_PATTERN,
    MAX_EDITS,
    MAX_EPISODE_CHARS,
    MAX_EPISODES,
    MAX_EVIDENCE,
    MAX_FIELD_NAME_CHARS,
    MAX_NAME_CHARS,
    MAX_STATEMENT_CHARS,
    MAX_VALUE_CHARS,
)

MAX_QUERY_CHARS = 500
MAX_PASSAGES = 8
"""That one search brings."""
_MAX_COLLECTION_CHARS = 128

ProfileId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS)]
_FieldName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_FIELD_NAME_CHARS)]
_Statement = Annotated[str, StringConstraints(min_length=1, max_length=MAX_STATEMENT_CHARS)]
_Quote = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_VALUE_CHARS,
        description="the words of the user's message that state the theory, copied exactly",
    ),
]
_Episodes = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_EPISODE_CHARS)], ...],
    Field(max_length=MAX_EPISODES),
]
_Collections = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=_MAX_COLLECTION_CHARS)], ...],
    Field(max_length=MAX_EPISODES),
]
_Version = Annotated[int, Field(ge=1)]
_Numbers = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(max_length=MAX_EVIDENCE)]
PlainKind = Literal["character", "location", "episode", "fragment_group"]
AnyKind = Literal["character", "location", "episode", "fragment_group", "theory"]


class SearchScript(ToolInput):
    """Search the script and every other collection for passages. Use it before you say what the text says."""

    query: Annotated[
        str,
        Field(min_length=1, max_length=MAX_QUERY_CHARS, description="what is looked for, in a sentence or a few words"),
    ]
    collections: _Collections = Field((), description="only these collections; all when left out")
    episodes: _Episodes = Field((), description="only these episodes; all when left out")
    limit: Annotated[int, Field(ge=1, le=MAX_PASSAGES)] = Field(MAX_PASSAGES, description="passages at most")


class ListProfiles(ToolInput):
    """List the user's profiles: kind, name, id, version and how many facts each has."""

    kind: AnyKind | None = Field(None, description="only of this kind; all when left out")


class ShowProfile(ToolInput):
    """Show one profile of the user's with its facts, each with the number of its source. Give its name or its id."""

    name: _Name | None = Field(None, description="its name; case does not count")
    id: ProfileId | None = Field(None, description="its id, as a list of profiles has it")


class Fact(ToolInput):
    """One fact to be kept."""

    field: _FieldName = Field(description="what it is about, in a word or two, such as occupation")
    value: Annotated[
        str, Field(min_length=1, max_length=MAX_VALUE_CHARS, description="the fact, in words of the quote")
    ]
    quote: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_VALUE_CHARS,
            description="the words that state the fact, copied exactly from the user's message or the cited passage",
        ),
    ]
    citation: Annotated[int, Field(ge=1)] | None = Field(
        None, description="the number of the passage that says so; left out where the user's own message says so"
    )


_Facts = Annotated[tuple[Fact, ...], Field(max_length=MAX_EDITS)]


class CreateProfile(ToolInput):
    """Make a profile because the user wants one. Only facts that the user's message or a cited passage states."""

    kind: PlainKind
    name: _Name = Field(description="as the user names it")
    fields: _Facts = Field((), description="what is to be kept")


class UpdateProfile(ToolInput):
    """Set facts of a profile because the user wants that. Look at it first: its version is needed."""

    id: ProfileId
    expected_version: _Version = Field(description="the version that you have seen")
    set: Annotated[_Facts, Field(min_length=1)] = Field(description="facts that are added or replaced")


class RemoveFields(ToolInput):
    """Remove facts from a profile because the user wants that. The user is asked to confirm it."""

    id: ProfileId
    expected_version: _Version = Field(description="the version that you have seen")
    fields: Annotated[tuple[_FieldName, ...], Field(min_length=1, max_length=MAX_EDITS)] = Field(
        description="names of the facts"
    )


class UndoChange(ToolInput):
    """Take back one change of a profile because the user wants that: what it replaced stands again."""

    id: ProfileId
    version: _Version = Field(description="the version that the change made, as the history shows it")


class DeleteProfile(ToolInput):
    """Delete a profile with its history because the user wants that. The user is asked to confirm it."""

    id: ProfileId
    expected_version: _Version = Field(description="the version that you have seen")


class ProfileHistory(ToolInput):
    """Show what has changed in a profile, and when: each change with the values before and after."""

    id: ProfileId


class ListTheories(ToolInput):
    """List the user's theories: statement, id, version, and the verdict where there is one."""


class StateTheory(ToolInput):
    """Keep a theory that the user has stated, in the user's words."""

    statement: _Statement = Field(description="what is claimed, as one sentence, in words of the quote")
    quote: _Quote
    episodes: _Episodes = Field((), description="the episodes that it is about; all when left out")


class RefineTheory(ToolInput):
    """Replace a theory's statement because the user has changed it. Its evidence and verdict go with the old one."""

    id: ProfileId
    expected_version: _Version = Field(description="the version that you have seen")
    statement: _Statement = Field(description="what is claimed now, as one sentence, in words of the quote")
    quote: _Quote


class GatherEvidence(ToolInput):
    """Search what speaks for a theory and what speaks against it. Give the statement, or the id of a theory."""

    statement: _Statement | None = Field(None, description="what is claimed, as one sentence")
    contrary: _Statement | None = Field(
        None, description="what the text would say if it were wrong, as one sentence: searched for, too"
    )
    id: ProfileId | None = Field(None, description="of a theory of the user's")
    episodes: _Episodes = Field((), description="only these episodes; all, or the theory's own, when left out")


class GiveVerdict(ToolInput):
    """Give the verdict on the theory that the user asks about, once, before you answer. The user is shown it. Gather
    evidence first; without any the verdict is open."""

    verdict: Verdict
    passages_for: _Numbers = Field((), description="numbers of the gathered passages for it that the verdict rests on")
    passages_against: _Numbers = Field((), description="numbers of the gathered passages against it that it rests on")


class RecordVerdict(GiveVerdict):
    """Give the verdict on a theory that is kept, and keep it with the evidence that was gathered for it."""

    id: ProfileId
    expected_version: _Version = Field(description="the version that you have seen")
