"""A user's conversations as they are listed: titles and requests. The turns that complete questions stand apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from cicada.conversation.turns import SessionKey, clipped

TITLE_CHARS = 80
"""Of the first question that a conversation's title keeps."""
UNDO_S = 600
"""How long a deleted conversation can be restored."""
MAX_REQUESTS = 100
"""Requests that a conversation lists: each takes 18 bytes of an item that every question writes."""
DROPPED_AT_ONCE = 20
"""The oldest requests that are dropped where there would be more: so seldom is the list written as a whole."""


@dataclass(frozen=True)
class ConversationRecord:
    """A conversation as it is listed."""

    session_id: str
    title: str
    created_at_ms: int
    updated_at_ms: int
    questions: int
    requests: tuple[str, ...]
    """The last ones, oldest first; those before them are counted in ``questions`` alone."""
    expires_at: int
    """Epoch seconds; of a deleted one, when it can no longer be restored."""
    deleted_at_ms: int | None = None

    @classmethod
    def begun(cls, session_id: str, request_id: str, query: str, *, at_ms: int, age_s: int) -> ConversationRecord:
        """A conversation with its first question."""
        return cls(session_id, clipped(query, TITLE_CHARS), at_ms, at_ms, 1, (request_id,), at_ms // 1000 + age_s)

    def plus(self, request_id: str, *, at_ms: int, age_s: int) -> ConversationRecord:
        """With one more question; the oldest are dropped if there are too many."""
        kept = self.requests[DROPPED_AT_ONCE:] if len(self.requests) >= MAX_REQUESTS else self.requests
        return replace(
            self,
            updated_at_ms=at_ms,
            questions=self.questions + 1,
            requests=(*kept, request_id),
            expires_at=at_ms // 1000 + age_s,
        )

    def expired(self, now_s: float) -> bool:
        """Whether it is forgotten, though it may still be stored."""
        return self.expires_at <= now_s

    def open_at(self, now_s: float) -> bool:
        """Whether it is there: neither expired nor deleted."""
        return self.deleted_at_ms is None and not self.expired(now_s)


@dataclass(frozen=True)
class ConversationListed:
    """What a list shows of a conversation."""

    session_id: str
    title: str
    created_at_ms: int
    updated_at_ms: int
    questions: int


@dataclass(frozen=True)
class RequestAsked:
    """A request of a conversation whose log is still stored."""

    request_id: str
    query: str
    asked_at_ms: int
    state: Literal["open", "complete", "failed"]
    expires_at: int
    """Epoch seconds: from then on it cannot be replayed."""


class ConversationRecords(Protocol):
    """The store of conversations. Every method raises :class:`cicada.delivery.ports.StoreFault` when it fails."""

    def add(self, key: SessionKey, request_id: str, query: str, *, at_ms: int, age_s: int) -> None:
        """Add a request to a conversation, which begins anew if it has expired or was deleted. Idempotent."""
        ...

    def read(self, key: SessionKey) -> ConversationRecord | None:
        """A conversation, also an expired or deleted one; None if there is none."""
        ...

    def owned_by(self, owner: str, now_s: float) -> Sequence[ConversationListed]:
        """The owner's conversations that are neither expired nor deleted, in no order."""
        ...

    def requests(self, owner: str, request_ids: Sequence[str]) -> Sequence[RequestAsked]:
        """Those of the owner's requests that are stored, in the order of their ids."""
        ...

    def rename(self, key: SessionKey, title: str, *, now_s: float) -> ConversationRecord | None:
        """Rename a conversation; None if there is none, or it is expired or deleted."""
        ...

    def delete(self, key: SessionKey, *, now_s: float) -> ConversationRecord | None:
        """Delete a conversation, and with it the turns that complete questions; None as for :meth:`rename`."""
        ...

    def restore(self, record: ConversationRecord, key: SessionKey, *, now_s: float, age_s: int) -> bool:
        """Restore a deleted conversation with its turns; False if it has changed or expired meanwhile."""
        ...
