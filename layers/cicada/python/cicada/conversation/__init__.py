"""The conversation: the last turns of a session, and questions that are completed from them."""

from cicada.conversation.conversation import Conversation
from cicada.conversation.turns import Bounds

__all__ = ["Bounds", "Conversation"]
