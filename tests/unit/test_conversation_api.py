"""The action ``conversations``, and what each question does to the list."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import pytest

from cicada.answering import conversation_api
from cicada.answering.action_handlers import ActionHandlers
from cicada.answering.conversation_api import ConversationApi
from cicada.answering.recovery import Recovery
from cicada.conversation.records import UNDO_S
from cicada.delivery.ports import StoreFault
from cicada.errors import WorkflowUnavailable
from cicada.identity import Caller
from cicada.protocol.actions import parse_action
from tests.support.conversations import InMemoryConversations
from tests.support.gates import open_gate
from tests.support.memory import InMemoryConnections, InMemoryLog
from tests.support.profiles import profile_counter
from tests.support.questions import NOW_S

AGE_S, RETENTION_S = 3600, 7200
QUESTION = "Who locked the boathouse?"


class World:
    def __init__(self, **settings):
        self.now_s = NOW_S
        self.workflow_error = None
        self.log, self.connections = InMemoryLog(), InMemoryConnections("c1")
        self.records = InMemoryConversations(self.log)
        settings.setdefault("conversations", ConversationApi(self.records, age_s=AGE_S, now_s=lambda: self.now_s))
        self.handlers = ActionHandlers(
            self.log,
            self.connections,
            Recovery(self.log, self.connections, self, now_s=lambda: self.now_s),
            profile_counter(lambda: self.now_s),
            open_gate(self.log, now_s=lambda: self.now_s),
            retention_s=RETENTION_S,
            now_s=lambda: self.now_s,
            **settings,
        )

    def start(self, key, strategy, failed=()):
        if self.workflow_error:
            raise self.workflow_error

    def send(self, action, *, subject="mara", tenant=None, frame=None, **fields):
        body = {"action": action, "requestId": str(uuid4())} | fields
        caller = Caller(subject, "c1", frame or str(uuid4()), tenant=tenant)
        return json.loads(self.handlers.handle(parse_action(json.dumps(body)), caller))

    def ask(self, query=QUESTION, session="s1", *, after_s=1, **fields):
        self.now_s += after_s
        reply = self.send("ask", query=query, sessionId=session, **fields)
        return reply["requestId"]

    def conversations(self, operation, session=None, **fields):
        return self.send("conversations", operation=operation, **({"sessionId": session} if session else {}), **fields)

    def listed(self, **fields):
        return [one["sessionId"] for one in self.conversations("list", **fields)["conversations"]]


@pytest.fixture
def world():
    return World()


def test_the_last_used_conversation_is_listed_first(world):
    world.ask("Who locked the boathouse?", "s1")
    world.ask("Who rang the bell?", "s2")
    asked = world.ask("And why?", "s1")
    first, second = world.conversations("list")["conversations"]
    assert first == {
        "sessionId": "s1",
        "title": "Who locked the boathouse?",
        "createdAtMs": (NOW_S + 1) * 1000,
        "updatedAtMs": (NOW_S + 3) * 1000,
        "questions": 2,
    }
    assert (second["sessionId"], second["questions"]) == ("s2", 1)
    shown = world.conversations("show", "s1")
    assert shown["requests"][1] == {
        "requestId": asked,
        "query": "And why?",
        "askedAtMs": (NOW_S + 3) * 1000,
        "state": "open",
    }
    assert (shown["questions"], shown["deletedAtMs"], shown["next"]) == (2, None, None)
    assert shown["expiresAtMs"] == (NOW_S + 3 + AGE_S) * 1000


def test_a_question_without_a_session_is_in_no_conversation(world):
    world.send("ask", query=QUESTION)
    assert world.listed() == []


def test_a_question_that_failed_or_was_asked_twice_is_listed_once(world):
    world.workflow_error = WorkflowUnavailable("throttled")
    failed = world.ask()
    world.workflow_error = None
    twice = world.ask()
    world.ask(requestId=twice)
    shown = world.conversations("show", "s1")
    assert [(one["requestId"], one["state"]) for one in shown["requests"]] == [(failed, "failed"), (twice, "open")]


def test_another_user_or_tenant_has_other_conversations(world):
    world.ask()
    for caller in ({"subject": "jonas"}, {"tenant": "acme"}):
        assert world.listed(**caller) == []
        for operation, fields in (("show", {}), ("rename", {"title": "Mine"}), ("delete", {}), ("restore", {})):
            refused = world.conversations(operation, "s1", **fields, **caller)
            assert (refused["type"], refused["code"]) == ("error", "conversation_unknown")


def test_a_conversation_is_renamed(world):
    world.ask()
    assert world.conversations("rename", "s1", title="  The\nboathouse ")["title"] == "The boathouse"
    assert world.conversations("show", "s1")["title"] == "The boathouse"


def test_a_deleted_conversation_can_be_restored_for_ten_minutes(world):
    asked = world.ask()
    deleted = world.conversations("delete", "s1")
    assert deleted["deletedAtMs"] == world.now_s * 1000
    assert deleted["expiresAtMs"] == (world.now_s + UNDO_S) * 1000
    assert world.listed() == []
    assert world.conversations("show", "s1")["code"] == "conversation_unknown"
    assert world.conversations("delete", "s1")["deletedAtMs"] == deleted["deletedAtMs"]
    world.now_s += UNDO_S - 1
    restored = world.conversations("restore", "s1")
    assert (restored["deletedAtMs"], [one["requestId"] for one in restored["requests"]]) == (None, [asked])
    assert world.listed() == ["s1"]
    assert world.conversations("restore", "s1")["type"] == "conversation"
    world.conversations("delete", "s1")
    world.now_s += UNDO_S
    assert world.conversations("restore", "s1")["code"] == "conversation_unknown"


def test_a_conversation_is_forgotten_when_it_is_too_old(world):
    world.ask()
    world.now_s += AGE_S
    assert world.listed() == []
    assert world.conversations("show", "s1")["code"] == "conversation_unknown"


def test_requests_that_cannot_be_replayed_are_not_shown(world):
    world.ask()
    for _ in range(3):
        kept = world.ask(after_s=AGE_S - 1)
    shown = world.conversations("show", "s1")
    assert shown["questions"] == 4
    assert [one["requestId"] for one in shown["requests"]][-1] == kept
    assert len(shown["requests"]) == 3


def test_a_long_list_and_a_long_conversation_have_pages(world, monkeypatch):
    monkeypatch.setattr(conversation_api, "PAGE_BYTES", 700)
    monkeypatch.setattr(conversation_api, "SHOWN_AT_ONCE", 7)
    asked = [world.ask(f"{QUESTION} {n}") for n in range(20)]
    for n in range(9):
        world.ask(session=f"other-{n}", after_s=0)
    seen, cursor = [], dict[str, str]()
    while True:
        page = world.conversations("list", **cursor)
        seen += [one["sessionId"] for one in page["conversations"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert seen == [*(f"other-{n}" for n in range(9)), "s1"]
    requests, cursor = [], dict[str, str]()
    while True:
        page = world.conversations("show", "s1", **cursor)
        assert len(page["requests"]) < 7
        requests += [one["requestId"] for one in page["requests"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert requests == asked


def test_an_invalid_cursor_is_refused(world):
    assert world.conversations("list", cursor="yesterday")["code"] == "invalid_message"


def test_a_store_that_fails_stops_no_question(world):
    world.records.fault = StoreFault("throttled")
    assert world.send("ask", query=QUESTION, sessionId="s1")["type"] == "accepted"
    assert world.conversations("list")["code"] == "delivery_unavailable"


def test_where_conversations_are_not_kept_the_action_is_unknown():
    world = World(conversations=None)
    world.ask()
    refused = world.conversations("list", requestId=str(UUID(int=7)))
    assert (refused["code"], refused["requestId"]) == ("unknown_action", str(UUID(int=7)))
