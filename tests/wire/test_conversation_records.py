"""The list of conversations over DynamoDB, beside its in-memory twin: both keep one contract."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from uuid import UUID

import pytest

from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import Answered, AnswerGiven, AskedQuestion
from cicada.conversation.conversation import FORGOTTEN, Conversation
from cicada.conversation.record_store import DynamoDbConversationRecords
from cicada.conversation.records import DROPPED_AT_ONCE, MAX_REQUESTS, UNDO_S
from cicada.conversation.sessions import DynamoDbSessions
from cicada.conversation.turns import Bounds, SessionKey
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.delivery.record import Question, RequestKey
from cicada.rights import EVERYTHING
from tests.support.conversations import InMemoryConversations
from tests.support.dynamodb import TABLE, requests_table
from tests.support.memory import InMemoryLog
from tests.support.questions import NOW_S, ScriptedModel, new_head
from tests.support.sessions import InMemorySessions

KEY = SessionKey("mara", None, "s1")
AGE_S = 3600
NOW_MS = NOW_S * 1000


def request_id(n: int) -> str:
    return str(UUID(int=n))


@pytest.fixture(params=["memory", "dynamodb"])
def world(request, monkeypatch):
    if request.param == "memory":
        log, sessions = InMemoryLog(), InMemorySessions()
        yield SimpleNamespace(log=log, sessions=sessions, records=InMemoryConversations(log, sessions), client=None)
        return
    with requests_table(monkeypatch, STORE_CONFIG) as client:
        yield SimpleNamespace(
            log=DynamoDbLog(client, TABLE),
            sessions=DynamoDbSessions(client, TABLE),
            records=DynamoDbConversationRecords(client, TABLE),
            client=client,
        )


def ask(world, n, query="Who locked the boathouse?", *, after_s=0, key=KEY):
    world.records.add(key, request_id(n), query, at_ms=NOW_MS + after_s * 1000, age_s=AGE_S)


def conversation(world, at_s=NOW_S):
    return Conversation(world.sessions, ScriptedModel(), now_s=lambda: at_s)


def answer(world, n, *, asked_after_s=0, answered_after_s=1):
    asked = AskedQuestion(
        RequestKey("mara", request_id(n)),
        Question("Who locked the boathouse?", session_id="s1"),
        "Who locked the boathouse?",
        at_ms=NOW_MS + asked_after_s * 1000,
        readable=lambda: EVERYTHING,
    )
    at_ms = NOW_MS + answered_after_s * 1000
    conversation(world).keep(AnswerGiven(asked, "rag", "Mara did.", None, Answered("end_turn", "m"), at_ms))


def turns(world, at_s=NOW_S + 10):

    return [turn.request_id for turn in world.sessions.read(KEY).session.at(at_s, Bounds()).turns]


def test_a_conversation_has_its_first_question_as_its_title(world):
    ask(world, 1)
    ask(world, 2, "And why?", after_s=5)
    record = world.records.read(KEY)
    assert (record.title, record.questions) == ("Who locked the boathouse?", 2)
    assert record.requests == (request_id(1), request_id(2))
    assert (record.created_at_ms, record.updated_at_ms) == (NOW_MS, NOW_MS + 5000)
    assert (record.expires_at, record.deleted_at_ms) == (NOW_S + 5 + AGE_S, None)


def test_a_long_first_question_is_shortened_for_the_title(world):
    ask(world, 1, "Who locked the boathouse " * 20)
    assert len(world.records.read(KEY).title) <= 80


def test_the_same_request_is_added_once(world):
    ask(world, 1)
    ask(world, 1)
    assert (world.records.read(KEY).requests, world.records.read(KEY).questions) == ((request_id(1),), 1)


def test_a_conversation_that_has_expired_begins_anew(world):
    ask(world, 1)
    ask(world, 2, "And why?", after_s=AGE_S)
    record = world.records.read(KEY)
    assert (record.title, record.questions, record.requests) == ("And why?", 1, (request_id(2),))


def test_the_oldest_requests_are_dropped_from_the_list_and_stay_counted(world):
    for n in range(MAX_REQUESTS + 1):
        ask(world, n)
    record = world.records.read(KEY)
    assert record.questions == MAX_REQUESTS + 1
    assert record.requests == tuple(map(request_id, range(DROPPED_AT_ONCE, MAX_REQUESTS + 1)))


def test_only_the_owners_open_conversations_are_listed(world):
    others = [SessionKey("jonas", None, "s1"), SessionKey("acme/mara", "acme", "s1")]
    keys = [KEY, replace(KEY, session_id="gone"), replace(KEY, session_id="deleted"), *others]
    for key in keys:
        ask(world, 1, key=key, after_s=-AGE_S if key.session_id == "gone" else 0)
    world.records.delete(keys[2], now_s=NOW_S)
    (listed,) = world.records.owned_by("mara", NOW_S)
    assert (listed.session_id, listed.title, listed.questions) == ("s1", "Who locked the boathouse?", 1)


def test_a_renamed_conversation_keeps_its_title(world):
    ask(world, 1)
    assert world.records.rename(KEY, "The boathouse", now_s=NOW_S).title == "The boathouse"
    ask(world, 2)
    assert world.records.read(KEY).title == "The boathouse"


@pytest.mark.parametrize("change", ["never", "expired", "deleted"])
def test_what_is_not_there_is_not_changed(world, change):
    if change != "never":
        ask(world, 1)
    if change == "deleted":
        world.records.delete(KEY, now_s=NOW_S)
    now_s = NOW_S + AGE_S if change == "expired" else NOW_S
    assert world.records.rename(KEY, "The boathouse", now_s=now_s) is None
    if change != "deleted":
        assert world.records.delete(KEY, now_s=now_s) is None


def test_a_deletion_can_be_repeated_and_taken_back(world):
    ask(world, 1)
    answer(world, 1)
    deleted = world.records.delete(KEY, now_s=NOW_S + 2)
    assert (deleted.deleted_at_ms, deleted.expires_at) == ((NOW_S + 2) * 1000, NOW_S + 2 + UNDO_S)
    assert world.records.delete(KEY, now_s=NOW_S + 9) == deleted
    assert turns(world) == []
    assert world.records.restore(deleted, KEY, now_s=NOW_S + 3, age_s=AGE_S)
    assert turns(world) == [request_id(1)]
    assert world.records.read(KEY).open_at(NOW_S + 3 + UNDO_S)
    assert not world.records.restore(deleted, KEY, now_s=NOW_S + 4, age_s=AGE_S)
    assert turns(world) == [request_id(1)]


def test_a_deletion_cannot_be_taken_back_after_its_time(world):
    ask(world, 1)
    deleted = world.records.delete(KEY, now_s=NOW_S)
    assert not world.records.restore(deleted, KEY, now_s=NOW_S + UNDO_S, age_s=AGE_S)


def test_a_deleted_conversation_completes_no_question(world):
    ask(world, 1)
    answer(world, 1)
    world.records.delete(KEY, now_s=NOW_S + 2)
    budget = AttemptBudget("rag", calls=4, deadline=60.0, monotonic=lambda: 0.0)
    question = Question("And what did she say next?", session_id="s1")
    completed = conversation(world, NOW_S + 3).complete(question, "mara", lambda: EVERYTHING, budget)
    assert completed.query == question.query
    assert completed.degraded.message == FORGOTTEN


def test_an_answer_asked_for_before_the_deletion_leaves_no_turn(world):
    ask(world, 1)
    world.records.delete(KEY, now_s=NOW_S + 2)
    answer(world, 1, asked_after_s=0, answered_after_s=5)
    assert turns(world) == []


def test_a_question_after_the_deletion_begins_anew(world):
    ask(world, 1)
    answer(world, 1)
    deleted = world.records.delete(KEY, now_s=NOW_S + 2)
    ask(world, 2, "And why?", after_s=3)
    answer(world, 2, asked_after_s=3, answered_after_s=4)
    record = world.records.read(KEY)
    assert (record.title, record.requests, record.deleted_at_ms) == ("And why?", (request_id(2),), None)
    assert turns(world) == [request_id(2)]
    assert not world.records.restore(deleted, KEY, now_s=NOW_S + 5, age_s=AGE_S)
    assert turns(world) == [request_id(2)]


def test_the_requests_of_a_conversation_are_those_that_are_stored(world):
    for n in (1, 3):
        head = replace(new_head(), key=RequestKey("mara", request_id(n)))
        world.log.create(head, '{"type":"accepted"}')
    found = world.records.requests("mara", [request_id(3), request_id(2), request_id(1)])
    assert [one.request_id for one in found] == [request_id(3), request_id(1)]
    head = world.log.head(RequestKey("mara", request_id(1)))
    assert (found[1].query, found[1].state) == (head.question.query, "open")
    assert (found[1].asked_at_ms, found[1].expires_at) == (head.accepted_at_ms, head.expires_at)
    assert not world.records.requests("jonas", [request_id(1)])


def test_a_question_costs_one_write_unit(world):
    if world.client is None:
        pytest.skip("of DynamoDB")
    for n in range(35):
        ask(world, n)
    (item,) = (one for one in world.client.scan(TableName=TABLE)["Items"] if one["pk"]["S"].startswith("conv"))
    assert item["owner"] == {"S": "mara"}
    size = sum(len(name) + _bytes(value) for name, value in item.items())
    assert size <= 1024, "35 questions fit the first kilobyte"


def _bytes(value):
    (kind, stored), *_ = value.items()
    match kind:
        case "L":
            return 3 + sum(1 + _bytes(one) for one in stored)
        case "N":
            return len(stored) // 2 + 2
        case _:
            return len(stored)
