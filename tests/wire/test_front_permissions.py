"""Calls held to the policies of whoever signed them, and refused in each service's own words."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from aiohttp import web
from botocore.config import Config
from botocore.exceptions import ClientError

from cicada_local.permissions.enforcement import everybody_may_invoke_by_url, service_may_invoke
from cicada_local.permissions.resources import bucket_policies
from tests.wire.local_services import ACCOUNT_ID, Services, create_role, deployed_stack, outputs_of, running_services

TABLE = f"arn:aws:dynamodb:us-east-1:{ACCOUNT_ID}:table/allowed"
BUCKET = "permitted-tests"
MACHINE = f"arn:aws:states:us-east-1:{ACCOUNT_ID}:stateMachine:m"
FUNCTION = f"arn:aws:lambda:us-east-1:{ACCOUNT_ID}:function:answer"
PROFILE = f"arn:aws:bedrock:us-east-1:{ACCOUNT_ID}:inference-profile/us.m:0"


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        dynamodb, s3 = running.client("dynamodb"), running.client("s3")
        for name in ("allowed", "denied"):
            dynamodb.create_table(
                TableName=name,
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="index/there", Body=b"1")
        yield running
        for name in ("allowed", "denied"):
            dynamodb.delete_table(TableName=name)


def client_of(services: Services, service: str, credentials: Mapping[str, str], *, path: str = "") -> Any:
    return boto3.client(
        service,
        endpoint_url=services.endpoint_url + path,
        region_name="us-east-1",
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials.get("AWS_SESSION_TOKEN"),
        config=Config(retries={"total_max_attempts": 1}),
    )


As = Callable[..., Any]


@pytest.fixture
def acting(services: Services) -> As:
    """Makes a client of a function's role, which allows what is given and nothing else."""
    role = f"role-{uuid.uuid4()}"

    def acting(service: str, allowed: Mapping[str, Any], *statements: dict[str, Any]) -> Any:
        arn = create_role(services, role, allowed=allowed, statements=statements)
        return client_of(
            services, service, services.principals.credentials(arn, "worker", service="lambda.amazonaws.com")
        )

    return acting


def refusal(call: Callable[[], object]) -> tuple[int, str, str]:
    """The status, the code and the sentence of a call that is refused."""
    with pytest.raises(ClientError) as refused:
        call()
    error = refused.value.response
    message = error["Error"].get("Message") or error.get("Message") or error.get("message")
    return error["ResponseMetadata"]["HTTPStatusCode"], error["Error"]["Code"], message


def test_an_action_on_a_resource_is_allowed_and_no_other(services: Services, acting: As) -> None:
    table = acting("dynamodb", {"dynamodb:PutItem": TABLE})
    services.calls.clear()
    table.put_item(TableName="allowed", Item={"pk": {"S": "a"}})
    status, code, said = refusal(lambda: table.put_item(TableName="denied", Item={"pk": {"S": "a"}}))
    assert (status, code) == (400, "AccessDeniedException")
    user, rest = said.split(" is not authorized to perform: ")
    assert user.startswith(f"User: arn:aws:sts::{ACCOUNT_ID}:assumed-role/role-")
    assert user.endswith("/worker")
    assert rest == (
        f"dynamodb:PutItem on resource: {TABLE.replace('allowed', 'denied')} "
        "because no identity-based policy allows the dynamodb:PutItem action"
    )
    assert refusal(lambda: table.get_item(TableName="allowed", Key={"pk": {"S": "a"}}))[1] == "AccessDeniedException"
    assert [(call["caller"], call["status"]) for call in services.calls.last()] == [
        ("worker", 200),
        ("worker", 400),
        ("worker", 400),
    ]


def put(table: str) -> dict[str, Any]:
    return {"PutRequest": {"Item": {"pk": {"S": table}}}}


def test_every_table_of_a_batch_or_transaction_counts(acting: As) -> None:
    client = acting("dynamodb", {"dynamodb:BatchWriteItem": TABLE, "dynamodb:PutItem": TABLE})
    client.batch_write_item(RequestItems={"allowed": [put("a")]})
    both = {"allowed": [put("a")], "denied": [put("a")]}
    assert "denied" in refusal(lambda: client.batch_write_item(RequestItems=both))[2]
    item = {"Put": {"TableName": "allowed", "Item": {"pk": {"S": "b"}}}}
    client.transact_write_items(TransactItems=[item])
    check = {"TableName": "allowed", "Key": {"pk": {"S": "a"}}, "ConditionExpression": "attribute_exists(pk)"}
    mixed = [item, {"ConditionCheck": check}]
    assert "ConditionCheckItem" in refusal(lambda: client.transact_write_items(TransactItems=mixed))[2]


