"""Replies to the action ``profile``. Each is one frame; a longer result has pages, linked by ``next``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cicada.profiles.record import Change, Evidence, Judgement, Kind, NoteProof, ProfileField, Verdict
from cicada.protocol.events import Payload, Reply

_NEXT = "the cursor to ask for the next page with; null on the last"


class ProfileHead(Payload):
    """A profile in a list."""

    id: str
    kind: Kind
    name: str
    version: int
    facts: int = Field(description="how many fields it has")
    changed_at_ms: int = Field(description="epoch milliseconds")
    statement: str | None = Field(None, description="of a theory")
    verdict: Verdict | None = Field(None, description="of a theory, once one was recorded")


class Profiles(Reply):
    """The user's profiles, in no order that means anything."""

    type: Literal["profiles"] = "profiles"
    profiles: tuple[ProfileHead, ...]
    next: str | None = Field(None, description=_NEXT)


class TheoryHead(Payload):
    """What a theory says, and what was concluded; its evidence stands beside."""

    statement: str
    episodes: tuple[str, ...]
    proof: NoteProof
    judgement: Judgement | None


class ProfileShown(Reply):
    """One profile, or a page of it: fields first, then evidence."""

    type: Literal["profile"] = "profile"
    id: str
    kind: Kind
    name: str
    version: int
    created_at_ms: int
    changed_at_ms: int
    theory: TheoryHead | None = Field(None, description="on the first page of a theory")
    fields: tuple[ProfileField, ...] = ()
    evidence: tuple[Evidence, ...] = Field((), description="of a theory, the strongest first")
    next: str | None = Field(None, description=_NEXT)


class ProfileChanges(Reply):
    """What has changed in a profile, oldest first; the edits of a large change stand in several entries."""

    type: Literal["profile_history"] = "profile_history"
    id: str
    kind: Kind
    name: str
    version: int
    changes: tuple[Change, ...]
    next: str | None = Field(None, description=_NEXT)


class ProfileDeleted(Reply):
    """The profile and its history are gone."""

    type: Literal["profile_deleted"] = "profile_deleted"
    id: str
    version: int


class ProfileExport(Reply):
    """A part of all that is kept of the user's profiles: the texts of all pages, joined, are a JSON object a line."""

    type: Literal["profile_export"] = "profile_export"
    text: str
    next: str | None = Field(None, description=_NEXT)


ProfileReply = Profiles | ProfileShown | ProfileChanges | ProfileDeleted | ProfileExport
