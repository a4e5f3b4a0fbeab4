"""The checks of an account. Answers are held to botocore's service models; error codes are those of AWS's API pages."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.config import Config

from cicada_cli.doctor.account import check_bootstrap, identify
from cicada_cli.doctor.calls import AwsCalls, CallFailed, Failure
from cicada_cli.doctor.explaining import explained
from cicada_cli.doctor.findings import Finding, Reporter, Status
from cicada_cli.doctor.leftovers import check_kept_data, check_names, check_user_pools
from cicada_cli.doctor.quotas import check_api_logs, check_concurrency
from cicada_cli.doctor.settings import Described
from cicada_cli.doctor.stacks import check_stacks, is_deployed, read_outputs, read_stacks
from cicada_cli.exits import UsageError
from tests.support.stubbed_aws import DENIED, EXPIRED, REGION, THROTTLED, Refusal, StubbedAws

ME = {"Account": "111122223333", "Arn": "arn:aws:iam::111122223333:user/deployer", "UserId": "AIDA1"}
NOT_ENABLED = Refusal("InvalidClientTokenId", "The security token included in the request is invalid.", 403)
NOBODY = StubbedAws()


def described(**changes: Any) -> Described:
    values: dict[str, Any] = {
        "stackPrefix": "Cicada",
        "local": False,
        "models": {},
        "embeddingDimensions": 1024,
        "answerConcurrency": None,
        "createApiLoggingRole": True,
        "authMode": "cognito",
        "domainPrefix": None,
        "sweepMinutes": 2,
        "record": {},
    }
    return Described.model_validate(values | changes)


def only(findings: Any) -> Finding:
    (finding,) = findings
    assert isinstance(finding, Finding)
    return finding


# --- credentials ---


def test_who_calls_is_told() -> None:
    who, finding = identify(StubbedAws(("sts.GetCallerIdentity", ME)), NOBODY, REGION)
    assert who is not None
    assert who.account == "111122223333"
    assert (finding.status, finding.check) == (Status.OK, "credentials")


def test_a_region_that_is_not_enabled_is_told_from_wrong_keys() -> None:
    known = StubbedAws(("sts.GetCallerIdentity", ME))
    unknown = StubbedAws(("sts.GetCallerIdentity", NOT_ENABLED))
    who, finding = identify(StubbedAws(("sts.GetCallerIdentity", NOT_ENABLED)), known, "ap-east-1")
    assert who is None
    assert finding.status is Status.PROBLEM
    assert "ap-east-1 is not enabled" in finding.message
    _, finding = identify(StubbedAws(("sts.GetCallerIdentity", NOT_ENABLED)), unknown, "ap-east-1")
    assert "rejected these credentials" in finding.message


def test_no_region_is_named() -> None:
    who, finding = identify(NOBODY, NOBODY, None)
    assert who is None
    assert finding.message == "no Region is set"
    assert "AWS_REGION" in (finding.mend or "")


def test_expired_credentials_ask_for_a_new_sign_in() -> None:
    _, finding = identify(StubbedAws(("sts.GetCallerIdentity", EXPIRED)), NOBODY, REGION)
    assert finding.status is Status.PROBLEM
    assert "aws sso login" in (finding.mend or "")


def test_a_service_that_cannot_be_reached_is_unknown() -> None:
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=1)
    client = boto3.client(
        "sts",
        region_name=REGION,
        endpoint_url="http://127.0.0.1:9",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=config,
    )
    _, finding = identify(AwsCalls(lambda service: client), NOBODY, REGION)
    assert finding.status is Status.UNKNOWN
    assert "cannot reach" in finding.message
    assert "proxy" in (finding.mend or "")


def test_a_profile_that_does_not_exist_is_a_matter_of_credentials() -> None:
    from botocore.exceptions import ProfileNotFound

    def client(service: str) -> Any:
        raise UsageError("the profile does not exist") from ProfileNotFound(profile="mine")

    with pytest.raises(CallFailed) as failed:
        AwsCalls(client)("sts", "GetCallerIdentity")
    assert failed.value.failure is Failure.CREDENTIALS


@pytest.mark.parametrize(
    ("service", "operation", "permission"),
    [
        ("lambda", "GetAccountSettings", "lambda:GetAccountSettings"),
        ("bedrock-runtime", "Converse", "bedrock:InvokeModel"),
        ("bedrock-runtime", "InvokeModel", "bedrock:InvokeModel"),
        ("apigateway", "GetAccount", "apigateway:GET"),
        ("s3", "ListBuckets", "s3:ListAllMyBuckets"),
        ("stepfunctions", "ListStateMachines", "states:ListStateMachines"),
        ("cognito-idp", "DescribeUserPool", "cognito-idp:DescribeUserPool"),
    ],
)
def test_a_refused_call_names_its_permission(service: str, operation: str, permission: str) -> None:
    failed = CallFailed(Failure.DENIED, service, operation, "AccessDenied", "no")
    finding = explained(Reporter("check", "it"), failed)
    assert (finding.status, finding.permission) == (Status.UNKNOWN, permission)
    assert permission in (finding.mend or "")


def test_a_throttled_call_is_unknown() -> None:
    calls = StubbedAws(("lambda.GetAccountSettings", THROTTLED))
    with pytest.raises(CallFailed) as failed:
        list(check_concurrency(calls, described(), REGION, deployed=False))
    assert explained(Reporter("concurrency", REGION), failed.value).status is Status.UNKNOWN


# --- bootstrap ---


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ({"Parameter": {"Value": "33"}}, Status.OK, "version 33"),
        ({"Parameter": {"Value": "21"}}, Status.WARNING, "`cdk rollback` needs 23"),
        ({"Parameter": {"Value": "4"}}, Status.PROBLEM, "too old"),
        (Refusal("ParameterNotFound"), Status.PROBLEM, "not bootstrapped"),
    ],
)
def test_the_bootstrap_stack_must_be_there_and_new_enough(answer: Any, status: Status, said: str) -> None:
    finding = only(check_bootstrap(StubbedAws(("ssm.GetParameter", answer)), REGION))
    assert finding.status is status
    assert said in finding.message
    assert status is Status.OK or "make bootstrap" in (finding.mend or "")


# --- stacks ---


def stack(name: str, status: str, **more: Any) -> dict[str, Any]:
    return {"StackName": name, "CreationTime": "2026-11-24T00:00:00Z", "StackStatus": status, **more}


@pytest.mark.parametrize(
    ("status", "more", "expected", "mend"),
    [
        ("CREATE_COMPLETE", {}, Status.OK, None),
        ("UPDATE_COMPLETE", {}, Status.OK, None),
        ("UPDATE_ROLLBACK_COMPLETE", {}, Status.WARNING, "events of the stack"),
        ("ROLLBACK_COMPLETE", {}, Status.WARNING, "make deploy deletes it and creates it again"),
        ("ROLLBACK_FAILED", {}, Status.WARNING, "make deploy deletes it"),
        ("ROLLBACK_COMPLETE", {"EnableTerminationProtection": True}, Status.PROBLEM, "--no-enable-termination-protect"),
        ("REVIEW_IN_PROGRESS", {}, Status.WARNING, "make deploy completes it"),
        ("CREATE_IN_PROGRESS", {}, Status.WARNING, "make deploy waits for it"),
        ("UPDATE_ROLLBACK_IN_PROGRESS", {}, Status.WARNING, "make deploy waits for it"),
        ("UPDATE_ROLLBACK_FAILED", {}, Status.PROBLEM, "cdk rollback Cicada-Data"),
        ("UPDATE_FAILED", {}, Status.PROBLEM, "cdk rollback Cicada-Data"),
        ("CREATE_FAILED", {}, Status.PROBLEM, "cdk rollback Cicada-Data"),
        ("DELETE_FAILED", {}, Status.PROBLEM, "delete-stack --stack-name Cicada-Data"),
    ],
)
def test_each_state_of_a_stack_says_what_to_do(
    status: str, more: dict[str, Any], expected: Status, mend: str | None
) -> None:
    found = {"Cicada-Data": stack("Cicada-Data", status, **more)}
    finding = only(check_stacks(found, "Cicada", deployed=False))
    assert finding.status is expected
    assert (finding.mend is None) == (mend is None)
    assert (mend or "") in (finding.mend or "")


def test_stacks_are_read_by_name_and_those_that_are_not_there_are_left_out() -> None:
    missing = Refusal("ValidationError", "Stack with id Cicada-X does not exist")
    outputs = [{"OutputKey": "IndexBucket", "OutputValue": "b"}]
    there = {"Stacks": [stack("Cicada-Gateway", "CREATE_COMPLETE", Outputs=outputs)]}
    calls = StubbedAws(*[("cloudformation.DescribeStacks", missing)] * 6, ("cloudformation.DescribeStacks", there))
    found = read_stacks(calls, "Cicada")
    assert found.keys() == {"Cicada-Gateway"}
    assert read_outputs(found) == {"IndexBucket": "b"}
    assert is_deployed(found, "Cicada")
    finding = next(iter(check_stacks(found, "Cicada", deployed=True)))
    assert finding.status is Status.PROBLEM
    assert finding.subject == "Cicada-Data, Cicada-Answering, Cicada-Ingest, Cicada-Integrators"


def test_stacks_that_may_not_be_read_are_unknown() -> None:
    calls = StubbedAws(("cloudformation.DescribeStacks", Refusal("AccessDenied", "not authorized", 403)))
    with pytest.raises(CallFailed) as failed:
        read_stacks(calls, "Cicada")
    assert failed.value.permission == "cloudformation:DescribeStacks"


# --- quotas ---


def limits(limit: int, unreserved: int) -> dict[str, Any]:
    return {"AccountLimit": {"ConcurrentExecutions": limit, "UnreservedConcurrentExecutions": unreserved}}


@pytest.mark.parametrize(
    ("wanted", "limit", "unreserved", "deployed", "status", "said"),
    [
        (None, 1000, 1000, False, Status.OK, "1000 functions at a time"),
        (None, 10, 10, False, Status.WARNING, "can run 10 functions"),
        (50, 1000, 900, False, Status.OK, ""),
        (50, 10, 10, False, Status.PROBLEM, "can reserve 0 more of its 10"),
        (50, 1000, 140, False, Status.PROBLEM, "can reserve 40 more"),
        (50, 1000, 140, True, Status.WARNING, "reservation of this deployment is not counted"),
        (0, 1000, 1000, False, Status.WARNING, "no question is answered"),
    ],
)
def test_lambdas_quota_must_bear_what_is_reserved(
    wanted: int | None, limit: int, unreserved: int, deployed: bool, status: Status, said: str
) -> None:
    calls = StubbedAws(("lambda.GetAccountSettings", limits(limit, unreserved)))
    found = list(check_concurrency(calls, described(answerConcurrency=wanted), REGION, deployed=deployed))
    assert max(found, key=lambda one: list(Status).index(one.status)).status is status
    assert said in found[0].message


def test_the_reservation_for_http_counts_too() -> None:
    calls = StubbedAws(("lambda.GetAccountSettings", limits(10, 10)))
    finding = only(check_concurrency(calls, described(httpConcurrency=10), REGION, deployed=False))
    assert finding.status is Status.PROBLEM
    assert "http.concurrency is 10, but the account can reserve 0 more" in finding.message
    calls = StubbedAws(("lambda.GetAccountSettings", limits(1000, 115)))
    both = described(answerConcurrency=10, httpConcurrency=10)
    assert only(check_concurrency(calls, both, REGION, deployed=False)).status is Status.PROBLEM


@pytest.mark.parametrize(
    ("role", "creates", "status"),
    [
        (None, True, Status.OK),
        ("arn:aws:iam::1:role/Cicada-Gateway-ApiLoggingRole025BF0A1-x", True, Status.OK),
        ("arn:aws:iam::1:role/other", True, Status.WARNING),
        ("arn:aws:iam::1:role/other", False, Status.OK),
        (None, False, Status.PROBLEM),
    ],
)
def test_api_gateway_needs_a_role_for_its_logs(role: str | None, creates: bool, status: Status) -> None:
    answer = {"apiKeyVersion": "1"} | ({} if role is None else {"cloudwatchRoleArn": role})
    calls = StubbedAws(("apigateway.GetAccount", answer))
    finding = only(check_api_logs(calls, described(createApiLoggingRole=creates), "Cicada", REGION))
    assert finding.status is status


# --- leftovers ---


def names(functions: list[str], groups: list[str], rules: list[str], machines: list[str]) -> StubbedAws:
    machine = {"stateMachineArn": "arn:aws:states:us-east-1:1:stateMachine:m", "type": "STANDARD"}
    return StubbedAws(
        ("lambda.ListFunctions", {"Functions": [{"FunctionName": "x"}], "NextMarker": "more"}),
        ("lambda.ListFunctions", {"Functions": [{"FunctionName": name} for name in functions]}),
        ("logs.DescribeLogGroups", {"logGroups": [{"logGroupName": name} for name in groups]}),
        ("events.ListRules", {"Rules": [{"Name": name} for name in rules]}),
        (
            "stepfunctions.ListStateMachines",
            {"stateMachines": [{**machine, "name": name, "creationDate": "2026-01-01"} for name in machines]},
        ),
    )


def test_names_that_a_deployment_needs_and_that_are_taken_are_found() -> None:
    calls = names(
        ["Cicada-retrieve", "Cicada-mine"],
        ["/aws/vendedlogs/states/Cicada-answer", "/aws/vendedlogs/states/Cicada-other"],
        ["Cicada-uploads"],
        ["Cicada-ingest", "else"],
    )
    found = list(check_names(calls, "Cicada", {"Cicada-Ingest"}))
    assert [(one.subject, one.status) for one in found] == [
        ("Cicada-retrieve", Status.PROBLEM),
        ("/aws/vendedlogs/states/Cicada-answer", Status.PROBLEM),
    ]
    calls.assert_asked_all()
    assert only(check_names(names([], [], [], []), "Cicada", set())).status is Status.OK


def test_data_of_an_earlier_deployment_is_found() -> None:
    calls = StubbedAws(
        (
            "s3.ListBuckets",
            {"Buckets": [{"Name": name} for name in ("cicada-data-index1-a", "cicada-data-index1-b", "other")]},
        ),
        ("dynamodb.ListTables", {"TableNames": ["Cicada-Data-Requests1-a", "Cicada-Data-Requests1-b", "other"]}),
    )
    outputs = {"IndexBucket": "cicada-data-index1-a", "RequestsTable": "Cicada-Data-Requests1-a"}
    found = list(check_kept_data(calls, "Cicada", outputs))
    assert [(one.subject, one.status) for one in found] == [
        ("cicada-data-index1-b", Status.WARNING),
        ("Cicada-Data-Requests1-b", Status.WARNING),
    ]


def test_a_kept_user_pool_and_a_taken_domain_are_found() -> None:
    pools = {"UserPools": [{"Id": "us-east-1_a", "Name": "Cicada"}, {"Id": "us-east-1_b", "Name": "Other"}]}
    taken = {"DomainDescription": {"UserPoolId": "us-east-1_a", "Domain": "cicada-1"}}
    calls = StubbedAws(("cognito-idp.ListUserPools", pools), ("cognito-idp.DescribeUserPoolDomain", taken))
    kept, domain = check_user_pools(calls, "Cicada", "cicada-1", set(), {})
    assert (kept.subject, kept.status) == ("us-east-1_a", Status.WARNING)
    assert (domain.status, "--user-pool-id us-east-1_a" in (domain.mend or "")) == (Status.PROBLEM, True)
    ours = StubbedAws(("cognito-idp.ListUserPools", pools))
    assert not list(check_user_pools(ours, "Cicada", "cicada-1", {"Cicada-SignIn"}, {"UserPoolId": "us-east-1_a"}))


def test_what_may_not_be_listed_is_unknown() -> None:
    calls = StubbedAws(("s3.ListBuckets", DENIED))
    with pytest.raises(CallFailed) as failed:
        list(check_kept_data(calls, "Cicada", {}))
    assert failed.value.permission == "s3:ListAllMyBuckets"
