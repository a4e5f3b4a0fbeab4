"""The in-memory twin of the store of sessions. The contract tests run over it and over DynamoDB alike."""

from __future__ import annotations

from collections.abc import Callable

from cicada.conversation.sessions import SessionChanged, Stored
from cicada.conversation.turns import ConversationSession, SessionKey


class InMemorySessions:
    """A :class:`cicada.conversation.sessions.Sessions`.

    ``before`` and ``after`` may raise, to cause faults.
    """

    def __init__(self) -> None:
        self.stored: dict[SessionKey, Stored] = {}
        self.expires_at: dict[SessionKey, int] = {}
        self.before: Callable[[str], None] = lambda operation: None
        self.after: Callable[[str], None] = lambda operation: None
        self.calls: list[str] = []

    def read(self, key: SessionKey) -> Stored:
        self._enter("read")
        return self.stored.get(key, Stored(ConversationSession(), 0))

    def write(self, key: SessionKey, session: ConversationSession, *, over: int, expires_at: int) -> None:
        self._enter("write")
        stands = self.stored.get(key, Stored(ConversationSession(), 0))
        if stands.version != over:
            raise SessionChanged(stands)
        self.stored[key] = Stored(session, over + 1)
        self.expires_at[key] = expires_at
        self.after("write")

    def _enter(self, operation: str) -> None:
        self.calls.append(operation)
        self.before(operation)