def test_an_index_is_a_resource_of_its_own(acting: As) -> None:
    client = acting("dynamodb", {"dynamodb:Query": TABLE})
    query = {"KeyConditionExpression": "pk = :a", "ExpressionAttributeValues": {":a": {"S": "a"}}}
    client.query(TableName="allowed", **query)
    assert f"{TABLE}/index/open" in refusal(lambda: client.query(TableName="allowed", IndexName="open", **query))[2]


# --- S3 ---


def objects(prefix: str) -> str:
    return f"arn:aws:s3:::{BUCKET}/{prefix}*"


def test_objects_below_a_prefix_are_allowed_and_no_others(acting: As) -> None:
    s3 = acting("s3", {"s3:GetObject": objects("index/")})
    assert s3.get_object(Bucket=BUCKET, Key="index/there")["Body"].read() == b"1"
    status, code, said = refusal(lambda: s3.get_object(Bucket=BUCKET, Key="incoming/a"))
    assert (status, code) == (403, "AccessDenied")
    assert f'on resource: "arn:aws:s3:::{BUCKET}/incoming/a" because no identity-based' in said
    assert refusal(lambda: s3.put_object(Bucket=BUCKET, Key="index/there", Body=b""))[1] == "AccessDenied"
    assert refusal(lambda: s3.get_object(Bucket=BUCKET, Key="index/there", VersionId="v"))[1] == "AccessDenied"


def test_who_may_not_list_is_not_told_that_an_object_is_missing(acting: As) -> None:
    s3 = acting("s3", {"s3:GetObject": objects("")})
    assert refusal(lambda: s3.get_object(Bucket=BUCKET, Key="index/missing"))[:2] == (403, "AccessDenied")
    assert refusal(lambda: s3.head_object(Bucket=BUCKET, Key="index/missing"))[0] == 403


def test_who_may_list_is_told(acting: As) -> None:
    s3 = acting("s3", {"s3:GetObject": objects(""), "s3:ListBucket": f"arn:aws:s3:::{BUCKET}"})
    assert refusal(lambda: s3.get_object(Bucket=BUCKET, Key="index/missing"))[:2] == (404, "NoSuchKey")


def test_a_listing_is_held_to_its_prefix(acting: As) -> None:
    s3 = acting(
        "s3",
        {},
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": f"arn:aws:s3:::{BUCKET}",
            "Condition": {"StringLikeIfExists": {"s3:prefix": ["index/*"]}},
        },
    )
    s3.list_objects_v2(Bucket=BUCKET, Prefix="index/a")
    s3.list_objects_v2(Bucket=BUCKET)
    assert refusal(lambda: s3.list_objects_v2(Bucket=BUCKET, Prefix="incoming/"))[1] == "AccessDenied"


def test_deletions_and_conditional_writes_need_what_they_do(acting: As) -> None:
    s3 = acting("s3", {"s3:DeleteObject": objects("old/"), "s3:PutObject": objects("new/")})
    s3.put_object(Bucket=BUCKET, Key="new/a", Body=b"1", IfNoneMatch="*")
    said = refusal(lambda: s3.put_object(Bucket=BUCKET, Key="new/a", Body=b"1", IfMatch="e"))[2]
    assert "s3:GetObject" in said
    s3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": "old/a"}]})
    both = {"Objects": [{"Key": "old/a"}, {"Key": "new/a"}]}
    assert "new/a" in refusal(lambda: s3.delete_objects(Bucket=BUCKET, Delete=both))[2]


def test_an_explicit_denial_wins_and_says_so(acting: As) -> None:
    deny = {"Effect": "Deny", "Action": "s3:*", "Resource": objects("index/secret")}
    s3 = acting("s3", {"s3:*": ["*"]}, deny)
    s3.head_object(Bucket=BUCKET, Key="index/there")
    said = refusal(lambda: s3.get_object(Bucket=BUCKET, Key="index/secret"))[2]
    assert said.endswith("with an explicit deny in an identity-based policy")


