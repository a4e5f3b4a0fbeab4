"""The contract of the semantic cache's store, kept by the twin in memory and by DynamoDB alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from cicada.errors import CacheUnavailable
from cicada.semantic_cache.dynamodb import CACHE_CONFIG, DynamoDbCacheStore
from cicada.semantic_cache.entries import CacheEntry
from tests.support.cache_store import InMemoryCacheStore
from tests.support.cached_answers import ANSWER, Shelf
from tests.support.dynamodb import requests_table
from tests.support.questions import NOW_S

SCOPE = "a" * 32
TABLE = "requests"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with requests_table(monkeypatch, CACHE_CONFIG) as client:
        yield client


@pytest.fixture(params=["memory", "dynamodb"])
def store(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return InMemoryCacheStore()
    return DynamoDbCacheStore(request.getfixturevalue("client"), TABLE)


def entry(number: int, *, question: str = "Who?", vector: bytes = b"\x01\x02") -> CacheEntry:
    return CacheEntry(f"{number:013d}-aa", question, vector, number, NOW_S + number)


def test_an_entry_and_its_body_read_back_as_they_were_put(store: Any) -> None:
    kept = entry(1, question="Wo ist 鍵?", vector=bytes(range(256)))
    store.put(SCOPE, kept, b"\x00body", owner="mara")
    assert store.entries(SCOPE, after="", limit=10) == [kept]
    assert store.body(SCOPE, kept.id) == b"\x00body"


def test_the_newest_come_first_and_no_more_than_asked_for(store: Any) -> None:
    for number in (3, 1, 2):
        store.put(SCOPE, entry(number), b"", owner="mara")
    assert store.entries(SCOPE, after="", limit=2) == [entry(3), entry(2)]


def test_both_items_of_an_answer_name_whose_it_is(client: Any) -> None:
    DynamoDbCacheStore(client, TABLE).put(SCOPE, entry(1), b"body", owner="acme/mara")
    items = client.scan(TableName=TABLE)["Items"]
    assert [item["owner"]["S"] for item in items] == ["acme/mara"] * 2


def test_only_what_is_newer_is_read(store: Any) -> None:
    for number in (1, 2, 3):
        store.put(SCOPE, entry(number), b"", owner="mara")
    assert store.entries(SCOPE, after=entry(1).id, limit=10) == [entry(3), entry(2)]
    assert store.entries(SCOPE, after=entry(3).id, limit=10) == []


def test_what_is_older_is_told_by_its_ids_the_oldest_first(store: Any) -> None:
    for number in (3, 1, 2):
        store.put(SCOPE, entry(number), b"", owner="mara")
    assert store.older(SCOPE, before=entry(3).id, limit=10) == [entry(1).id, entry(2).id]
    assert store.older(SCOPE, before=entry(3).id, limit=1) == [entry(1).id]
    assert store.older(SCOPE, before=entry(1).id, limit=10) == []


def test_scopes_are_apart(store: Any) -> None:
    store.put(SCOPE, entry(1), b"body", owner="mara")
    assert store.entries("b" * 32, after="", limit=10) == []
    assert store.body("b" * 32, entry(1).id) is None


def test_deleted_entries_are_gone_with_their_bodies(store: Any) -> None:
    for number in range(60):
        store.put(SCOPE, entry(number), b"body", owner="mara")
    store.delete(SCOPE, [entry(number).id for number in range(58)])
    store.delete(SCOPE, [entry(0).id])
    assert store.entries(SCOPE, after="", limit=100) == [entry(59), entry(58)]
    assert store.body(SCOPE, entry(0).id) is None
    assert store.body(SCOPE, entry(58).id) == b"body"


def test_more_entries_than_one_page_holds_are_all_read(client: Any) -> None:
    store = DynamoDbCacheStore(client, TABLE)
    large = [entry(number, vector=bytes(300_000)) for number in range(8)]
    for one in large:
        store.put(SCOPE, one, b"", owner="mara")
    assert store.entries(SCOPE, after="", limit=100) == large[::-1]
    assert store.entries(SCOPE, after="", limit=5) == large[:2:-1]


def test_the_body_is_written_before_the_entry_and_both_carry_their_time_to_live(client: Any) -> None:
    written: list[str] = []
    client.meta.events.register(
        "before-parameter-build.dynamodb.PutItem", lambda params, **_: written.append(params["Item"]["sk"]["S"])
    )
    DynamoDbCacheStore(client, TABLE).put(SCOPE, entry(1), b"body", owner="mara")
    assert written == [f"body#{entry(1).id}", f"entry#{entry(1).id}"]
    items = client.scan(TableName=TABLE)["Items"]
    assert {item["pk"]["S"] for item in items} == {f"cache#{SCOPE}"}
    assert all(int(item["expires_at"]["N"]) > entry(1).expires_at for item in items)
    assert not any("open_in" in item for item in items)


def test_an_item_of_another_layout_is_left_out(client: Any) -> None:
    store = DynamoDbCacheStore(client, TABLE)
    store.put(SCOPE, entry(1), b"", owner="mara")
    client.put_item(TableName=TABLE, Item={"pk": {"S": f"cache#{SCOPE}"}, "sk": {"S": "entry#0000000000002-bb"}})
    assert store.entries(SCOPE, after="", limit=10) == [entry(1)]


def test_a_look_up_reads_eventually_and_a_body_consistently(client: Any) -> None:
    asked: dict[str, Any] = {}
    for operation in ("Query", "GetItem"):
        client.meta.events.register(
            f"before-parameter-build.dynamodb.{operation}",
            lambda params, model, **_: asked.__setitem__(model.name, params.get("ConsistentRead", False)),
        )
    store = DynamoDbCacheStore(client, TABLE)
    store.entries(SCOPE, after="", limit=1)
    store.body(SCOPE, "x")
    assert asked == {"Query": False, "GetItem": True}


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("query", lambda store: store.entries(SCOPE, after="", limit=1)),
        ("query", lambda store: store.older(SCOPE, before="x", limit=1)),
        ("get_item", lambda store: store.body(SCOPE, "x")),
        ("put_item", lambda store: store.put(SCOPE, entry(1), b"", owner="mara")),
        ("batch_write_item", lambda store: store.delete(SCOPE, ["x"])),
    ],
)
def test_whatever_dynamodb_answers_is_one_fault(client: Any, operation: str, call: Any) -> None:
    with Stubber(client) as stub:
        stub.add_client_error(operation, "ProvisionedThroughputExceededException")
        with pytest.raises(CacheUnavailable) as raised:
            call(DynamoDbCacheStore(client, TABLE))
    assert isinstance(raised.value.__cause__, ClientError)


def test_deletes_that_stay_undone_are_asked_for_again_a_few_times(client: Any) -> None:
    undone = {"UnprocessedItems": {TABLE: [{"DeleteRequest": {"Key": {"pk": {"S": "p"}, "sk": {"S": "s"}}}}]}}
    with Stubber(client) as stub:
        for answer in (undone, {}, undone, undone, undone):
            stub.add_response("batch_write_item", answer, {"RequestItems": ANY})
        with pytest.raises(CacheUnavailable):
            DynamoDbCacheStore(client, TABLE).delete(SCOPE, ["x"])
        stub.assert_no_pending_responses()


def test_an_answer_goes_through_dynamodb_and_comes_back(client: Any) -> None:
    store: Any = DynamoDbCacheStore(client, TABLE)
    Shelf(store).keep("Who locked the boathouse?")
    looked = Shelf(store).look_up("Hi, who locked the boathouse, please?")
    assert (looked.use, looked.text) == ("answer", ANSWER)


def test_what_dynamodb_has_lost_or_damaged_is_a_miss(client: Any) -> None:
    store: Any = DynamoDbCacheStore(client, TABLE)
    Shelf(store).keep("Who locked the boathouse?")
    (item,) = [one for one in client.scan(TableName=TABLE)["Items"] if one["sk"]["S"].startswith("body#")]
    client.put_item(TableName=TABLE, Item={**item, "body": {"S": "text, where bytes should be"}})
    assert Shelf(store).look_up("Who locked the boathouse?").use == "miss"
    client.delete_item(TableName=TABLE, Key={"pk": item["pk"], "sk": item["sk"]})
    assert Shelf(store).look_up("Who locked the boathouse?").use == "miss"
