"""What a conversation needs of the outside: a store of sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cicada.answering.conversation.turns import Session, SessionKey


class SessionChanged(Exception):
    """Somebody else has written the session meanwhile; ``stored`` is what stands."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(f"the session is at version {stored.version}")
        self.stored = stored


@dataclass(frozen=True)
class Stored:
    """A session and its version, 0 before its first write."""

    session: Session
    version: int


class Sessions(Protocol):
    """The store of sessions. Every method raises :class:`cicada.delivery.ports.StoreFault` when the store fails."""

    def read(self, key: SessionKey) -> Stored:
        """A consistent read; an empty session of version 0 where there is none."""
        ...

    def write(self, key: SessionKey, session: Session, *, over: int, expires_at: int) -> None:
        """Replace a session.

        Args:
            key: whose.
            session: what it becomes.
            over: the version that it replaces; its own is one more.
            expires_at: epoch seconds from which the store may delete it.

        Raises:
            SessionChanged: another version stands.
        """
        ...