def test_a_buckets_policy_counts_with_its_conditions(services: Services, acting: As) -> None:
    statements = [
        {
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Action": "s3:*",
            "Resource": objects(""),
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": objects("index/sealed"),
        },
    ]
    template = {
        "Resources": {
            "Policy": {
                "Type": "AWS::S3::BucketPolicy",
                "Properties": {"Bucket": BUCKET, "PolicyDocument": {"Statement": statements}},
            }
        }
    }
    s3 = acting("s3", {"s3:GetObject": objects("index/"), "s3:PutObject": objects("index/")})
    with deployed_stack(services, "bucket-policy", template):
        s3.put_object(Bucket=BUCKET, Key="index/sealed", Body=b"1")
        said = refusal(lambda: s3.get_object(Bucket=BUCKET, Key="index/sealed"))[2]
        assert said.endswith("with an explicit deny in a resource-based policy")
        assert s3.get_object(Bucket=BUCKET, Key="index/there")["Body"].read() == b"1"
    assert BUCKET not in bucket_policies
    assert s3.get_object(Bucket=BUCKET, Key="index/sealed")["Body"].read() == b"1"


def test_a_buckets_policy_demands_conditional_writes(services: Services, acting: As) -> None:
    statement = {
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": "s3:PutObject",
        "Resource": objects("audit/"),
        "Condition": {"Null": {"s3:if-none-match": "true"}},
    }
    template = {
        "Resources": {
            "Policy": {
                "Type": "AWS::S3::BucketPolicy",
                "Properties": {"Bucket": BUCKET, "PolicyDocument": {"Statement": [statement]}},
            }
        }
    }
    s3 = acting("s3", {"s3:GetObject": objects(""), "s3:PutObject": objects("")})
    with deployed_stack(services, "conditional-writes", template):
        put = {"Bucket": BUCKET, "Key": "audit/one", "Body": b"1"}
        assert refusal(lambda: s3.put_object(**put))[2].endswith("with an explicit deny in a resource-based policy")
        s3.put_object(**put, IfNoneMatch="*")
        assert refusal(lambda: s3.put_object(**put, IfNoneMatch="*"))[0] == 412
        for call in (
            lambda: s3.put_object(**put, IfMatch=s3.head_object(Bucket=BUCKET, Key="audit/one")["ETag"]),
            lambda: s3.copy_object(Bucket=BUCKET, Key="audit/one", CopySource=f"{BUCKET}/index/there"),
            lambda: s3.create_multipart_upload(Bucket=BUCKET, Key="audit/one"),
        ):
            assert "explicit deny" in refusal(call)[2]
        s3.put_object(Bucket=BUCKET, Key="index/free", Body=b"1")


def test_a_customers_key_is_needed_for_what_it_encrypts(services: Services, acting: As) -> None:
    admin = services.client("s3")
    key = services.client("kms").create_key()["KeyMetadata"]["Arn"]
    admin.create_bucket(Bucket="with-key")
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    admin.put_bucket_encryption(
        Bucket="with-key",
        ServerSideEncryptionConfiguration={"Rules": [{"ApplyServerSideEncryptionByDefault": default}]},
    )
    every = {"s3:GetObject": "arn:aws:s3:::with-key/*", "s3:PutObject": "arn:aws:s3:::with-key/*"}
    s3 = acting("s3", every | {"kms:GenerateDataKey": key})
    s3.put_object(Bucket="with-key", Key="a", Body=b"1")
    assert f'kms:Decrypt on resource: "{key}"' in refusal(lambda: s3.get_object(Bucket="with-key", Key="a"))[2]


# --- the stand-ins, in their own words ---


