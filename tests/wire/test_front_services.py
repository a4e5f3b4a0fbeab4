"""S3 and DynamoDB through the front server, by boto3: what the library and the functions rely on."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.wire.local_services import Services, running_services


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        yield running


@pytest.fixture
def bucket(services: Services, request: pytest.FixtureRequest) -> tuple[Any, str]:
    client = services.client("s3")
    name = f"bucket-{hashlib.sha256(request.node.name.encode()).hexdigest()[:20]}"
    client.create_bucket(Bucket=name)
    return client, name


@pytest.fixture
def table(services: Services, request: pytest.FixtureRequest) -> tuple[Any, str]:
    client = services.client("dynamodb", max_pool_connections=20)
    name = request.node.name
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return client, name


@pytest.fixture
def threads_take_turns_often() -> Iterator[None]:
    """Shows races that a thread's usual turn of 5 ms would hide."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


@pytest.mark.parametrize("key", ["plain", "index/segments/a b+c%2F.segment", "ein/Schlüssel/雨.json", "a//b", "~$&'()"])
def test_a_binary_object_comes_back_as_it_was_put_under_any_key(bucket: tuple[Any, str], key: str) -> None:
    client, name = bucket
    body = os.urandom(3_000_000)
    client.put_object(Bucket=name, Key=key, Body=body)
    assert client.get_object(Bucket=name, Key=key)["Body"].read() == body
    assert [found["Key"] for found in client.list_objects_v2(Bucket=name)["Contents"]] == [key]


def test_compressed_content_is_not_unpacked_on_its_way(bucket: tuple[Any, str]) -> None:
    client, name = bucket
    body = gzip.compress(b"text " * 100)
    client.put_object(Bucket=name, Key="text.gz", Body=body, ContentEncoding="gzip", ContentType="text/plain")
    found = client.get_object(Bucket=name, Key="text.gz")
    assert (found["Body"].read(), found["ContentEncoding"], found["ContentType"]) == (body, "gzip", "text/plain")


def test_metadata_keeps_its_underscores(bucket: tuple[Any, str]) -> None:
    client, name = bucket
    client.put_object(Bucket=name, Key="k", Body=b"", Metadata={"index_version": "7", "with-dash": "8"})
    assert client.head_object(Bucket=name, Key="k")["Metadata"] == {"index_version": "7", "with-dash": "8"}


def test_head_tells_the_length_of_what_it_does_not_send(bucket: tuple[Any, str]) -> None:
    client, name = bucket
    client.put_object(Bucket=name, Key="k", Body=b"x" * 12_345)
    assert client.head_object(Bucket=name, Key="k")["ContentLength"] == 12_345
    with pytest.raises(ClientError) as missing:
        client.head_object(Bucket=name, Key="none")
    assert code_of(missing) == "404"


def test_ranges_and_large_uploads_in_parts(bucket: tuple[Any, str]) -> None:
    client, name = bucket
    parts = [os.urandom(5 * 1024 * 1024), os.urandom(1000)]
    upload = client.create_multipart_upload(Bucket=name, Key="big")["UploadId"]
    tags = [
        client.upload_part(Bucket=name, Key="big", UploadId=upload, PartNumber=n, Body=part)["ETag"]
        for n, part in enumerate(parts, 1)
    ]
    client.complete_multipart_upload(
        Bucket=name,
        Key="big",
        UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]},
    )
    found = client.get_object(Bucket=name, Key="big", Range="bytes=5242870-5242889")
    assert found["Body"].read() == b"".join(parts)[5242870:5242890]
    assert found["ResponseMetadata"]["HTTPStatusCode"] == 206


def test_an_unchanged_object_is_not_sent_again(bucket: tuple[Any, str]) -> None:
    client, name = bucket
    etag = client.put_object(Bucket=name, Key="k", Body=b"1")["ETag"]
    with pytest.raises(ClientError) as unchanged:
        client.get_object(Bucket=name, Key="k", IfNoneMatch=etag)
    assert unchanged.value.response["ResponseMetadata"]["HTTPStatusCode"] == 304


@pytest.mark.usefixtures("threads_take_turns_often")
def test_of_many_publishers_at_once_exactly_one_wins(bucket: tuple[Any, str], services: Services) -> None:
    _, name = bucket
    client = services.client("s3", max_pool_connections=12)
    refusals: list[str] = []

    def publish(writer: int) -> bool:
        try:
            client.put_object(Bucket=name, Key="manifest", Body=str(writer).encode(), IfNoneMatch="*")
        except ClientError as error:
            refusals.append(error.response["Error"]["Code"])
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        won = [writer for writer, first in enumerate(pool.map(publish, range(24))) if first]
    assert len(won) == 1
    assert refusals == ["PreconditionFailed"] * 23
    assert client.get_object(Bucket=name, Key="manifest")["Body"].read() == str(won[0]).encode()


@pytest.mark.usefixtures("threads_take_turns_often")
def test_conditional_writes_at_once_lose_no_update(table: tuple[Any, str]) -> None:
    client, name = table
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "n": {"N": "0"}})

    def take(expected: int) -> bool:
        try:
            client.update_item(
                TableName=name,
                Key={"pk": {"S": "a"}},
                UpdateExpression="SET n = :next",
                ConditionExpression="n = :expected",
                ExpressionAttributeValues={":next": {"N": str(expected + 1)}, ":expected": {"N": str(expected)}},
            )
        except client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        for expected in range(20):
            assert sum(pool.map(take, [expected] * 16)) == 1


def test_a_transaction_that_is_sent_again_is_applied_once(table: tuple[Any, str]) -> None:
    client, name = table
    update = {
        "Update": {
            "TableName": name,
            "Key": {"pk": {"S": "a"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }
    for _ in range(3):
        client.transact_write_items(TransactItems=[update], ClientRequestToken="the-same-token")
    assert client.get_item(TableName=name, Key={"pk": {"S": "a"}})["Item"]["n"] == {"N": "1"}
    with pytest.raises(ClientError) as mismatch:
        client.transact_write_items(
            TransactItems=[{"Delete": {"TableName": name, "Key": {"pk": {"S": "a"}}}}],
            ClientRequestToken="the-same-token",
        )
    assert code_of(mismatch) == "IdempotentParameterMismatchException"


def test_what_moto_does_not_know_is_an_error_and_not_a_hang(services: Services, tmp_path: Path) -> None:
    with pytest.raises(ClientError):
        services.client("dynamodb").describe_table(TableName="nowhere")
    with pytest.raises(ClientError):
        services.client("s3").get_object(Bucket="no-such-bucket", Key="k")
