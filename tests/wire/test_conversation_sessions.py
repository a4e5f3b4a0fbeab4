"""The contract of the store of sessions, kept by the in-memory twin and by DynamoDB alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import boto3
import pytest

from cicada.attempts.strategy import Answered, AnswerGiven, AskedQuestion
from cicada.conversation.conversation import Conversation
from cicada.conversation.sessions import SESSION_CONFIG, DynamoDbSessions, SessionChanged, Sessions, Stored
from cicada.conversation.turns import ConversationSession, ConversationTurn, SessionKey
from cicada.delivery.ports import StoreFault
from cicada.delivery.record import Question, RequestKey
from cicada.rights import EVERYTHING
from tests.support.dynamodb import requests_table
from tests.support.questions import NOW_S, ScriptedModel
from tests.support.sessions import InMemorySessions

KEY = SessionKey("mara", None, "s1")


@pytest.fixture
def dynamodb(monkeypatch):
    with requests_table(monkeypatch, SESSION_CONFIG) as client:
        yield client


@pytest.fixture(params=["memory", "dynamodb"])
def sessions(request):
    if request.param == "memory":
        return InMemorySessions()
    return DynamoDbSessions(request.getfixturevalue("dynamodb"), "requests")


def session(*texts: str) -> ConversationSession:
    turns = tuple(ConversationTurn(f"r{n}", NOW_S * 1000 + n, text, text, "…") for n, text in enumerate(texts))
    return ConversationSession(turns, forgotten_until_ms=7)


def given_answer(n: int) -> AnswerGiven:
    asked = AskedQuestion(
        RequestKey("mara", f"r{n}"), Question("Why?", session_id="s1"), "Why?", readable=lambda: EVERYTHING
    )
    return AnswerGiven(asked, "rag", "Because.", None, Answered("end_turn", "m"), NOW_S * 1000 + n)


def test_a_session_that_was_never_written_is_empty(sessions):
    assert sessions.read(KEY) == Stored(ConversationSession(), 0)


def test_a_session_reads_as_it_was_written(sessions):
    written = session("Who locked the boathouse?", "なぜ？ 🗝", 'a "quoted" one')
    sessions.write(KEY, written, over=0, expires_at=NOW_S)
    assert sessions.read(KEY) == Stored(written, 1)
    sessions.write(KEY, session("one"), over=1, expires_at=NOW_S)
    assert sessions.read(KEY) == Stored(session("one"), 2)


def test_a_session_names_whose_it_is(dynamodb):
    key = SessionKey("acme/mara", "acme", "s1")
    DynamoDbSessions(dynamodb, "requests").write(key, session("one"), over=0, expires_at=NOW_S)
    (item,) = dynamodb.scan(TableName="requests")["Items"]
    assert item["owner"] == {"S": "acme/mara"}


@pytest.mark.parametrize("over", [0, 2])
def test_a_write_over_another_version_shows_what_stands(sessions, over):
    sessions.write(KEY, session("first"), over=0, expires_at=NOW_S)
    with pytest.raises(SessionChanged) as changed:
        sessions.write(KEY, session("second"), over=over, expires_at=NOW_S)
    assert changed.value.stored == Stored(session("first"), 1)


def test_a_session_that_was_deleted_meanwhile_shows_as_new(sessions):
    with pytest.raises(SessionChanged) as changed:
        sessions.write(KEY, session("one"), over=3, expires_at=NOW_S)
    assert changed.value.stored == Stored(ConversationSession(), 0)


@pytest.mark.parametrize("other", [SessionKey("jonas", None, "s1"), SessionKey("mara", "t", "s1")])
def test_another_subjects_or_tenants_session_is_another(sessions, other):
    sessions.write(KEY, session("mine"), over=0, expires_at=NOW_S)
    assert sessions.read(other).version == 0


class InterruptedSessions:
    """Sessions to which somebody else writes just before each of the first writes."""

    def __init__(self, sessions: Sessions, *others: Callable[[], None]) -> None:
        self._sessions = sessions
        self._others = list(others)

    def read(self, key: SessionKey) -> Stored:
        return self._sessions.read(key)

    def write(self, key: SessionKey, session: ConversationSession, *, over: int, expires_at: int) -> None:
        if self._others:
            self._others.pop()()
        self._sessions.write(key, session, over=over, expires_at=expires_at)


def test_answers_kept_at_once_are_all_kept(sessions):
    def sink(store: Sessions) -> Conversation:
        return Conversation(store, ScriptedModel(), now_s=lambda: NOW_S)

    others = [partial(sink(sessions).keep, given_answer(n)) for n in (0, 2, 3)]
    sink(InterruptedSessions(sessions, *others)).keep(given_answer(1))
    assert [turn.request_id for turn in sessions.read(KEY).session.turns] == ["r0", "r1", "r2", "r3"]


def test_an_item_says_whose_it_is_to_nobody_and_when_it_may_go(dynamodb):
    DynamoDbSessions(dynamodb, "requests").write(KEY, session("one"), over=0, expires_at=NOW_S + 60)
    (item,) = dynamodb.scan(TableName="requests")["Items"]
    assert item["pk"]["S"] == f"session#{KEY.digest}"
    assert "mara" not in item["pk"]["S"]
    assert item["expires_at"] == {"N": str(NOW_S + 60)}


def test_turns_of_a_newer_release_are_not_used_and_stay(dynamodb):
    store = DynamoDbSessions(dynamodb, "requests")
    store.write(KEY, session("one"), over=0, expires_at=NOW_S)
    dynamodb.update_item(
        TableName="requests",
        Key={"pk": {"S": f"session#{KEY.digest}"}, "sk": {"S": "turns"}},
        UpdateExpression="SET turns = :turns",
        ExpressionAttributeValues={":turns": {"S": '[{"text": "of another release"}]'}},
    )
    with pytest.raises(StoreFault, match="newer release"):
        store.read(KEY)
    with pytest.raises(StoreFault, match="newer release"):
        store.write(KEY, session("two"), over=0, expires_at=NOW_S)
    (item,) = dynamodb.scan(TableName="requests")["Items"]
    assert "of another release" in item["turns"]["S"]


def test_a_lone_surrogate_is_no_character_and_does_not_stop_a_turn(dynamodb):
    store = DynamoDbSessions(dynamodb, "requests")
    store.write(KEY, session("a \ud800 b"), over=0, expires_at=NOW_S)
    assert store.read(KEY).session.turns[0].asked == "a ? b"


def test_a_failing_store_is_one_kind_of_fault(dynamodb):
    store = DynamoDbSessions(dynamodb, "no-such-table")
    with pytest.raises(StoreFault):
        store.read(KEY)
    with pytest.raises(StoreFault):
        store.write(KEY, session("one"), over=0, expires_at=NOW_S)


def test_an_unreachable_store_is_the_same_fault(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    client = boto3.client("dynamodb", region_name="us-east-1", endpoint_url="http://127.0.0.1:9", config=SESSION_CONFIG)
    store = DynamoDbSessions(client, "requests")
    with pytest.raises(StoreFault):
        store.read(KEY)
    with pytest.raises(StoreFault):
        store.write(KEY, session("one"), over=0, expires_at=NOW_S)
