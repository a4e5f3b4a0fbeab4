"""Feedback on answers, from the action to what an operator reads, over DynamoDB."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

import pytest

from cicada.answering.feedback_api import FeedbackApi
from cicada.delivery.decide import append
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.delivery.record import RequestKey
from cicada.errors import AllStrategiesFailed, CicadaError
from cicada.feedback.store import DynamoDbFeedback
from cicada.protocol.actions import GiveFeedback
from cicada.protocol.events import Complete, Failed, Metrics, Sources
from tests.support.dynamodb import TABLE, requests_table
from tests.support.questions import ACCEPTED, NOW_S, beginning, new_head
from tests.support.scripted_answers import SOURCE

RETENTION_S = 90 * 24 * 3600
DAY_S = 24 * 3600
COMPLETE = Complete(
    attempt=1,
    answered_by="rag",
    attempted=("hybrid", "rag"),
    model="nova",
    grounded=True,
    stop_reason="end_turn",
    metrics=Metrics(latency_ms=1, attempt_ms=1, first_chunk_ms=1),
)
SOURCES = Sources(attempt=1, index_version="v7", searched=3, sources=(SOURCE,))


class World:
    def __init__(self, client):
        self.client = client
        self.now_s = NOW_S
        self.rated = list[str]()
        self.log = DynamoDbLog(client, TABLE)
        self.store = DynamoDbFeedback(client, TABLE)
        self.api = FeedbackApi(
            self.log, self.store, retention_s=RETENTION_S, on_rated=self.rated.append, now_s=lambda: self.now_s
        )

    def answered(self, n=1, *events, owner="mara", asked_at_s=NOW_S):
        key = RequestKey(owner, str(UUID(int=n)))
        head = replace(new_head(), key=key, accepted_at_ms=asked_at_s * 1000, expires_at=asked_at_s + 7 * DAY_S)
        self.log.create(head, ACCEPTED)
        head = self.log.commit(head, beginning(self.log.head(key)))
        self.log.commit(head, append(head, events or (SOURCES, COMPLETE)))
        return key

    def rate(self, key, rating, owner="mara", **fields):
        return self.api.handle(GiveFeedback(requestId=key.request_id, rating=rating, **fields), owner)

    def stored(self, since_s=0):
        return list(self.store.newest(since_s=since_s, now_s=self.now_s))


@pytest.fixture
def world(monkeypatch):
    with requests_table(monkeypatch, STORE_CONFIG) as client:
        yield World(client)


def test_a_rating_is_stored_with_how_the_answer_was_given(world):
    key = world.answered()
    given = world.rate(key, "down", reason="bad_sources", comment="It cites the wrong night.")
    assert (given.rating, given.reason, given.comment) == ("down", "bad_sources", "It cites the wrong night.")
    (record,) = world.stored()
    assert record.model_dump(exclude={"question", "route"}) == {
        "request_id": key.request_id,
        "rating": "down",
        "reason": "bad_sources",
        "comment": "It cites the wrong night.",
        "given_at_ms": NOW_S * 1000,
        "asked_at_ms": NOW_S * 1000,
        "completed_question": None,
        "state": "complete",
        "code": None,
        "strategies": ("hybrid", "rag"),
        "model": "nova",
        "grounded": True,
        "index_version": "v7",
        "engine": "shards",
        "collections": (SOURCE.collection,),
        "degraded": (),
    }
    assert record.question == world.log.head(key).question.query
    assert record.route == json.loads(ACCEPTED)["route"]


def test_an_answer_that_failed_or_is_still_written_can_be_rated(world):
    failed = world.answered(1, Failed.of(AllStrategiesFailed()))
    under_way = world.answered(2, SOURCES)
    world.rate(failed, "down")
    world.rate(under_way, "up")
    assert {(one.state, one.code, one.model) for one in world.stored()} == {
        ("failed", "all_strategies_failed", None),
        ("open", None, None),
    }


def test_the_last_rating_of_a_request_counts_and_each_change_once(world):
    key = world.answered()
    for rating in ("up", "up", "down", "down"):
        world.rate(key, rating)
    world.rate(key, "down", reason="wrong")
    (record,) = world.stored()
    assert (record.rating, record.reason) == ("down", "wrong")
    assert world.rated == ["up", "down"]
    for _ in range(2):
        assert world.rate(key, "none").rating == "none"
        assert world.stored() == []


@pytest.mark.parametrize("case", ["never asked", "somebody else's", "expired"])
def test_only_an_own_request_that_is_kept_can_be_rated(world, case):
    key = RequestKey("mara", str(UUID(int=9))) if case == "never asked" else world.answered()
    world.now_s += 7 * DAY_S if case == "expired" else 0
    with pytest.raises(CicadaError) as refused:
        world.rate(key, "up", owner="jonas" if case == "somebody else's" else "mara")
    assert refused.value.code == ("request_expired" if case == "expired" else "request_unknown")
    assert world.stored() == []


def test_feedback_is_read_newest_question_first_over_months_until_it_expires(world):
    ages = (0, 5, 40, 70)
    for n, age in enumerate(ages):
        world.now_s = NOW_S - age * DAY_S
        world.rate(world.answered(n, owner=f"user-{n % 2}", asked_at_s=world.now_s), "up", owner=f"user-{n % 2}")
    world.now_s = NOW_S

    def days(since_s=0):
        return [(NOW_S * 1000 - one.asked_at_ms) // (DAY_S * 1000) for one in world.stored(since_s)]

    assert days(NOW_S - 100 * DAY_S) == [0, 5, 40, 70]
    assert days(NOW_S - 40 * DAY_S) == [0, 5, 40]
    world.now_s = NOW_S + RETENTION_S - 10 * DAY_S
    assert days(NOW_S - 100 * DAY_S) == [0, 5]


def test_what_a_newer_release_stored_is_left_aside(world):
    world.rate(world.answered(), "up")
    (item,) = (one for one in world.client.scan(TableName=TABLE)["Items"] if one["pk"]["S"].startswith("feedback#"))
    assert item["owner"] == {"S": "mara"}
    world.client.put_item(TableName=TABLE, Item=item | {"record": {"S": '{"rating": "sideways"}'}})
    assert world.stored() == []
    world.rate(world.log.head(RequestKey("mara", str(UUID(int=1)))).key, "down")
    assert [one.rating for one in world.stored()] == ["down"]
