"""Profiles as lists show them. They are stored apart from records, so that a list reads no facts and no history."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from cicada.profiles.changes import evidence_words
from cicada.profiles.record import Kind, Profile, RecordModel, Verdict


class StoredHead(RecordModel):
    """A profile in a list."""

    id: str
    kind: Kind
    name: str
    version: int
    facts: int = Field(description="how many fields it has")
    changed_at_ms: int = Field(description="epoch milliseconds")
    statement: str | None = Field(None, description="of a theory, as it is now")
    episodes: tuple[str, ...] = Field((), description="that a theory is about; about all when empty")
    evidence: str | None = Field(None, description="of a theory: how much is kept, such as 3 for, 1 against")
    verdict: Verdict | None = Field(None, description="of a theory, once one was recorded")
    said_at_ms: int | None = Field(None, description="when a theory's statement was made, in epoch milliseconds")


@dataclass(frozen=True)
class Listed:
    """An entry of a user's list."""

    id: str
    head: StoredHead | None  # None for a deleted profile
    expires_at: int | None = None  # epoch seconds; for a deleted profile only


def head_of(profile: Profile) -> StoredHead:
    """The head of a profile."""
    theory = profile.theory
    return StoredHead(
        id=profile.id,
        kind=profile.kind,
        name=profile.name,
        version=profile.version,
        facts=len(profile.fields),
        changed_at_ms=profile.changed_at_ms,
        statement=theory.statement if theory else None,
        episodes=theory.episodes if theory else (),
        evidence=evidence_words(theory) if theory else None,
        verdict=theory.judgement.verdict if theory and theory.judgement else None,
        said_at_ms=theory.proof.said_at_ms if theory else None,
    )
