"""The short ways through moto come out where the long ones do."""

from __future__ import annotations

import copy
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.core.serialize import BaseJSONSerializer
from moto.dynamodb import responses
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser

from cicada_local import moto_speed

ITEM: dict[str, Any] = {
    "pk": {"S": "a"},
    "empty": {"S": ""},
    "count": {"N": "1"},
    "raw": {"B": b"abc"},
    "said": {"L": [{"S": "x"}, {"B": b"zz"}, {"NULL": True}, {"BOOL": False}, {"L": []}]},
    "names": {"SS": ["a", "b"]},
    "sizes": {"NS": ["1", "2"]},
    "blobs": {"BS": [b"q"]},
    "log": {"M": {"1": {"M": {"a": {"N": "1"}, "b": {"S": "text"}}}, "2": {"M": {}}}},
}
DEFINITION = '{"StartAt": "One", "States": {"One": {"Type": "Pass", "Result": 1, "End": true}}}'


@mock_aws
def written_and_read() -> list[Any]:
    """An item of every type, as each operation gives it."""
    client = boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    client.create_table(
        TableName="t",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.put_item(TableName="t", Item=ITEM)
    updated = client.update_item(
        TableName="t",
        Key={"pk": {"S": "a"}},
        UpdateExpression="SET #new = :new",
        ExpressionAttributeNames={"#new": "new"},
        ExpressionAttributeValues={":new": {"N": "2"}},
        ReturnValues="ALL_NEW",
    )
    return [
        updated["Attributes"],
        client.get_item(TableName="t", Key={"pk": {"S": "a"}})["Item"],
        client.scan(TableName="t")["Items"],
    ]


def test_items_are_written_as_moto_writes_them() -> None:
    BaseJSONSerializer._serialize_type_structure = moto_speed._structure_in_moto  # type: ignore[method-assign]
    responses.dynamo_to_dict = moto_speed._plain_in_moto  # type: ignore[attr-defined]
    plain = written_and_read()
    moto_speed.install()
    assert written_and_read() == plain
    assert plain[1] == {**ITEM, "new": {"N": "2"}}


def test_a_copy_of_an_item_shares_nothing_that_changes() -> None:
    moto_speed.install()
    one = DynamoType({"M": {"log": {"L": [{"S": "x"}, {"NS": ["1"]}]}, "raw": {"B": b"abc"}}})
    another = copy.deepcopy(one)
    assert another == one
    another.value["log"].value[1].value.append("2")
    another.value["log"].value.append(DynamoType({"N": "3"}))
    assert one.to_regular_json() == {"M": {"log": {"L": [{"S": "x"}, {"NS": ["1"]}]}, "raw": {"B": b"abc"}}}


@mock_aws
def test_a_transaction_that_fails_leaves_every_item_as_it_was_and_one_that_does_not_writes_all() -> None:
    moto_speed.install()
    client = boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    client.create_table(
        TableName="t",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )
    old, gone, new = ({"pk": {"S": name}, "sk": {"S": "x"}} for name in ("old", "gone", "new"))
    for key in (old, gone):
        client.put_item(TableName="t", Item={**key, "n": {"N": "1"}})
    change = {"UpdateExpression": "SET n = :two", "ExpressionAttributeValues": {":two": {"N": "2"}}}

    def write(condition: str) -> list[dict[str, Any]]:
        client.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": "t", "Item": new}},
                {"Update": {"TableName": "t", "Key": old, **change}},
                {"Delete": {"TableName": "t", "Key": gone}},
                {
                    "ConditionCheck": {
                        "TableName": "t",
                        "Key": {"pk": {"S": "other"}, "sk": {"S": "x"}},
                        "ConditionExpression": condition,
                    }
                },
            ]
        )
        return list(client.scan(TableName="t")["Items"])

    before = client.scan(TableName="t")["Items"]
    with pytest.raises(client.exceptions.TransactionCanceledException):
        write("attribute_exists(pk)")
    assert client.scan(TableName="t")["Items"] == before
    after = write("attribute_not_exists(pk)")
    assert sorted((one["pk"]["S"], one.get("n", {}).get("N")) for one in after) == [("new", None), ("old", "2")]


def found(client: Any, **question: Any) -> list[Any]:
    pages = client.get_paginator("query").paginate(TableName="q", PaginationConfig={"PageSize": 2}, **question)
    return [page["Items"] for page in pages]


@mock_aws
def queried() -> list[Any]:
    """What several queries find, page by page: of a partition, of ranges in it, and of an index that is sparse."""
    client = boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    names = {"pk": "S", "sk": "S", "open_in": "N", "at": "N"}
    client.create_table(
        TableName="q",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in names.items()],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "open",
                "KeySchema": [
                    {"AttributeName": "open_in", "KeyType": "HASH"},
                    {"AttributeName": "at", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    for number in range(20):
        listed = {"open_in": {"N": str(number % 2)}, "at": {"N": str(number)}} if number % 3 else {}
        key = {"pk": {"S": f"p{number % 3}"}, "sk": {"S": f"s{number:02}"}}
        client.put_item(TableName="q", Item={**key, **listed, "text": {"S": "long"}})
    partition: dict[str, Any] = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "p1"}}}
    some: dict[str, Any] = {
        "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
        "ExpressionAttributeValues": {":p": {"S": "p1"}, ":s": {"S": "s1"}},
    }
    indexed: dict[str, Any] = {
        "IndexName": "open",
        "KeyConditionExpression": "open_in = :o AND #at < :at",
        "ExpressionAttributeNames": {"#at": "at"},
        "ExpressionAttributeValues": {":o": {"N": "1"}, ":at": {"N": "15"}},
    }
    nowhere = {**partition, "ExpressionAttributeValues": {":p": {"S": "elsewhere"}}}
    backwards = {**partition, "ScanIndexForward": False}
    return [found(client, **question) for question in (partition, backwards, some, indexed, nowhere)]


def test_queries_find_what_moto_finds() -> None:
    Table.query = moto_speed._query_in_moto  # type: ignore[method-assign]
    plain = queried()
    moto_speed.install()
    assert queried() == plain
    assert [sum(map(len, pages)) for pages in plain] == [7, 7, 4, 5, 0]


def test_a_host_belongs_to_the_service_that_moto_finds() -> None:
    hosts = ("dynamodb.us-east-1.amazonaws.com", "s3.us-east-1.amazonaws.com", "moto_api", "sqs", None)
    plain = DomainDispatcherApplication(create_backend_app)
    quick = moto_speed.Dispatcher(create_backend_app)
    for _ in range(2):
        assert [quick.get_backend_for_host(one) for one in hosts] == [plain.get_backend_for_host(one) for one in hosts]


def test_a_definition_is_read_once_and_gives_a_program_of_its_own_each_time() -> None:
    moto_speed.install()
    (one, tree), (another, again) = (AmazonStateLanguageParser.parse(DEFINITION) for _ in range(2))
    assert one is not another
    assert tree is again
