"""A deployment that nobody uses costs nothing but the bytes it stores."""

from __future__ import annotations

from cicada.delivery.dynamodb import OPEN_INDEX
from stacks.data import OPEN_REQUESTS
from tests.template.templates import Synthesis

FREE_WHILE_IDLE = {
    "AWS::ApiGateway::Account",
    "AWS::ApiGatewayV2::Api",
    "AWS::ApiGatewayV2::Authorizer",
    "AWS::ApiGatewayV2::Deployment",
    "AWS::ApiGatewayV2::Integration",
    "AWS::ApiGatewayV2::Route",
    "AWS::ApiGatewayV2::RouteResponse",
    "AWS::ApiGatewayV2::Stage",
    "AWS::CloudFront::Distribution",
    "AWS::CloudFront::OriginAccessControl",
    "AWS::CloudFront::ResponseHeadersPolicy",
    "AWS::CloudWatch::Dashboard",  # the first three of an account
    "AWS::Cognito::ManagedLoginBranding",
    "AWS::Cognito::UserPool",
    "AWS::Cognito::UserPoolClient",
    "AWS::Cognito::UserPoolDomain",
    "AWS::Cognito::UserPoolGroup",
    "AWS::DynamoDB::Table",
    "AWS::Events::Rule",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Function",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Permission",
    "AWS::Lambda::Url",
    "AWS::Logs::LogGroup",
    "AWS::Logs::QueryDefinition",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::S3Vectors::Index",
    "AWS::S3Vectors::VectorBucket",
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::StepFunctions::StateMachine",
    "Custom::PageConfig",
    "Custom::PageFiles",
    "Custom::RecordedSettings",
    "Custom::UploadOrigin",
}
"""Types that bill by use or by stored byte. A type that is missing here is to be judged before it is added."""

BILLED_BY_THE_MONTH_WHEN_ASKED_FOR = {
    "AWS::CloudWatch::Alarm",
    "AWS::KMS::Key",
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::SNS::TopicPolicy",
}


def test_the_defaults_make_nothing_that_bills_by_time(shipped: Synthesis, local: Synthesis) -> None:
    for synthesis in (shipped, local):
        assert {resource.type for resource in synthesis.resources()} <= FREE_WHILE_IDLE


def test_no_option_makes_anything_that_bills_by_the_hour(full: Synthesis) -> None:
    types = {resource.type for resource in full.resources()}
    assert types <= FREE_WHILE_IDLE | BILLED_BY_THE_MONTH_WHEN_ASKED_FOR
    assert types & BILLED_BY_THE_MONTH_WHEN_ASKED_FOR == BILLED_BY_THE_MONTH_WHEN_ASKED_FOR


def test_the_table_is_on_demand(each: Synthesis) -> None:
    table = each.one("AWS::DynamoDB::Table").properties
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert not {"ProvisionedThroughput", "WarmThroughput"} & table.keys()


def test_the_tables_index_holds_what_is_under_way_and_is_free_while_nothing_is(each: Synthesis) -> None:
    """A secondary index of an on-demand table is billed by its reads, writes and bytes, and this one is sparse."""
    (index,) = each.one("AWS::DynamoDB::Table").properties["GlobalSecondaryIndexes"]
    assert index["IndexName"] == OPEN_REQUESTS == OPEN_INDEX
    assert [(key["AttributeName"], key["KeyType"]) for key in index["KeySchema"]] == [
        ("open_in", "HASH"),
        ("accepted_at_ms", "RANGE"),
    ]
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}
    assert not {"ProvisionedThroughput", "WarmThroughput"} & index.keys()


def test_what_runs_every_two_minutes_leaves_no_trace_and_no_line_of_a_run_that_went_well(each: Synthesis) -> None:
    sweep = each.function("recovery_sweep").properties
    assert "TracingConfig" not in sweep
    assert sweep["LoggingConfig"]["SystemLogLevel"] == "WARN"
    assert sweep["MemorySize"] <= 512


def test_no_metric_is_billed_for_each_route(each: Synthesis) -> None:
    settings = each.one("AWS::ApiGatewayV2::Stage").properties["DefaultRouteSettings"]
    assert settings["DetailedMetricsEnabled"] is False


def test_no_function_is_kept_warm(each: Synthesis) -> None:
    for function in each.resources("AWS::Lambda::Function"):
        assert not {"SnapStart", "VpcConfig", "CapacityProviderConfig", "EphemeralStorage"} & function.properties.keys()


def test_the_workflows_are_billed_by_what_they_do(each: Synthesis) -> None:
    assert each.machine("Workflow").properties["StateMachineType"] == "EXPRESS"
    assert each.machine("Machine").properties["StateMachineType"] == "STANDARD"


def test_backups_are_taken_when_asked_for(shipped: Synthesis, full: Synthesis) -> None:
    def enabled(synthesis: Synthesis) -> bool:
        table = synthesis.one("AWS::DynamoDB::Table").properties
        return bool(table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"])

    assert not enabled(shipped)
    assert enabled(full)


def test_what_is_stored_is_forgotten(each: Synthesis) -> None:
    table = each.one("AWS::DynamoDB::Table").properties
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    rule, *folders = each.one("AWS::S3::Bucket", stack="Data").properties["LifecycleConfiguration"]["Rules"]
    assert {folder["Prefix"]: folder["ExpirationInDays"] for folder in folders} == dict.fromkeys(
        ("prepared/", "enriched/", "ingests/"), 30
    )
    # The shorter of two times holds: what can be made again is billed for a day after it is deleted, and not for 30.
    assert [each["NoncurrentVersionExpiration"]["NoncurrentDays"] for each in (rule, *folders)] == [30, 1, 1, 1]
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}


def test_every_log_is_kept_as_long_as_the_deployer_says(shipped: Synthesis, full: Synthesis) -> None:
    for synthesis, days in ((shipped, 30), (full, 14)):
        groups = list(synthesis.resources("AWS::Logs::LogGroup"))
        functions = list(synthesis.resources("AWS::Lambda::Function"))
        assert len(groups) == len(functions) + 3  # two workflows, the access log
        for group in groups:
            assert group.properties["RetentionInDays"] == days
            assert group.rest["DeletionPolicy"] == "Delete"


def test_the_table_can_be_capped(shipped: Synthesis, full: Synthesis) -> None:
    assert "OnDemandThroughput" not in shipped.one("AWS::DynamoDB::Table").properties
    table = full.one("AWS::DynamoDB::Table").properties
    for capped in (table, *table["GlobalSecondaryIndexes"]):
        assert capped["OnDemandThroughput"] == {"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 200}


def test_the_answers_written_at_once_can_be_capped(shipped: Synthesis, full: Synthesis) -> None:
    assert "ReservedConcurrentExecutions" not in shipped.function("answer").properties
    assert full.function("answer").properties["ReservedConcurrentExecutions"] == 10