@pytest.mark.parametrize(
    ("service", "call", "status", "code", "needed"),
    [
        (
            "stepfunctions",
            lambda c: c.start_execution(stateMachineArn=MACHINE),
            400,
            "AccessDeniedException",
            f"states:StartExecution on resource: {MACHINE}",
        ),
        (
            "lambda",
            lambda c: c.invoke(FunctionName="answer"),
            403,
            "AccessDeniedException",
            f"lambda:InvokeFunction on resource: {FUNCTION}",
        ),
        (
            "bedrock-runtime",
            lambda c: c.converse_stream(modelId="local.m", messages=[{"role": "user", "content": [{"text": "a"}]}]),
            403,
            "AccessDeniedException",
            "bedrock:InvokeModelWithResponseStream on resource: arn:aws:bedrock:us-east-1::foundation-model/local.m",
        ),
        (
            "bedrock-runtime",
            lambda c: c.invoke_model(modelId="us.m:0", body=b"{}"),
            403,
            "AccessDeniedException",
            f"bedrock:InvokeModel on resource: {PROFILE}",
        ),
        (
            "bedrock-agent-runtime",
            lambda c: c.invoke_agent(agentId="AGENT0001", agentAliasId="ALIAS0001", sessionId="session", inputText="a"),
            403,
            "AccessDeniedException",
            f"bedrock:InvokeAgent on resource: arn:aws:bedrock:us-east-1:{ACCOUNT_ID}:agent-alias/AGENT0001/ALIAS0001",
        ),
        (
            "s3vectors",
            lambda c: c.query_vectors(vectorBucketName="vvv", indexName="iii", queryVector={"float32": [0.0]}, topK=1),
            403,
            "AccessDeniedException",
            f"s3vectors:QueryVectors on resource: arn:aws:s3vectors:us-east-1:{ACCOUNT_ID}:bucket/vvv/index/iii",
        ),
        (
            "kendra",
            lambda c: c.retrieve(IndexId="0" * 36, QueryText="a"),
            400,
            "AccessDeniedException",
            f"kendra:Retrieve on resource: arn:aws:kendra:us-east-1:{ACCOUNT_ID}:index/{'0' * 36}",
        ),
        (
            "secretsmanager",
            lambda c: c.get_secret_value(SecretId="s"),
            400,
            "AccessDeniedException",
            f"secretsmanager:GetSecretValue on resource: arn:aws:secretsmanager:us-east-1:{ACCOUNT_ID}:secret:s",
        ),
        (
            "ssm",
            lambda c: c.get_parameter(Name="/a/b"),
            400,
            "AccessDeniedException",
            f"ssm:GetParameter on resource: arn:aws:ssm:us-east-1:{ACCOUNT_ID}:parameter/a/b",
        ),
        ("cloudformation", lambda c: c.list_stacks(), 403, "AccessDenied", "cloudformation:ListStacks on resource: *"),
    ],
)
def test_services_refuse_in_their_own_words(
    acting: As, service: str, call: Callable[[Any], object], status: int, code: str, needed: str
) -> None:
    client = acting(service, {"sqs:SendMessage": "*"})
    answered, error, said = refusal(lambda: call(client))
    assert (answered, error) == (status, code)
    assert f"is not authorized to perform: {needed} because no identity-based policy allows the" in said


def test_posts_to_connections_are_held_to_the_stage_and_the_method(services: Services, acting: As) -> None:
    connections = f"arn:aws:execute-api:us-east-1:{ACCOUNT_ID}:api1/live/POST/@connections/*"
    allowed = acting("apigatewaymanagementapi", {"execute-api:ManageConnections": connections})

    def at(stage: str) -> Any:
        return client_of(services, "apigatewaymanagementapi", _frozen(allowed), path=f"/_ws/api1/{stage}")

    services.calls.clear()
    with pytest.raises(ClientError) as passed:  # there is no gateway behind it here
        at("live").post_to_connection(ConnectionId="abc=", Data=b"x")
    assert "AccessDenied" not in passed.value.response["Error"]["Code"]
    status, code, said = refusal(lambda: at("live").delete_connection(ConnectionId="abc="))
    assert (status, code) == (403, "AccessDeniedException")
    assert "us-east-1:********9012:api1/live/DELETE/@connections/abc=" in said
    assert refusal(lambda: at("dev").post_to_connection(ConnectionId="abc=", Data=b"x"))[0] == 403


def test_a_profile_needs_its_model_in_every_region_through_the_profile(acting: As) -> None:
    through = {"StringEquals": {"bedrock:InferenceProfileArn": PROFILE}}
    models = [f"arn:aws:bedrock:{region}::foundation-model/m:0" for region in ("us-east-1", "us-east-2")]
    statement = {"Effect": "Allow", "Action": "bedrock:InvokeModel", "Resource": models, "Condition": through}
    client = acting("bedrock-runtime", {"bedrock:InvokeModel": PROFILE}, statement)
    said = refusal(lambda: client.invoke_model(modelId="us.m:0", body=b"{}"))[2]
    assert "arn:aws:bedrock:us-west-2::foundation-model/m:0" in said


