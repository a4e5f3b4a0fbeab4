"""The client's methods for conversations and feedback, against a scripted deployment."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cicada.errors import ConversationUnknown
from cicada.protocol.actions import GiveFeedback, ManageConversations
from cicada.protocol.conversations import ConversationListed, Conversations, ConversationShown, FeedbackGiven
from cicada.protocol.events import Refused, Reply
from cicada_client import CicadaClient, InvalidQuestion, RequestRefused, SyncCicadaClient
from tests.support.scripted_answers import QUESTION, TEXT, answer
from tests.support.scripted_deployment import ScriptedDeployment

LISTED = ConversationListed(session_id="s1", title="The bell", created_at_ms=1, updated_at_ms=2, questions=1)
REQUEST_ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"


def reply(action: Any) -> Reply:
    match action:
        case ManageConversations(operation="list"):
            return Conversations(conversations=(LISTED,), next=None if action.cursor else "2 s1")
        case ManageConversations(session_id="s2"):
            return Refused.of(ConversationUnknown())
        case ManageConversations():
            return ConversationShown(
                session_id=action.session_id or "",
                title=action.title or "The bell",
                created_at_ms=1,
                updated_at_ms=2,
                expires_at_ms=3,
                deleted_at_ms=2 if action.operation == "delete" else None,
                questions=1,
                requests=(),
            )
        case GiveFeedback():
            return FeedbackGiven(rating=action.rating, reason=action.reason, comment=action.comment)
    raise AssertionError(action)


def test_conversations_are_listed_shown_renamed_deleted_and_restored() -> None:
    with ScriptedDeployment(reply=reply) as deployment, SyncCicadaClient(deployment.url) as client:
        page = client.conversations.list()
        assert (page.conversations, page.next) == ((LISTED,), "2 s1")
        assert client.conversations.list(cursor=page.next).next is None
        assert client.conversations.show("s1").title == "The bell"
        assert client.conversations.rename("s1", "The fog bell").title == "The fog bell"
        assert client.conversations.delete("s1").deleted_at_ms == 2
        assert client.conversations.restore("s1").deleted_at_ms is None
        with pytest.raises(RequestRefused) as refused:
            client.conversations.show("s2")
        assert refused.value.code == "conversation_unknown"
        with pytest.raises(InvalidQuestion):
            client.conversations.rename("s1", " ")


def test_an_answer_is_rated_while_its_request_is_followed_elsewhere() -> None:
    async def rate(url: str) -> None:
        async with CicadaClient(url) as client:
            stream = client.ask(QUESTION, request_id=REQUEST_ID)
            rated = await asyncio.gather(
                client.feedback(REQUEST_ID, "down", reason="wrong", comment="It was Tamsin."),
                client.feedback(REQUEST_ID, "up"),
            )
            assert [(one.rating, one.reason, one.comment) for one in rated] == [
                ("down", "wrong", "It was Tamsin."),
                ("up", None, None),
            ]
            async for _ in stream:
                pass
            assert stream.answer.text == TEXT
            assert (await client.feedback(REQUEST_ID, "none")).rating == "none"
            with pytest.raises(InvalidQuestion):
                await client.feedback(REQUEST_ID, "up", reason="wrong")

    with ScriptedDeployment({QUESTION: answer()}, reply) as deployment:
        asyncio.run(rate(deployment.url))
