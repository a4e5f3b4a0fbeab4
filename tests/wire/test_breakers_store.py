"""The contract of the circuit breakers' store, kept by the in-memory twin and by DynamoDB alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
from botocore.stub import Stubber

from cicada.breakers.decide import Breaker
from cicada.breakers.dynamodb import BREAKER_CONFIG, DynamoDbBreakerStore
from cicada.breakers.ports import Overtaken
from cicada.breakers.registry import BreakerRegistry
from cicada.delivery.ports import StoreFault
from cicada.errors import DependencyDown, ModelBusy
from tests.support.breakers import Beside, Clock, InMemoryBreakers, board
from tests.support.dynamodb import requests_table

NOW_MS = 1_800_000_000_123
OPEN = Breaker(
    revision=NOW_MS,
    open_since_ms=NOW_MS,
    openings=2,
    retry_at_ms=NOW_MS + 10_000,
    probe="w1#7",
    probe_until_ms=NOW_MS + 60_000,
    cause="model_busy",
)


@pytest.fixture
def dynamodb(monkeypatch):
    with requests_table(monkeypatch, BREAKER_CONFIG) as client:
        yield client


@pytest.fixture(params=["memory", "dynamodb"])
def store(request):
    if request.param == "memory":
        return InMemoryBreakers()
    return DynamoDbBreakerStore(request.getfixturevalue("dynamodb"), "requests")


@pytest.mark.parametrize("breaker", [OPEN, Breaker(revision=NOW_MS, failures_ms=(NOW_MS - 1, NOW_MS))])
def test_a_breaker_reads_as_it_was_put(store, breaker):
    assert store.read() == {}
    store.swap("model:us.amazon.nova-lite-v1:0", Breaker(), breaker)
    assert store.read() == {"model:us.amazon.nova-lite-v1:0": breaker}


def test_each_dependency_has_its_own(store):
    store.swap("index", Breaker(), Breaker(revision=NOW_MS))
    store.swap("cache", Breaker(), OPEN)
    assert store.read() == {"index": Breaker(revision=NOW_MS), "cache": OPEN}


@pytest.mark.parametrize("old", [Breaker(), Breaker(revision=7)])
def test_a_change_upon_an_old_view_is_refused_with_what_stands(store, old):
    store.swap("index", Breaker(), OPEN)
    with pytest.raises(Overtaken) as overtaken:
        store.swap("index", old, replace(OPEN, revision=NOW_MS + 5))
    assert overtaken.value.stored == OPEN
    assert store.read() == {"index": OPEN}


def test_a_change_upon_what_stands_takes_its_place(store):
    store.swap("index", Breaker(), OPEN)
    closed = Breaker(revision=NOW_MS + 5)
    store.swap("index", OPEN, closed)
    assert store.read() == {"index": closed}


def test_a_breaker_that_was_deleted_meanwhile_begins_anew(store):
    with pytest.raises(Overtaken) as overtaken:
        store.swap("index", OPEN, replace(OPEN, revision=NOW_MS + 5))
    assert overtaken.value.stored == Breaker()


def test_two_workers_share_a_breaker(store):
    clock = Clock()
    first, second = board(store, clock, "w1"), board(store, clock, "w2")
    for worker in (first, second, first, second, first):
        worker.failed("model:m", ModelBusy("throttled"))
    with pytest.raises(DependencyDown):
        board(store, clock, "w3").check(["model:m"])
    clock.pass_s(5)
    probe = second.admit("model:m")
    with pytest.raises(DependencyDown):
        first.admit("model:m")
    probe.succeeded()
    clock.pass_s(3)
    first.admit("model:m")


def test_a_breaker_that_nothing_happens_to_is_deleted_after_a_week(dynamodb):
    DynamoDbBreakerStore(dynamodb, "requests").swap("index", Breaker(), OPEN)
    (item,) = dynamodb.scan(TableName="requests")["Items"]
    assert item["expires_at"] == {"N": str(1_800_000_000 + 7 * 24 * 3600)}
    assert (item["pk"], item["sk"]) == ({"S": "breakers"}, {"S": "index"})


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "InternalServerError", "AccessDenied"])
def test_whatever_the_service_answers_is_a_fault_that_fails_no_answer(dynamodb, code):
    with Stubber(dynamodb) as stub:
        stub.add_client_error("query", code)
        stub.add_client_error("put_item", code)
        stub.add_client_error("query", code)
        store = DynamoDbBreakerStore(dynamodb, "requests")
        breakers = BreakerRegistry(store, worker_id="w1", concurrency=Beside())
        breakers.check(["index"])
        breakers.failed("index", ModelBusy("another's"))
        breakers.failed("model:m", ModelBusy("throttled"))
        with pytest.raises(StoreFault):
            breakers.states()
        stub.assert_no_pending_responses()
