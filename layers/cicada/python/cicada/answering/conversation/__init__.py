"""The conversation: the last turns of a session, and questions that are completed from them."""

from cicada.answering.conversation.conversation import Completed, Conversation

__all__ = ["Completed", "Conversation"]