def test_metadata_of_vectors_needs_the_right_to_read_them(acting: As) -> None:
    index = f"arn:aws:s3vectors:us-east-1:{ACCOUNT_ID}:bucket/vvv/index/iii"
    client = acting("s3vectors", {"s3vectors:QueryVectors": index})
    query = {"indexArn": index, "queryVector": {"float32": [0.0]}, "topK": 1}
    said = refusal(lambda: client.query_vectors(**query, returnMetadata=True))[2]
    assert f"s3vectors:GetVectors on resource: {index}" in said
    assert "not authorized" not in refusal(lambda: client.query_vectors(**query))[2]


# --- callers ---


def test_changed_policies_count_at_once(services: Services, acting: As) -> None:
    s3 = acting("s3", {"s3:GetObject": objects("")})
    s3.get_object(Bucket=BUCKET, Key="index/there")
    arn = client_of(services, "sts", _frozen(s3)).get_caller_identity()["Arn"]
    services.client("iam").delete_role_policy(RoleName=arn.split("/")[1], PolicyName="allowed")
    assert refusal(lambda: s3.get_object(Bucket=BUCKET, Key="index/there"))[1] == "AccessDenied"


def _frozen(client: Any) -> dict[str, str]:
    found = client._request_signer._credentials.get_frozen_credentials()
    return {
        "AWS_ACCESS_KEY_ID": found.access_key,
        "AWS_SECRET_ACCESS_KEY": found.secret_key,
        "AWS_SESSION_TOKEN": found.token,
    }


def test_temporary_credentials_with_another_token_are_refused(services: Services, acting: As) -> None:
    credentials = _frozen(acting("s3", {"s3:*": "*"})) | {"AWS_SESSION_TOKEN": "another"}
    s3, dynamodb = (client_of(services, service, credentials) for service in ("s3", "dynamodb"))
    assert refusal(s3.list_buckets)[:2] == (400, "InvalidToken")
    assert refusal(dynamodb.list_tables)[1] == "UnrecognizedClientException"


