"""What stacks have for their operator: alarms, a dashboard, saved queries, and queues for what was not delivered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cicada_local import queues
from cicada_local.cloudformation import monitoring
from cicada_local.cloudformation.event_invoke import EVENT_INVOKE_CONFIGS
from cicada_local.cloudwatch import CloudWatch, MetricClock, MetricStore
from cicada_local.faults import Faults
from cicada_local.functions import InvokeResult
from cicada_local.functions.config import AsyncConfig
from cicada_local.functions.errors import ResourceNotFound, TooManyRequests
from cicada_local.insights import Insights
from cicada_local.permissions.resources import topic_policies
from cicada_local.rule_targets import RuleTargets, Target
from tests.wire.local_services import ACCOUNT_ID, Services, create_role, deployed_stack, running_services

QUEUE = f"arn:aws:sqs:us-east-1:{ACCOUNT_ID}:undelivered"
TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT_ID}:operators"
RULE = f"arn:aws:events:us-east-1:{ACCOUNT_ID}:rule/uploads"
FUNCTION = f"arn:aws:lambda:us-east-1:{ACCOUNT_ID}:function:start"
BODY = json.dumps({"widgets": [{"type": "text", "properties": {"markdown": "# Cicada"}}]})


def allowing(service: str, action: str, resource: str, source: str) -> dict[str, Any]:
    condition = {"ArnEquals": {"aws:SourceArn": source}} if source else {}
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": action,
        "Resource": resource,
        "Condition": condition or {"StringEquals": {"aws:SourceAccount": ACCOUNT_ID}},
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


ALARM = {
    "AlarmName": "cicada-DeadLetters",
    "Namespace": "AWS/SQS",
    "MetricName": "ApproximateNumberOfMessagesVisible",
    "Dimensions": [{"Name": "QueueName", "Value": "undelivered"}],
    "Statistic": "Maximum",
    "Period": "60",
    "EvaluationPeriods": 1,
    "Threshold": 1,
    "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    "TreatMissingData": "notBreaching",
    "AlarmActions": [{"Ref": "Topic"}],
}
RESOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "Queue": ("AWS::SQS::Queue", {"QueueName": "undelivered", "MessageRetentionPeriod": 1_209_600}),
    "QueuePolicy": (
        "AWS::SQS::QueuePolicy",
        {
            "Queues": [{"Ref": "Queue"}],
            "PolicyDocument": allowing("events.amazonaws.com", "sqs:SendMessage", QUEUE, RULE),
        },
    ),
    "Topic": ("AWS::SNS::Topic", {"TopicName": "operators"}),
    "TopicPolicy": (
        "AWS::SNS::TopicPolicy",
        {
            "Topics": [{"Ref": "Topic"}],
            "PolicyDocument": allowing("cloudwatch.amazonaws.com", "sns:Publish", TOPIC, ""),
        },
    ),
    "Alarm": ("AWS::CloudWatch::Alarm", ALARM),
    "Dashboard": ("AWS::CloudWatch::Dashboard", {"DashboardName": "cicada", "DashboardBody": BODY}),
    "Query": (
        "AWS::Logs::QueryDefinition",
        {"Name": "cicada/Slow starts", "QueryString": "fields @message", "LogGroupNames": ["Answer-Logs"]},
    ),
    "Invoke": (
        "AWS::Lambda::EventInvokeConfig",
        {
            "FunctionName": "start",
            "Qualifier": "$LATEST",
            "MaximumRetryAttempts": 1,
            "MaximumEventAgeInSeconds": 600,
            "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["Queue", "Arn"]}}},
        },
    ),
}


def template(**changes: dict[str, Any]) -> dict[str, Any]:
    return {
        "Resources": {
            id: {"Type": kind, "Properties": {**properties, **changes.get(id, {})}}
            for id, (kind, properties) in RESOURCES.items()
        }
    }


@pytest.fixture(scope="module")
def cloudwatch() -> CloudWatch:
    return CloudWatch(MetricStore(MetricClock()), Faults(), monitoring.publish)


@pytest.fixture(scope="module")
def services(cloudwatch: CloudWatch) -> Iterator[Services]:
    with running_services(cloudwatch, Insights(dict, Faults())) as running:
        monitoring.serve(cloudwatch)
        yield running


@pytest.fixture(scope="module")
def stack(services: Services) -> Iterator[Any]:
    with deployed_stack(services, "operations", template()) as found:
        assert found["StackStatus"] == "CREATE_COMPLETE"
        yield found


def received(services: Services) -> list[dict[str, Any]]:
    client = services.client("sqs")
    url = client.get_queue_url(QueueName="undelivered")["QueueUrl"]
    found = client.receive_message(QueueUrl=url, MessageAttributeNames=["All"]).get("Messages", [])
    for message in found:
        client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return list(found)


@pytest.mark.usefixtures("stack")
def test_what_is_deployed_is_found_by_its_names(services: Services) -> None:
    client = services.client("cloudwatch")
    (alarm,) = client.describe_alarms(AlarmNamePrefix="cicada-")["MetricAlarms"]
    assert (alarm["AlarmName"], alarm["Period"], alarm["AlarmActions"]) == ("cicada-DeadLetters", 60, [TOPIC])
    assert client.get_dashboard(DashboardName="cicada")["DashboardBody"] == BODY
    (query,) = services.client("logs").describe_query_definitions(queryDefinitionNamePrefix="cicada/")[
        "queryDefinitions"
    ]
    assert (query["name"], query["logGroupNames"]) == ("cicada/Slow starts", ["Answer-Logs"])
    assert EVENT_INVOKE_CONFIGS["start"] == AsyncConfig(1, 600.0, QUEUE)


@pytest.mark.parametrize(
    "changes",
    [
        {"Alarm": {"EvaluationPeriods": 1441}},
        {"Dashboard": {"DashboardBody": "{}"}},
        {"Invoke": {"MaximumRetryAttempts": 3}},
        {"Invoke": {"DestinationConfig": {"OnFailure": {"Destination": TOPIC}}}},
    ],
)
def test_a_stack_with_what_aws_refuses_is_rolled_back(services: Services, changes: dict[str, Any]) -> None:
    wrong = template(**changes)
    (id,) = changes
    resource = wrong["Resources"][id]
    resource["Properties"] = json.loads(json.dumps(resource["Properties"]).replace('{"Ref": "Topic"}', f'"{TOPIC}"'))
    if "DestinationConfig" not in changes[id]:
        resource["Properties"].pop("DestinationConfig", None)
    with deployed_stack(services, f"wrong-{id.lower()}", {"Resources": {id: resource}}) as found:
        assert found["StackStatus"] == "ROLLBACK_COMPLETE"


@pytest.mark.usefixtures("stack")
def test_an_alarm_publishes_to_its_topic(services: Services, cloudwatch: CloudWatch) -> None:
    sqs, sns = services.client("sqs"), services.client("sns")
    url = sqs.create_queue(QueueName="subscriber")["QueueUrl"]
    sns.subscribe(TopicArn=TOPIC, Protocol="sqs", Endpoint=f"arn:aws:sqs:us-east-1:{ACCOUNT_ID}:subscriber")
    services.client("cloudwatch").set_alarm_state(
        AlarmName="cicada-DeadLetters", StateValue="ALARM", StateReason="a trial"
    )
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    told = json.loads(message["Body"])
    assert told["Subject"] == 'ALARM: "cicada-DeadLetters" in US East (N. Virginia)'
    assert json.loads(told["Message"])["NewStateReason"] == "a trial"
    assert cloudwatch.describe()["notifications"][-1]["topic"] == TOPIC


def test_a_topic_that_does_not_allow_cloudwatch_gets_nothing(services: Services) -> None:
    topic = services.client("sns").create_topic(Name="closed")["TopicArn"]
    topic_policies[topic] = json.dumps(allowing("events.amazonaws.com", "sns:Publish", topic, ""))
    assert "not authorized" in str(monitoring.publish(topic, "subject", "text"))
    assert monitoring.publish(f"{topic}-gone", "subject", "text") is not None


@pytest.mark.usefixtures("stack")
def test_a_role_needs_the_right_to_send(services: Services) -> None:
    allowed = create_role(services, "sender", allowed={"sqs:SendMessage": QUEUE})
    assert queues.send_in_role(allowed, QUEUE, '"told"', {"RequestID": "r1"}) is None
    (message,) = received(services)
    assert (message["Body"], message["MessageAttributes"]["RequestID"]["StringValue"]) == ('"told"', "r1")
    assert queues.send_in_role(create_role(services, "nobody", allowed={}), QUEUE, "x", {}) is not None
    other = QUEUE.replace("undelivered", "gone")
    assert queues.send_in_role(create_role(services, "lost", allowed={"sqs:SendMessage": other}), other, "x", {})


class Refusing:
    """A Lambda service that refuses some invocations."""

    def __init__(self, *refusals: Exception) -> None:
        self.refusals = list(refusals)
        self.invoked = 0

    async def invoke(self, name_or_arn: str, payload: bytes, *, invocation_type: str) -> InvokeResult:
        if self.refusals:
            raise self.refusals.pop(0)
        self.invoked += 1
        return InvokeResult(202)


def delivered(service: Refusing, target: Target, rule: str = RULE, **options: Any) -> list[str]:
    counted: list[str] = []
    targets = RuleTargets(
        service.invoke,
        count=lambda metric, _: counted.append(metric),
        send=queues.send_for_rule,
        second_s=0.0,
        **options,
    )

    async def deliver() -> None:
        await targets.deliver(rule, target, b'{"detail": 1}')
        await asyncio.gather(*targets._under_way)

    asyncio.run(deliver())
    return counted


@pytest.mark.usefixtures("stack")
def test_a_rules_event_that_cannot_be_delivered_goes_to_the_targets_dead_letters(services: Services) -> None:
    target = Target.of(
        {"Arn": FUNCTION, "DeadLetterConfig": {"Arn": QUEUE}, "RetryPolicy": {"MaximumRetryAttempts": 2}}
    )
    gone = delivered(Refusing(ResourceNotFound("Function not found")), target)
    assert gone == ["FailedInvocations", "InvocationsSentToDlq"]
    assert told(received(services)) == [("NO_RESOURCE", None)]
    throttled = Refusing(*[TooManyRequests("Rate Exceeded.")] * 3)
    assert delivered(throttled, target) == ["FailedInvocations", "InvocationsSentToDlq"]
    assert told(received(services)) == [("THROTTLING", "2")]
    assert delivered(Refusing(), target, permits=lambda *_: False) == ["FailedInvocations", "InvocationsSentToDlq"]
    assert told(received(services)) == [("NO_PERMISSIONS", None)]
    assert delivered(Refusing(TooManyRequests("Rate Exceeded.")), target) == ["Invocations"]


@pytest.mark.usefixtures("stack")
def test_a_queue_takes_dead_letters_of_the_rules_that_its_policy_names(services: Services) -> None:
    target = Target(FUNCTION, dead_letters=QUEUE)
    counted = delivered(Refusing(ResourceNotFound("gone")), target, rule=f"{RULE}-other")
    assert counted == ["FailedInvocations", "InvocationsFailedToBeSentToDlq"]
    assert received(services) == []


def told(messages: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """Each message's error code and how often it was tried again."""
    found: list[tuple[str, str | None]] = []
    for message in messages:
        attributes: Mapping[str, Any] = message["MessageAttributes"]
        assert attributes["RULE_ARN"]["StringValue"] == RULE
        tries = attributes.get("RETRY_ATTEMPTS", {}).get("StringValue")
        found.append((attributes["ERROR_CODE"]["StringValue"], tries))
    return found


@pytest.mark.usefixtures("stack")
def test_a_function_needs_the_right_to_use_a_queue(services: Services) -> None:
    role = create_role(services, "reader", allowed={"sqs:GetQueueUrl": QUEUE})
    credentials = services.client("sts").assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]
    client = services.client("sqs")
    acting = boto3.client(
        "sqs",
        endpoint_url=services.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials["SessionToken"],
    )
    url = client.get_queue_url(QueueName="undelivered")["QueueUrl"]
    with pytest.raises(ClientError) as error:
        acting.send_message(QueueUrl=url, MessageBody="x")
    assert error.value.response["Error"]["Code"] == "AccessDenied"
