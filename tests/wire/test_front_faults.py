"""The fault switches of the services that moto plays, as boto3 meets them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from cicada_local.interpreter import executions
from tests.wire.local_services import ACCOUNT_ID, Services, running_services


@pytest.fixture(scope="module")
def running() -> Iterator[Services]:
    with running_services() as services:
        client = services.client("dynamodb")
        client.create_table(
            TableName="faulty",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        services.client("s3").create_bucket(Bucket="faulty")
        yield services


@pytest.fixture
def services(running: Services) -> Iterator[Services]:
    yield running
    running.faults.disarm()


def put(client: Any, n: int = 1, **options: Any) -> Any:
    return client.put_item(TableName="faulty", Item={"pk": {"S": "a"}, "n": {"N": str(n)}}, **options)


@pytest.mark.parametrize(
    ("fault", "code", "status"),
    [
        ("dynamodb.throttle", "ProvisionedThroughputExceededException", 400),
        ("dynamodb.error", "InternalServerError", 500),
    ],
)
def test_dynamodb_refuses_in_its_own_words(services: Services, fault: str, code: str, status: int) -> None:
    services.faults.arm(fault, times=1)
    client = services.client("dynamodb")
    with pytest.raises(ClientError) as refused:
        put(client)
    assert refused.value.response["Error"]["Code"] == code
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    put(client)  # it struck once


def test_a_throttle_that_passes_is_retried_by_the_sdk(services: Services) -> None:
    services.faults.arm("dynamodb.throttle", times=2)
    services.calls.clear()
    put(services.client("dynamodb", attempts=3))
    assert services.calls.counts() == {"dynamodb.PutItem": 3}


@pytest.mark.parametrize(("fault", "code"), [("s3.throttle", "SlowDown"), ("s3.error", "InternalError")])
def test_s3_refuses_in_its_own_words(services: Services, fault: str, code: str) -> None:
    services.faults.arm(fault, times=1)
    with pytest.raises(ClientError) as refused:
        services.client("s3").put_object(Bucket="faulty", Key="k", Body=b"1")
    assert refused.value.response["Error"]["Code"] == code


def test_step_functions_throttles(services: Services) -> None:
    services.faults.arm("stepfunctions.throttle")
    with pytest.raises(ClientError) as refused:
        services.client("stepfunctions").list_state_machines()
    assert refused.value.response["Error"]["Code"] == "ThrottlingException"


@pytest.fixture
def machine(services: Services) -> Iterator[str]:
    client = services.client("stepfunctions")
    definition = {"StartAt": "Done", "States": {"Done": {"Type": "Pass", "End": True}}}
    arn = client.create_state_machine(
        name="faulty", definition=json.dumps(definition), roleArn="arn:aws:iam::123456789012:role/any", type="EXPRESS"
    )["stateMachineArn"]
    yield arn
    client.delete_state_machine(stateMachineArn=arn)


def started(machine: str) -> list[dict[str, Any]]:
    return [run for run in executions(ACCOUNT_ID, "us-east-1") if run["stateMachineArn"] == machine]


def test_a_start_may_run_twice(services: Services, machine: str) -> None:
    services.faults.arm("stepfunctions.duplicate_start", times=1)
    client = services.client("stepfunctions")
    answered = client.start_execution(stateMachineArn=machine, name="one", input="{}")["executionArn"]
    first, second = started(machine)
    assert first["executionArn"] != second["executionArn"] == answered
    assert first["input"] == second["input"]
    client.start_execution(stateMachineArn=machine, name="two", input="{}")
    assert len(started(machine)) == 3


def test_a_start_may_be_acknowledged_and_never_run(services: Services, machine: str) -> None:
    services.faults.arm("stepfunctions.lost_start", times=1)
    before = len(started(machine))
    answered = services.client("stepfunctions").start_execution(stateMachineArn=machine, input="{}")
    assert answered["executionArn"].startswith("arn:aws:states:us-east-1:123456789012:express:faulty:")
    assert answered["startDate"].year >= 2026
    assert len(started(machine)) == before


def test_a_fault_can_be_limited_to_an_operation_and_a_resource(services: Services) -> None:
    services.faults.arm("dynamodb.error", operation="GetItem")
    services.faults.arm("s3.error", resource="faulty/one")
    put(services.client("dynamodb"))
    client = services.client("s3")
    client.put_object(Bucket="faulty", Key="other", Body=b"1")
    with pytest.raises(ClientError):
        client.put_object(Bucket="faulty", Key="one", Body=b"1")


def test_slowness_delays_the_answer(services: Services) -> None:
    services.faults.arm("s3.slow", delay_ms=300)
    began = time.monotonic()
    services.client("s3").list_buckets()
    assert time.monotonic() - began >= 0.3


def test_a_lost_answer_was_carried_out(services: Services) -> None:
    client = services.client("dynamodb")
    services.faults.arm("dynamodb.lost_ack", times=1, operation="PutItem")
    with pytest.raises(ConnectionClosedError):
        put(client, 7)
    assert client.get_item(TableName="faulty", Key={"pk": {"S": "a"}})["Item"]["n"] == {"N": "7"}


def test_a_retry_after_a_lost_answer_meets_its_own_write(services: Services) -> None:
    client = services.client("dynamodb", attempts=2)
    client.delete_item(TableName="faulty", Key={"pk": {"S": "a"}})
    services.faults.arm("dynamodb.lost_ack", times=1, operation="PutItem")
    with pytest.raises(ClientError) as refused:
        put(client, 8, ConditionExpression="attribute_not_exists(pk)")
    assert refused.value.response["Error"]["Code"] == "ConditionalCheckFailedException"


def test_a_transaction_survives_a_lost_answer(services: Services) -> None:
    client = services.client("dynamodb", attempts=2)
    put(client, 0)
    services.faults.arm("dynamodb.lost_ack", times=1, operation="TransactWriteItems")
    client.transact_write_items(
        TransactItems=[
            {
                "Update": {
                    "TableName": "faulty",
                    "Key": {"pk": {"S": "a"}},
                    "UpdateExpression": "ADD n :one",
                    "ExpressionAttributeValues": {":one": {"N": "1"}},
                }
            }
        ]
    )
    assert client.get_item(TableName="faulty", Key={"pk": {"S": "a"}})["Item"]["n"] == {"N": "1"}
