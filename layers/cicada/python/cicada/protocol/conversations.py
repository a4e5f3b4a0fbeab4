"""Replies to the actions ``conversations`` and ``feedback``. Each is one frame; a longer list has pages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cicada.protocol.actions import FeedbackReason, Rating
from cicada.protocol.events import Payload, Reply

_NEXT = "the cursor to ask for the next page with; null on the last"


class ConversationListed(Payload):
    """A conversation in a list."""

    session_id: str
    title: str = Field(description="the first question, shortened, until it is renamed")
    created_at_ms: int = Field(description="of its first question, in epoch milliseconds")
    updated_at_ms: int = Field(description="of its last question, in epoch milliseconds")
    questions: int = Field(description="how many were asked")


class Conversations(Reply):
    """A page of the user's conversations, that with the last question first."""

    type: Literal["conversations"] = "conversations"
    conversations: tuple[ConversationListed, ...]
    next: str | None = Field(None, description=_NEXT)


class ConversationRequest(Payload):
    """A question of a conversation; ``resume`` replays its answer."""

    request_id: str
    query: str = Field(description="the question as it was asked")
    asked_at_ms: int = Field(description="epoch milliseconds")
    state: Literal["open", "complete", "failed"]


class ConversationShown(Reply):
    """A conversation, with the requests that can be replayed."""

    type: Literal["conversation"] = "conversation"
    session_id: str
    title: str
    created_at_ms: int
    updated_at_ms: int
    expires_at_ms: int = Field(description="when it is forgotten; of a deleted one, when it can no longer be restored")
    deleted_at_ms: int | None = Field(None, description="null unless it is deleted")
    questions: int = Field(description="how many were asked")
    requests: tuple[ConversationRequest, ...] = Field(
        description="in the order in which they were asked, without those whose answers are no longer kept"
    )
    next: str | None = Field(None, description=_NEXT)


class FeedbackGiven(Reply):
    """The feedback that is now stored for a request."""

    type: Literal["feedback"] = "feedback"
    rating: Rating | Literal["none"]
    reason: FeedbackReason | None = None
    comment: str | None = None


ConversationReply = Conversations | ConversationShown
