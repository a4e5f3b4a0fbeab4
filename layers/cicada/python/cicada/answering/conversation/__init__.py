"""The conversation: the last turns of a session, and questions that are completed from them."""

from cicada.answering.conversation.conversation import Completed, Conversation
from cicada.answering.conversation.turns import Bounds

__all__ = ["Bounds", "Completed", "Conversation"]
