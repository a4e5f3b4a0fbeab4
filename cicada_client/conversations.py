"""The list of the user's conversations, as the server keeps it."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import ValidationError

from cicada.protocol.actions import ManageConversations
from cicada.protocol.conversations import Conversations, ConversationShown
from cicada_client.call import CallReply
from cicada_client.errors import ClientError, InvalidQuestion

Send = Callable[[ManageConversations], Awaitable[CallReply]]


class ConversationsClient:
    """The operations on the conversations of the user who is connected.

    Each raises :class:`~cicada_client.errors.RequestRefused` where it is refused, with the code
    ``conversation_unknown`` or, of a server that keeps no list, ``unknown_action``; and what asking can raise.
    """

    def __init__(self, send: Send) -> None:
        """``send`` brings an action's reply."""
        self._send = send

    async def list(self, *, cursor: str | None = None) -> Conversations:
        """List a page of conversations, the last used first. ``cursor``: the ``next`` of the page before."""
        reply = await self._reply(operation="list", cursor=cursor)
        if not isinstance(reply, Conversations):
            raise ClientError(f"the server answered conversations with {reply.type}")
        return reply

    async def show(self, session_id: str, *, cursor: str | None = None) -> ConversationShown:
        """Show a conversation with a page of its requests; ``resume`` of the client replays each."""
        return await self._shown(operation="show", sessionId=session_id, cursor=cursor)

    async def rename(self, session_id: str, title: str) -> ConversationShown:
        """Give a conversation another title."""
        return await self._shown(operation="rename", sessionId=session_id, title=title)

    async def delete(self, session_id: str) -> ConversationShown:
        """Delete a conversation. It can be restored until ``expires_at_ms`` of the reply."""
        return await self._shown(operation="delete", sessionId=session_id)

    async def restore(self, session_id: str) -> ConversationShown:
        """Take a deletion back."""
        return await self._shown(operation="restore", sessionId=session_id)

    async def _shown(self, **fields: Any) -> ConversationShown:
        reply = await self._reply(**fields)
        if not isinstance(reply, ConversationShown):
            raise ClientError(f"the server answered conversations with {reply.type}")
        return reply

    async def _reply(self, **fields: Any) -> CallReply:
        try:
            action = ManageConversations.model_validate({"requestId": str(uuid.uuid4()), **fields})
        except ValidationError as error:
            raise InvalidQuestion(str(error.errors(include_url=False, include_input=False)[0]["msg"])) from error
        return await self._send(action)
