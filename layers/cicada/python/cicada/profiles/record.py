"""The models of a profile, the proofs of its facts, and the history of its changes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cicada.corpus.passages import CorpusModel, Locator

Kind = Literal["character", "location", "episode", "fragment_group", "theory"]
"""What a profile is of. A fragment group is a set of passages that a user takes to belong together."""
Verdict = Literal["supported", "contradicted", "open"]
Side = Literal["for", "against"]
Operation = Literal["created", "updated", "undone", "deleted"]


class RecordModel(CorpusModel):
    """Immutable, strict, camelCase on the wire and in the store."""


class PassageProof(RecordModel):
    """A passage of the corpus supports it."""

    kind: Literal["passage"] = "passage"
    passage_id: str
    collection: str
    locator: Locator
    quote: str = Field(description="the passage's words as they were then, clipped")
    index_version: str = Field(description="the version of the index that the passage was read in")


class NoteProof(RecordModel):
    """The user said so."""

    kind: Literal["note"] = "note"
    request_id: str = Field(description="the request in which they did")
    words: str = Field(description="their message, clipped; the value itself where they set it themselves")
    said_at_ms: int = Field(description="epoch milliseconds")


Proof = Annotated[PassageProof | NoteProof, Field(discriminator="kind")]


class ProfileField(RecordModel):
    """One fact of a profile."""

    name: str
    value: str
    proof: Proof
    changed_at_ms: int = Field(description="epoch milliseconds")


class Evidence(RecordModel):
    """A passage that speaks for a theory, or against it."""

    side: Side
    strength: Annotated[float, Field(ge=0, le=1)]
    proof: PassageProof
    cited: bool = Field(False, description="the verdict rests on it")


class Judgement(RecordModel):
    """What was concluded of a theory, from those pieces of its evidence that are cited."""

    verdict: Verdict
    at_ms: int = Field(description="epoch milliseconds")


class Theory(RecordModel):
    """What a profile of kind ``theory`` holds beside its fields."""

    statement: str
    episodes: tuple[str, ...] = Field((), description="it is about these; about all when empty")
    proof: NoteProof = Field(description="the message in which the user stated it")
    evidence: tuple[Evidence, ...] = Field((), description="the strongest first")
    judgement: Judgement | None = None


class Profile(RecordModel):
    """What one user keeps of somebody or something."""

    id: str = Field(description="made from kind and name: one user has one profile of a kind and name")
    kind: Kind
    name: str
    version: Annotated[int, Field(ge=1)] = Field(description="one more with every change")
    created_at_ms: int = Field(description="epoch milliseconds")
    changed_at_ms: int = Field(description="epoch milliseconds")
    fields: tuple[ProfileField, ...] = Field((), description="in the order in which they were first set")
    theory: Theory | None = Field(None, description="of kind theory alone")


class Edit(RecordModel):
    """What one change did to one field."""

    field: str = Field(description="its name; statement, episodes, evidence or verdict of a theory itself")
    before: str | None = Field(None, description="absent if there was none")
    after: str | None = Field(None, description="absent if it was removed")


class Change(RecordModel):
    """One entry of a profile's history."""

    version: int = Field(description="the one that it made")
    at_ms: int = Field(description="epoch milliseconds")
    operation: Operation
    request_id: str = Field(description="the request that made it")
    operation_id: str = Field(description="tells a repeated operation from a new one")
    edits: tuple[Edit, ...] = ()
    undoes: int | None = Field(None, description="of operation undone: the version whose change was taken back")


class Replaced(RecordModel):
    """What a change has replaced or removed, whole: taking the change back restores it."""

    version: int = Field(description="the one that the change made")
    fields: tuple[ProfileField, ...] = Field((), description="as they were before, with their proofs")
    theory: Theory | None = Field(None, description="as it was before; absent if the change left it as it was")


class ProfileRecord(RecordModel):
    """A profile as it is stored, with its history.

    A deleted profile leaves a record without the profile. Its version keeps counting, so that a client that knows an
    older version cannot change a new profile of the same name.
    """

    id: str
    version: int
    profile: Profile | None = Field(None, description="absent once it is deleted")
    history: tuple[Change, ...] = Field((), description="oldest first; the oldest entries are dropped in time")
    replaced: tuple[Replaced, ...] = Field((), description="of the changes in the history, oldest first")
    expires_at: int | None = Field(None, description="epoch seconds; of a deleted profile alone")

    def change_of(self, operation_id: str) -> Change | None:
        """The change that an operation made, or None."""
        return next((change for change in self.history if change.operation_id == operation_id), None)

    def change_to(self, version: int) -> Change | None:
        """The change that made a version, or None if the history no longer has it."""
        return next((change for change in self.history if change.version == version), None)
