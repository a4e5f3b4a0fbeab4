"""Counting: every call of an AWS service is told apart, by the requests that boto3 really sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.wire.local_services import Services, running_services


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        yield running


PK = {"pk": {"S": "a"}}
KEY = {"Bucket": "counted", "Key": "dir/k"}
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:answer"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:m"

CALLS: list[tuple[str, str, str, Callable[[Any], object]]] = [
    ("dynamodb", "PutItem", "t", lambda c: c.put_item(TableName="t", Item=PK)),
    ("dynamodb", "GetItem", "t", lambda c: c.get_item(TableName="t", Key=PK)),
    ("dynamodb", "Query", "t", lambda c: c.query(TableName="t", KeyConditionExpression="pk = :a")),
    ("s3", "CreateBucket", "counted", lambda c: c.create_bucket(Bucket="counted")),
    ("s3", "PutObject", "counted/dir/k", lambda c: c.put_object(**KEY, Body=b"1")),
    ("s3", "GetObject", "counted/dir/k", lambda c: c.get_object(**KEY)),
    ("s3", "HeadObject", "counted/dir/k", lambda c: c.head_object(**KEY)),
    ("s3", "CopyObject", "counted/dir/k", lambda c: c.copy_object(**KEY, CopySource="counted/dir/k")),
    ("s3", "ListObjectsV2", "counted", lambda c: c.list_objects_v2(Bucket="counted")),
    ("s3", "CreateMultipartUpload", "counted/dir/k", lambda c: c.create_multipart_upload(**KEY)),
    ("s3", "UploadPart", "counted/dir/k", lambda c: c.upload_part(**KEY, UploadId="u", PartNumber=1, Body=b"")),
    ("s3", "DeleteObject", "counted/dir/k", lambda c: c.delete_object(**KEY)),
    (
        "s3",
        "DeleteObjects",
        "counted",
        lambda c: c.delete_objects(Bucket="counted", Delete={"Objects": [{"Key": "k"}]}),
    ),
    ("s3", "GetBucketVersioning", "counted", lambda c: c.get_bucket_versioning(Bucket="counted")),
    ("s3", "ListBuckets", "", lambda c: c.list_buckets()),
    ("stepfunctions", "StartExecution", MACHINE, lambda c: c.start_execution(stateMachineArn=MACHINE, input="{}")),
    ("lambda", "Invoke", "answer", lambda c: c.invoke(FunctionName=FUNCTION, Payload=b"{}")),
    ("cloudformation", "DescribeStacks", "", lambda c: c.describe_stacks()),
    ("sts", "GetCallerIdentity", "", lambda c: c.get_caller_identity()),
    ("ssm", "GetParameter", "", lambda c: c.get_parameter(Name="p")),
]


@pytest.mark.parametrize(("service", "operation", "resource", "call"), CALLS, ids=[f"{c[0]}.{c[1]}" for c in CALLS])
def test_a_call_is_counted_by_service_and_operation(
    services: Services, service: str, operation: str, resource: str, call: Callable[[Any], object]
) -> None:
    client = services.client(service)
    services.calls.clear()
    with suppress(ClientError):
        call(client)
    assert services.calls.counts() == {f"{service}.{operation}": 1}
    logged = services.calls.last()[0]
    assert (logged["resource"], logged["caller"]) == (resource, "tester")
    assert logged["status"] is not None
    assert logged["tookMs"] > 0


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("Converse", lambda c: c.converse(modelId="us.m:0", messages=[])),
        ("ConverseStream", lambda c: c.converse_stream(modelId="us.m:0", messages=[])),
        ("InvokeModel", lambda c: c.invoke_model(modelId="us.m:0", body=b"{}")),
    ],
)
def test_model_calls_are_counted_by_model(services: Services, operation: str, call: Callable[[Any], object]) -> None:
    services.calls.clear()
    with suppress(ClientError, BotoCoreError):
        call(services.client("bedrock-runtime"))
    assert services.calls.counts() == {f"bedrock-runtime.{operation}": 1}
    assert services.calls.last()[0]["resource"] == "us.m:0"


def test_posts_to_connections_are_counted_by_connection(services: Services) -> None:
    client = services.client("apigatewaymanagementapi")
    client.meta.endpoint_url  # noqa: B018 - the stage is part of the endpoint, as the gateway serves it
    services.calls.clear()
    with suppress(ClientError):
        client.post_to_connection(ConnectionId="abc=", Data=b"x")
    assert services.calls.counts() == {"apigatewaymanagementapi.PostToConnection": 1}
    assert services.calls.last()[0]["resource"] == "abc="


def test_a_retry_is_a_call_too(services: Services) -> None:
    services.calls.clear()
    services.faults.arm("dynamodb.error", times=2)
    with pytest.raises(ClientError):
        services.client("dynamodb", attempts=2).get_item(TableName="t", Key=PK)
    assert services.calls.counts() == {"dynamodb.GetItem": 2}