def test_temporary_credentials_that_have_expired_are_refused(services: Services) -> None:
    from moto.sts.models import sts_backends

    arn = create_role(services, "expired", allowed={"s3:*": "*"})
    found = services.client("sts").assume_role(RoleArn=arn, RoleSessionName="late")["Credentials"]
    session = sts_backends[ACCOUNT_ID]["aws"].get_assumed_role_from_access_key(found["AccessKeyId"])
    assert session is not None
    session.expiration -= timedelta(days=1)
    credentials = {
        "AWS_ACCESS_KEY_ID": found["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": found["SecretAccessKey"],
        "AWS_SESSION_TOKEN": found["SessionToken"],
    }
    s3, dynamodb = (client_of(services, service, credentials) for service in ("s3", "dynamodb"))
    assert refusal(s3.list_buckets)[:2] == (400, "ExpiredToken")
    assert refusal(dynamodb.list_tables)[1] == "ExpiredTokenException"


@pytest.mark.parametrize(
    ("service", "operation", "minutes", "told"),
    [
        ("dynamodb", "list_tables", 6, (400, "InvalidSignatureException", "Signature not yet current: ")),
        ("dynamodb", "list_tables", -6, (400, "InvalidSignatureException", "Signature expired: ")),
        ("sts", "get_caller_identity", -6, (403, "SignatureDoesNotMatch", "Signature expired: ")),
        ("s3", "list_buckets", 16, (403, "RequestTimeTooSkewed", "The difference between the request time ")),
    ],
)
def test_a_call_that_was_signed_at_another_time_is_refused(
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    operation: str,
    minutes: int,
    told: tuple[int, str, str],
) -> None:
    client = services.client(service)
    call = getattr(client, operation)
    for off, refused in ((minutes - (2 if minutes > 0 else -2), False), (minutes, True)):
        signed = datetime.now(UTC) + timedelta(minutes=off)
        monkeypatch.setattr("botocore.auth.get_current_datetime", lambda signed=signed: signed)
        if not refused:
            call()
            continue
        status, code, said = refusal(call)
        assert (status, code, said[: len(told[2])]) == told


@pytest.mark.parametrize("key", ["local", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"])
def test_who_comes_with_credentials_from_elsewhere_is_the_operator(services: Services, key: str) -> None:
    elsewhere = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
    client_of(services, "s3", elsewhere).list_objects_v2(Bucket=BUCKET)


def test_a_role_that_is_assumed_over_sts_is_held_to_its_policies(services: Services) -> None:
    arn = create_role(services, "assumed-by-hand", allowed={"s3:GetObject": objects("")})
    found = services.client("sts").assume_role(RoleArn=arn, RoleSessionName="hand")["Credentials"]
    s3 = client_of(
        services,
        "s3",
        {
            "AWS_ACCESS_KEY_ID": found["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": found["SecretAccessKey"],
            "AWS_SESSION_TOKEN": found["SessionToken"],
        },
    )
    s3.get_object(Bucket=BUCKET, Key="index/there")
    assert "assumed-role/assumed-by-hand/hand" in refusal(lambda: s3.list_objects_v2(Bucket=BUCKET))[2]


def test_a_user_is_held_to_the_policies_of_theirs_and_of_their_groups(services: Services) -> None:
    iam = services.client("iam")
    iam.create_user(UserName="ann")
    key = iam.create_access_key(UserName="ann")["AccessKey"]
    s3 = client_of(
        services,
        "s3",
        {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]},
    )
    assert "user/ann is not authorized" in refusal(lambda: s3.get_object(Bucket=BUCKET, Key="index/there"))[2]
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": objects("")}
    policy = iam.create_policy(
        PolicyName="readers", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    )["Policy"]["Arn"]
    iam.create_group(GroupName="readers")
    iam.attach_group_policy(GroupName="readers", PolicyArn=policy)
    iam.add_user_to_group(GroupName="readers", UserName="ann")
    s3.get_object(Bucket=BUCKET, Key="index/there")


# --- services that act for somebody ---


def test_a_state_machine_acts_in_its_role(services: Services) -> None:
    role = create_role(services, "of-the-machine", allowed={"lambda:InvokeFunction": FUNCTION})
    states = {
        "StartAt": "Allowed",
        "States": {
            name: {
                "Type": "Task",
                "Resource": "arn:aws:states:::lambda:invoke",
                "Parameters": {"FunctionName": function, "Payload": {}},
                **following,
            }
            for name, function, following in (
                ("Allowed", "answer", {"Next": "Refused"}),
                ("Refused", "another", {"End": True}),
            )
        },
    }
    machine = {
        "Type": "AWS::StepFunctions::StateMachine",
        "Properties": {
            "DefinitionString": json.dumps(states),
            "RoleArn": role,
            "StateMachineType": "STANDARD",
        },
    }
    invoked: list[str] = []

    def invoke(name: str, event: Any) -> Any:
        invoked.append(name)
        return web.json_response({})

    services.invoke = invoke
    template = {"Resources": {"Machine": machine}, "Outputs": {"Arn": {"Value": {"Ref": "Machine"}}}}
    with deployed_stack(services, "in-a-role", template) as stack:
        client = services.client("stepfunctions")
        execution = client.start_execution(stateMachineArn=outputs_of(stack)["Arn"])["executionArn"]
        while (found := client.describe_execution(executionArn=execution))["status"] == "RUNNING":
            time.sleep(0.05)
    assert invoked == ["answer"]
    assert found["error"] == "Lambda.AWSLambdaException"
    assert "of-the-machine/states-execution is not authorized to perform: lambda:InvokeFunction" in found["cause"]


def test_a_function_or_machine_needs_a_role_that_trusts_its_service(services: Services) -> None:
    trust = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = services.client("iam").create_role(RoleName="elsewhere", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    function = {"Code": {"ZipFile": "x = 1"}, "Handler": "index.x", "Runtime": "python3.13", "Role": role}
    machine = {"DefinitionString": '{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}', "RoleArn": role}
    for kind, properties, why in (
        ("AWS::Lambda::Function", function, "cannot be assumed by Lambda"),
        ("AWS::StepFunctions::StateMachine", machine, "not authorized to assume the provided role"),
    ):
        template = {"Resources": {"Made": {"Type": kind, "Properties": properties}}}
        with deployed_stack(services, "untrusting", template) as stack:
            assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
            events = services.client("cloudformation").describe_stack_events(StackName=stack["StackId"])["StackEvents"]
            assert any(why in event.get("ResourceStatusReason", "") for event in events)


def test_a_functions_policy_says_which_service_may_invoke_it_for_what(services: Services) -> None:
    role = create_role(services, "of-the-function", allowed={})
    rule = f"arn:aws:events:us-east-1:{ACCOUNT_ID}:rule/due"
    permission = {
        "Action": "lambda:InvokeFunction",
        "FunctionName": {"Fn::GetAtt": ["Function", "Arn"]},
        "Principal": "events.amazonaws.com",
        "SourceArn": rule,
    }
    function = {"Code": {"ZipFile": "x = 1"}, "Handler": "index.x", "Runtime": "python3.13", "Role": role}
    template = {
        "Resources": {
            "Function": {"Type": "AWS::Lambda::Function", "Properties": function},
            "Permission": {"Type": "AWS::Lambda::Permission", "Properties": permission},
        },
        "Outputs": {"Arn": {"Value": {"Fn::GetAtt": ["Function", "Arn"]}}},
    }
    with deployed_stack(services, "invoked", template) as stack:
        arn = outputs_of(stack)["Arn"]
        assert service_may_invoke("events.amazonaws.com", arn, rule)
        assert not service_may_invoke("events.amazonaws.com", arn, f"{rule}-another")
        assert not service_may_invoke("apigateway.amazonaws.com", arn, rule)


URL_PERMISSION = {"Action": "lambda:InvokeFunctionUrl", "Principal": "*", "FunctionUrlAuthType": "NONE"}
VIA_URL_PERMISSION = {"Action": "lambda:InvokeFunction", "Principal": "*", "InvokedViaFunctionUrl": True}


def function_with_url(role: str, url: Mapping[str, Any], *permissions: Mapping[str, Any]) -> dict[str, Any]:
    """A template."""
    function = {"Code": {"ZipFile": "x = 1"}, "Handler": "index.x", "Runtime": "python3.13", "Role": role}
    arn = {"Fn::GetAtt": ["Function", "Arn"]}
    granted = {
        f"Permission{number}": {"Type": "AWS::Lambda::Permission", "Properties": {**one, "FunctionName": arn}}
        for number, one in enumerate(permissions)
    }
    return {
        "Resources": {
            "Function": {"Type": "AWS::Lambda::Function", "Properties": function},
            "Url": {"Type": "AWS::Lambda::Url", "Properties": {**url, "TargetFunctionArn": arn}},
            **granted,
        },
        "Outputs": {"Arn": {"Value": arn}, "Url": {"Value": {"Fn::GetAtt": ["Url", "FunctionUrl"]}}},
    }


@pytest.mark.parametrize(
    ("permissions", "open"),
    [
        ((), False),
        ((URL_PERMISSION,), False),
        ((VIA_URL_PERMISSION,), False),
        ((URL_PERMISSION, VIA_URL_PERMISSION), True),
        ((URL_PERMISSION, {**VIA_URL_PERMISSION, "Principal": ACCOUNT_ID}), False),
        (({**URL_PERMISSION, "FunctionUrlAuthType": "AWS_IAM"}, VIA_URL_PERMISSION), False),
    ],
)
def test_a_function_url_is_open_to_everybody_by_both_permissions(
    services: Services, permissions: tuple[dict[str, Any], ...], open: bool
) -> None:
    role = create_role(services, "behind-a-url", allowed={})
    with deployed_stack(services, "url", function_with_url(role, {"AuthType": "NONE"}, *permissions)) as stack:
        outputs = outputs_of(stack)
        assert re.fullmatch(r"https://[0-9a-z]+\.lambda-url\.us-east-1\.on\.aws/", outputs["Url"])
        assert everybody_may_invoke_by_url(outputs["Arn"], "NONE") is open


@pytest.mark.parametrize(
    ("url", "permission", "why"),
    [
        ({}, URL_PERMISSION, "AuthType"),
        ({"AuthType": "NONE", "InvokeMode": "STREAM"}, URL_PERMISSION, "InvokeMode"),
        ({"AuthType": "NONE", "Cors": {"AllowOrigins": ["a.example"]}}, URL_PERMISSION, "AllowOrigins"),
        ({"AuthType": "NONE"}, {**URL_PERMISSION, "Action": "lambda:InvokeFunction"}, "only supported for"),
        ({"AuthType": "NONE"}, {**VIA_URL_PERMISSION, "Action": "lambda:InvokeFunctionUrl"}, "only supported for"),
    ],
)
def test_a_function_url_that_lambda_refuses_is_refused(
    services: Services, url: dict[str, Any], permission: dict[str, Any], why: str
) -> None:
    role = create_role(services, "behind-a-url", allowed={})
    with deployed_stack(services, "refused-url", function_with_url(role, url, permission)) as stack:
        assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
        events = services.client("cloudformation").describe_stack_events(StackName=stack["StackId"])["StackEvents"]
        assert any(why in event.get("ResourceStatusReason", "") for event in events)
