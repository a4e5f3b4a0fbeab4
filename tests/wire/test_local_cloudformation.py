"""Stacks on the local cloud: what moto's CloudFormation lacks, made by change sets as the CDK makes it."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from botocore.exceptions import ClientError

from cicada_cli.doctor.calls import AwsCalls
from cicada_cli.doctor.changes import check_changes
from cicada_cli.doctor.findings import Status
from cicada_local.bedrock.guardrails import GuardedText, GuardrailStore
from cicada_local.cloudformation import guardrails
from tests.wire.local_services import ACCOUNT_ID, Services, create_role, deployed_stack, outputs_of, running_services

ROLE = f"arn:aws:iam::{ACCOUNT_ID}:role/any"


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        client = running.client("s3")
        client.create_bucket(Bucket="assets")
        client.put_object(Bucket="assets", Key="code.zip", Body=archive("handler.py", "x = 1"))
        client.put_object(Bucket="assets", Key="layer.zip", Body=archive("python/lib.py", "y = 2"))
        client.put_object(Bucket="assets", Key="large.zip", Body=large_archive())
        create_role(running, "any", allowed={"lambda:InvokeFunction": "*"})
        yield running


def archive(name: str, text: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr(name, text)
    return file.getvalue()


def large_archive() -> bytes:
    """An archive that says of itself that it unpacks to a byte more than Lambda takes."""
    file = io.BytesIO(archive("data", ""))
    with zipfile.ZipFile(file, "a") as zipped:
        zipped.filelist[0].file_size = 262_144_001
        zipped._didModify = True  # type: ignore[attr-defined]  # so that the directory is written again
    return file.getvalue()


def ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def att(name: str, attribute: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [name, attribute]}


def template(resources: dict[str, Any], **outputs: Any) -> dict[str, Any]:
    return {"Resources": resources, "Outputs": {name: {"Value": value} for name, value in outputs.items()}}


FUNCTION: dict[str, Any] = {
    "Type": "AWS::Lambda::Function",
    "Properties": {
        "Code": {"S3Bucket": "assets", "S3Key": "code.zip"},
        "Handler": "handler.handler",
        "Runtime": "python3.13",
        "Architectures": ["arm64"],
        "Role": ROLE,
        "Timeout": 20,
        "MemorySize": 512,
        "Layers": [ref("Layer")],
        "Environment": {"Variables": {"API": ref("Api")}},
        "ReservedConcurrentExecutions": 3,
    },
}
LAYER = {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Content": {"S3Bucket": "assets", "S3Key": "layer.zip"}}}
API = {
    "Api": {
        "Type": "AWS::ApiGatewayV2::Api",
        "Properties": {"ProtocolType": "WEBSOCKET", "RouteSelectionExpression": "$request.body.action"},
    },
    "Integration": {
        "Type": "AWS::ApiGatewayV2::Integration",
        "Properties": {
            "ApiId": ref("Api"),
            "IntegrationType": "AWS_PROXY",
            "IntegrationUri": {
                "Fn::Sub": "arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/${Fn.Arn}/invocations"
            },
        },
    },
    "Authorizer": {
        "Type": "AWS::ApiGatewayV2::Authorizer",
        "Properties": {
            "ApiId": ref("Api"),
            "AuthorizerType": "REQUEST",
            "IdentitySource": ["route.request.querystring.token"],
            "AuthorizerUri": {
                "Fn::Sub": "arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/${Fn.Arn}/invocations"
            },
        },
    },
    "Connect": {
        "Type": "AWS::ApiGatewayV2::Route",
        "Properties": {
            "ApiId": ref("Api"),
            "RouteKey": "$connect",
            "AuthorizationType": "CUSTOM",
            "AuthorizerId": ref("Authorizer"),
            "Target": {"Fn::Join": ["/", ["integrations", ref("Integration")]]},
        },
    },
    "Default": {
        "Type": "AWS::ApiGatewayV2::Route",
        "Properties": {
            "ApiId": ref("Api"),
            "RouteKey": "$default",
            "Target": {"Fn::Join": ["/", ["integrations", ref("Integration")]]},
        },
    },
    "Reply": {
        "Type": "AWS::ApiGatewayV2::RouteResponse",
        "Properties": {"ApiId": ref("Api"), "RouteId": ref("Default"), "RouteResponseKey": "$default"},
    },
    "Stage": {
        "Type": "AWS::ApiGatewayV2::Stage",
        "Properties": {"ApiId": ref("Api"), "StageName": "live", "StageVariables": {"colour": "blue"}},
    },
    "Fn": FUNCTION,
    "Layer": LAYER,
}


def test_the_gateway_reads_an_api_as_the_stack_declares_it(services: Services) -> None:
    from cicada_local.deployed import lookup_api

    with deployed_stack(services, "api", template(API, Api=ref("Api"), Fn=att("Fn", "Arn"))) as stack:
        outputs = outputs_of(stack)
        api = lookup_api(outputs["Api"], "live")
        assert api is not None
        assert set(api.routes) == {"$connect", "$default"}
        assert api.routes["$default"].two_way
        assert not api.routes["$connect"].two_way
        assert api.routes["$default"].function_arn == outputs["Fn"]
        assert api.routes["$default"].authorizer is None
        authorizer = api.routes["$connect"].authorizer
        assert authorizer is not None
        assert authorizer.function_arn == outputs["Fn"]
        assert authorizer.identity_sources == ("route.request.querystring.token",)
        assert api.stage_variables == {"colour": "blue"}
        assert lookup_api(outputs["Api"], "none") is None
    assert lookup_api(outputs["Api"], "live") is None


def test_the_lambda_service_reads_a_function_with_its_layers(services: Services) -> None:
    from moto.awslambda.models import lambda_backends

    from cicada_local.deployed import DeployedFunctions

    functions = DeployedFunctions(lambda_backends[ACCOUNT_ID]["us-east-1"])
    with deployed_stack(services, "functions", template(API, Fn=ref("Fn"), Arn=att("Fn", "Arn"))) as stack:
        outputs = outputs_of(stack)
        found = functions.lookup(outputs["Fn"])
        assert found is not None
        assert found == functions.lookup(outputs["Arn"]) == functions.lookup(f"{outputs['Arn']}:$LATEST")
        assert (found.handler, found.timeout_s, found.memory_mb) == ("handler.handler", 20.0, 512)
        assert (found.architecture, found.reserved_concurrency) == ("arm64", 3)
        assert zipfile.ZipFile(io.BytesIO(found.code_zip)).namelist() == ["handler.py"]
        assert [zipfile.ZipFile(io.BytesIO(layer.zip_bytes)).namelist() for layer in found.layers] == [
            ["python/lib.py"]
        ]
        assert found.environment["API"]
    assert functions.lookup(outputs["Fn"]) is None


def test_names_and_addresses_are_the_same_at_every_deployment(services: Services) -> None:
    resources = {**API, "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {}}}
    deployments = []
    for _ in range(2):
        declared = template(resources, Api=ref("Api"), Fn=ref("Fn"), Bucket=ref("Bucket"))
        with deployed_stack(services, "alike", declared) as stack:
            deployments.append(outputs_of(stack))
    assert deployments[0] == deployments[1]
    with deployed_stack(services, "other", template(resources, Api=ref("Api"))) as stack:
        assert outputs_of(stack)["Api"] != deployments[0]["Api"]


def test_an_update_changes_a_function_in_place(services: Services) -> None:
    client = services.client("cloudformation")
    with deployed_stack(services, "update", template(API, Fn=ref("Fn"))) as stack:
        name = outputs_of(stack)["Fn"]
        changed = json.loads(json.dumps(API))
        changed["Fn"]["Properties"]["Environment"] = {"Variables": {"NEW": "1"}}
        changed["Fn"]["Properties"]["Timeout"] = 5
        client.create_change_set(
            StackName="update",
            ChangeSetName="second",
            ChangeSetType="UPDATE",
            TemplateBody=json.dumps(template(changed, Fn=ref("Fn"), Api=ref("Api"))),
        )
        client.execute_change_set(StackName="update", ChangeSetName="second")
        found = services.client("lambda").get_function_configuration(FunctionName=name)
        assert (found["Environment"]["Variables"], found["Timeout"]) == ({"NEW": "1"}, 5)
        described = client.describe_stacks(StackName="update")["Stacks"][0]
        assert described["StackStatus"] == "UPDATE_COMPLETE"
        assert set(outputs_of(described)) == {"Fn", "Api"}


def test_a_guardrail_has_a_new_version_when_its_description_changes(services: Services) -> None:
    def declared(word: str) -> dict[str, Any]:
        guardrail = {
            "Name": "words",
            "BlockedInputMessaging": "No.",
            "BlockedOutputsMessaging": "No.",
            "WordPolicyConfig": {"WordsConfig": [{"Text": word}]},
            "ContextualGroundingPolicyConfig": {"FiltersConfig": [{"Type": "GROUNDING", "Threshold": 0.6}]},
        }
        version = {"GuardrailIdentifier": att("Guardrail", "GuardrailId"), "Description": word}
        resources = {
            "Guardrail": {"Type": "AWS::Bedrock::Guardrail", "Properties": guardrail},
            "Version": {"Type": "AWS::Bedrock::GuardrailVersion", "Properties": version, "DependsOn": "Guardrail"},
        }
        return template(resources, Id=att("Guardrail", "GuardrailId"), Version=att("Version", "Version"))

    store = GuardrailStore()
    guardrails.serve(store)

    def blocked(stack: Any) -> list[str]:
        outputs = outputs_of(stack)
        found = store.find(outputs["Id"], outputs["Version"])
        assert found is not None
        return [word for word in ("boondoggle", "canal") if found.find([GuardedText(word)], "INPUT").blocked]

    client = services.client("cloudformation")
    with deployed_stack(services, "guarded", declared("boondoggle")) as stack:
        assert blocked(stack) == ["boondoggle"]
        client.create_change_set(
            StackName="guarded",
            ChangeSetName="second",
            ChangeSetType="UPDATE",
            TemplateBody=json.dumps(declared("canal")),
        )
        client.execute_change_set(StackName="guarded", ChangeSetName="second")
        updated = client.describe_stacks(StackName="guarded")["Stacks"][0]
        assert (outputs_of(stack)["Version"], outputs_of(updated)["Version"]) == ("1", "2")
        assert blocked(updated) == ["canal"]
        assert store.find(outputs_of(updated)["Id"], "1") is None


def test_an_update_keeps_what_moto_cannot_update(services: Services) -> None:
    def declared(days: int) -> dict[str, Any]:
        logs = {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "kept-logs", "RetentionInDays": days}}
        topic = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": att("Logs", "Arn")}}
        return template({"Logs": logs, "Topic": topic}, Logs=att("Logs", "Arn"))

    client = services.client("cloudformation")
    with deployed_stack(services, "logs", declared(7)) as stack:
        client.create_change_set(
            StackName="logs", ChangeSetName="second", ChangeSetType="UPDATE", TemplateBody=json.dumps(declared(14))
        )
        client.execute_change_set(StackName="logs", ChangeSetName="second")
        updated = client.describe_stacks(StackName="logs")["Stacks"][0]
        assert (updated["StackStatus"], outputs_of(updated)) == ("UPDATE_COMPLETE", outputs_of(stack))


def test_an_update_keeps_a_parameter_of_the_parameter_store(services: Services) -> None:
    services.client("ssm").put_parameter(Name="/bootstrap/version", Value="32", Type="String")
    declared = template({"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "a"}}}, Version=ref("V"))
    declared["Parameters"] = {"V": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/bootstrap/version"}}
    client = services.client("cloudformation")
    with deployed_stack(services, "stored", declared):
        declared["Resources"]["Topic"]["Properties"]["DisplayName"] = "b"
        client.create_change_set(
            StackName="stored",
            ChangeSetName="second",
            ChangeSetType="UPDATE",
            TemplateBody=json.dumps(declared),
            Parameters=[{"ParameterKey": "V", "UsePreviousValue": True}],
        )
        client.execute_change_set(StackName="stored", ChangeSetName="second")
        stack = client.describe_stacks(StackName="stored")["Stacks"][0]
        assert (stack["StackStatus"], outputs_of(stack)) == ("UPDATE_COMPLETE", {"Version": "32"})


def test_change_sets_of_one_name_are_their_stacks_own(services: Services) -> None:
    client = services.client("cloudformation")
    declared = template({"Topic": {"Type": "AWS::SNS::Topic", "Properties": {}}})
    with deployed_stack(services, "one", declared), deployed_stack(services, "two", declared):
        names = [
            client.describe_change_set(StackName=stack, ChangeSetName="first")["StackName"] for stack in ("one", "two")
        ]
        assert names == ["one", "two"]
        client.delete_change_set(StackName="one", ChangeSetName="first")
        assert client.describe_change_set(StackName="two", ChangeSetName="first")["StackName"] == "two"
        with pytest.raises(client.exceptions.ChangeSetNotFoundException):
            client.describe_change_set(StackName="one", ChangeSetName="first")


def test_one_stack_imports_what_another_exports(services: Services) -> None:
    exporting = template({"Queue": {"Type": "AWS::SQS::Queue", "Properties": {}}})
    exporting["Outputs"] = {"Name": {"Value": att("Queue", "QueueName"), "Export": {"Name": "first:Queue"}}}
    importing = template(
        {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::ImportValue": "first:Queue"}}}},
        Imported={"Fn::ImportValue": "first:Queue"},
    )
    with (
        deployed_stack(services, "first", exporting) as first,
        deployed_stack(services, "second", importing) as second,
    ):
        assert outputs_of(second)["Imported"] == outputs_of(first)["Name"]
        without = template({"Queue": {"Type": "AWS::SQS::Queue", "Properties": {}}})
        assert updated(services, "first", without)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
        reason = reason_of_failure(services, "first")
        assert "Export first:Queue cannot be deleted as it is in use by second" in reason


def test_the_templates_of_deployed_stacks_are_compared_before_a_deployment(services: Services) -> None:
    kept = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "compared"}}
    deployed = template({"Bucket": kept}, Name=ref("Bucket"))
    renamed = template({"Bucket": kept | {"Properties": {"BucketName": "another"}}}, Name=ref("Bucket"))
    with deployed_stack(services, "Compared-Data", deployed) as stack:
        calls, stacks = AwsCalls(services.client), {"Compared-Data": stack}
        (same,) = check_changes(calls, stacks, {"Compared-Data": deployed})
        (other,) = check_changes(calls, stacks, {"Compared-Data": renamed})
    assert (same.status, other.status) == (Status.OK, Status.PROBLEM)
    assert "Bucket (AWS::S3::Bucket) is replaced" in other.message


def queue(name: str) -> dict[str, Any]:
    made = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": name}}
    return template({"Queue": made}, Name=att("Queue", "QueueName"))


def reading(output: str, *, stack: str = "producer", description: str = "") -> dict[str, Any]:
    value = {"Fn::GetStackOutput": {"StackName": stack, "OutputName": output, "Region": ref("AWS::Region")}}
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": value}}
    return template({"Topic": topic}, Read=value, Topic=ref("Topic")) | {"Description": description}


def updated(services: Services, stack: str, changed: dict[str, Any]) -> dict[str, Any]:
    """The stack after an update."""
    client = services.client("cloudformation")
    client.create_change_set(
        StackName=stack, ChangeSetName="next", ChangeSetType="UPDATE", TemplateBody=json.dumps(changed)
    )
    client.execute_change_set(StackName=stack, ChangeSetName="next")
    found: dict[str, Any] = client.describe_stacks(StackName=stack)["Stacks"][0]
    return found


def reason_of_failure(services: Services, stack: str) -> str:
    events = services.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
    return str(next(event["ResourceStatusReason"] for event in events if event["ResourceStatus"].endswith("_FAILED")))


def test_an_output_of_another_stack_is_read_when_a_stack_is_created_or_updated(services: Services) -> None:
    topics = services.client("sns")

    def display_name(stack: dict[str, Any]) -> str:
        return str(topics.get_topic_attributes(TopicArn=outputs_of(stack)["Topic"])["Attributes"]["DisplayName"])

    with (
        deployed_stack(services, "producer", queue("first-name")),
        deployed_stack(services, "consumer", reading("Name")) as consumer,
    ):
        assert (outputs_of(consumer)["Read"], display_name(consumer)) == ("first-name", "first-name")
        client = services.client("cloudformation")
        assert json.loads(json.dumps(client.get_template(StackName="consumer")["TemplateBody"])) == reading("Name")
        updated(services, "producer", template({}, Name="second-name") | {"Resources": queue("q")["Resources"]})
        assert display_name(consumer) == "first-name"  # nobody tells the consumer
        consumer = updated(services, "consumer", reading("Name", description="updated"))
        assert (outputs_of(consumer)["Read"], display_name(consumer)) == ("second-name", "second-name")


def test_an_output_that_is_not_there_fails_the_stack(services: Services) -> None:
    with deployed_stack(services, "orphan", reading("Name", stack="nowhere")) as stack:
        assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
        assert "Stack with id nowhere does not exist" in reason_of_failure(services, "orphan")
    with (
        deployed_stack(services, "producer", queue("third-name")),
        deployed_stack(services, "consumer", reading("Name")) as consumer,
    ):
        failed = updated(services, "consumer", reading("Renamed"))
        assert failed["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
        assert "Output Renamed does not exist in stack producer" in reason_of_failure(services, "consumer")
        assert outputs_of(failed) == outputs_of(consumer)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ({"StackName": "wrong", "OutputName": "Any"}, "refers to itself"),
        ({"StackName": "producer"}, "takes StackName, OutputName, Region and RoleArn"),
        ({"StackName": "producer", "OutputName": "Name", "Region": "eu-west-1"}, "one account and one Region"),
        ({"StackName": {"Fn::Sub": "x"}, "OutputName": "Name"}, "cannot resolve"),
    ],
)
def test_a_wrong_reference_to_an_output_fails_the_stack(
    services: Services, reference: dict[str, Any], said: str
) -> None:
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::GetStackOutput": reference}}}
    with deployed_stack(services, "wrong", template({"Topic": topic})) as stack:
        assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
        assert said in reason_of_failure(services, "wrong")


def test_a_stack_that_fails_is_rolled_back_and_says_why(services: Services) -> None:
    broken = template(
        {
            "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "rolled-back"}},
            "Fn": {
                "Type": "AWS::Lambda::Function",
                "DependsOn": ["Bucket"],
                "Properties": {**FUNCTION["Properties"], "Layers": ["arn:aws:lambda:us-east-1:1:layer:none:1"]},
            },
            **{name: API[name] for name in ("Api",)},
        }
    )
    with deployed_stack(services, "broken", broken) as stack:
        assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
        events = services.client("cloudformation").describe_stack_events(StackName="broken")["StackEvents"]
        failed = [event for event in events if event["ResourceStatus"] == "CREATE_FAILED"]
        assert "layer:none:1" in failed[0]["ResourceStatusReason"]
        with pytest.raises(ClientError):
            services.client("s3").head_bucket(Bucket="rolled-back")


def test_tables_have_their_time_to_live_and_buckets_their_versions(services: Services) -> None:
    keys = {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
    }
    resources = {
        "Table": {"Type": "AWS::DynamoDB::Table", "Properties": keys},
        "TableV2": {
            "Type": "AWS::DynamoDB::GlobalTable",
            "Properties": {**keys, "Replicas": [{"Region": "us-east-1", "DeletionProtectionEnabled": False}]},
        },
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"VersioningConfiguration": {"Status": "Enabled"}}},
        "Policy": {
            "Type": "AWS::S3::BucketPolicy",
            "Properties": {"Bucket": ref("Bucket"), "PolicyDocument": {"Statement": []}},
        },
    }
    with deployed_stack(
        services, "data", template(resources, T1=ref("Table"), T2=ref("TableV2"), Bucket=ref("Bucket"))
    ) as stack:
        outputs = outputs_of(stack)
        for table in (outputs["T1"], outputs["T2"]):
            described = services.client("dynamodb").describe_time_to_live(TableName=table)["TimeToLiveDescription"]
            assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}
        assert services.client("s3").get_bucket_versioning(Bucket=outputs["Bucket"])["Status"] == "Enabled"


def test_tables_have_their_indexes_and_get_those_that_an_update_adds(services: Services) -> None:
    def declared(*indexes: str) -> dict[str, Any]:
        numbers = [{"AttributeName": name, "AttributeType": "N"} for name in ("open_in", "at_ms") if indexes]
        index = {
            "KeySchema": [
                {"AttributeName": "open_in", "KeyType": "HASH"},
                {"AttributeName": "at_ms", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
            "OnDemandThroughput": {"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 100},
        }
        table = {
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, *numbers],
            "BillingMode": "PAY_PER_REQUEST",
            **({"GlobalSecondaryIndexes": [{"IndexName": name, **index} for name in indexes]} if indexes else {}),
        }
        return template({"Table": {"Type": "AWS::DynamoDB::Table", "Properties": table}}, Table=ref("Table"))

    def listed(table: str) -> list[dict[str, Any]]:
        client = services.client("dynamodb")
        for pk, more in (("late", {"at_ms": 9}), ("early", {"at_ms": 3}), ("ended", None)):
            keys = {} if more is None else {"open_in": {"N": "0"}, "at_ms": {"N": str(more["at_ms"])}}
            client.put_item(TableName=table, Item={"pk": {"S": pk}, "text": {"S": "x"}, **keys})
        found: list[dict[str, Any]] = client.query(
            TableName=table,
            IndexName="open",
            KeyConditionExpression="open_in = :p AND at_ms < :t",
            ExpressionAttributeValues={":p": {"N": "0"}, ":t": {"N": "10"}},
        )["Items"]
        return found

    early, late = (
        {"pk": {"S": pk}, "open_in": {"N": "0"}, "at_ms": {"N": at}} for pk, at in (("early", "3"), ("late", "9"))
    )
    with deployed_stack(services, "indexed", declared("open")) as stack:
        assert listed(outputs_of(stack)["Table"]) == [early, late]
    client = services.client("cloudformation")
    with deployed_stack(services, "grown", declared()) as stack:
        client.create_change_set(
            StackName="grown", ChangeSetName="second", ChangeSetType="UPDATE", TemplateBody=json.dumps(declared("open"))
        )
        client.execute_change_set(StackName="grown", ChangeSetName="second")
        assert listed(outputs_of(stack)["Table"]) == [early, late]


def test_types_that_nothing_simulates_are_named() -> None:
    from cicada_local.cloudformation import unknown_types

    known = {"A": {"Type": "AWS::S3::Bucket"}, "B": {"Type": "AWS::CloudWatch::Alarm"}}
    assert unknown_types({"Resources": {**known, "D": {"Type": "AWS::Made::Up"}}}) == ["AWS::Made::Up"]


# --- the workflow ---


def machine(states: dict[str, Any], *, kind: str = "EXPRESS", **more: Any) -> dict[str, Any]:
    definition = json.dumps({"StartAt": next(iter(states)), "States": states, **more})
    return {
        "Type": "AWS::StepFunctions::StateMachine",
        "Properties": {"DefinitionString": definition, "RoleArn": ROLE, "StateMachineType": kind},
    }


def task(**more: Any) -> dict[str, Any]:
    parameters = {"FunctionName": "answer", "Payload": {"id.$": "$.id", "name.$": "$$.Execution.Name"}}
    return {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": parameters, "End": True, **more}


def run(services: Services, arn: str, document: Any, name: str | None = None) -> dict[str, Any]:
    """Start an execution and wait for its end."""
    from cicada_local.interpreter import executions

    options = {} if name is None else {"name": name}
    client = services.client("stepfunctions")
    started = client.start_execution(stateMachineArn=arn, input=json.dumps(document), **options)["executionArn"]
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = next(one for one in executions(ACCOUNT_ID, "us-east-1") if one["executionArn"] == started)
        if found["status"] != "RUNNING":
            return found
        time.sleep(0.01)
    raise AssertionError("the execution did not end")


def test_a_state_machine_of_a_stack_invokes_functions(services: Services) -> None:
    services.invoke = lambda name, event: {"function": name, "got": event}
    with deployed_stack(services, "sm1", template({"M": machine({"Rag": task()})}, Arn=ref("M"))) as stack:
        ended = run(services, outputs_of(stack)["Arn"], {"id": "r1"}, name="r1")
    assert (ended["status"], ended["states"]) == ("SUCCEEDED", ["Rag"])
    assert ended["output"]["Payload"] == {"function": "answer", "got": {"id": "r1", "name": "r1"}}


def test_express_executions_may_repeat_a_name_and_need_none(services: Services) -> None:
    services.invoke = lambda name, event: {}
    with deployed_stack(services, "sm2", template({"M": machine({"Rag": task()})}, Arn=ref("M"))) as stack:
        arn = outputs_of(stack)["Arn"]
        runs = [run(services, arn, {"id": "r1"}, name=name) for name in ("same", "same", None, None)]
    assert [one["status"] for one in runs] == ["SUCCEEDED"] * 4
    assert len({one["executionArn"] for one in runs}) == 4


def test_a_standard_execution_s_name_is_taken_once_it_has_run(services: Services) -> None:
    states = {"Done": {"Type": "Pass", "End": True}}
    with deployed_stack(services, "sm3", template({"M": machine(states, kind="STANDARD")}, Arn=ref("M"))) as stack:
        client = services.client("stepfunctions")
        arn = outputs_of(stack)["Arn"]
        client.start_execution(stateMachineArn=arn, name="once", input="{}")
        with pytest.raises(client.exceptions.ExecutionAlreadyExists):
            client.start_execution(stateMachineArn=arn, name="once", input='{"other": 1}')


def test_a_failed_function_is_caught_and_the_next_state_told(services: Services) -> None:
    def invoke(name: str, event: Any) -> Any:
        if name == "answer":
            body = {"errorType": "Sandbox.Timedout", "errorMessage": "RequestId: 1 Error: Task timed out"}
            return web.json_response(body, headers={"X-Amz-Function-Error": "Unhandled"})
        return event

    services.invoke = invoke
    fallen = {**task(), "Parameters": {"FunctionName": "direct", "Payload.$": "$"}}
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.failures.rag", "Next": "Direct"}]
    states = {"Rag": {**task(Catch=catch)}, "Direct": fallen}
    with deployed_stack(services, "sm4", template({"M": machine(states)}, Arn=ref("M"))) as stack:
        ended = run(services, outputs_of(stack)["Arn"], {"id": "r1", "failures": {}})
    assert ended["states"] == ["Rag", "Direct"]
    assert ended["output"]["Payload"]["failures"]["rag"]["Error"] == "Sandbox.Timedout"


def test_a_choice_takes_the_first_that_holds_by_the_fields_that_are_present(services: Services) -> None:
    services.invoke = lambda name, event: {}
    absent = [
        {"Variable": f"$.failures.{name}", "IsPresent": False, "Next": name.title()} for name in ("cag", "direct")
    ]
    done = {"Type": "Pass", "End": True}
    states = {
        "AfterRag": {"Type": "Choice", "Choices": absent, "Default": "Exhausted"},
        **dict.fromkeys(("Cag", "Direct", "Exhausted"), done),
    }
    failed = {"Error": "e", "Cause": "c"}
    with deployed_stack(services, "sm-choice", template({"M": machine(states)}, Arn=ref("M"))) as stack:
        for failures, reached in (
            ({}, "Cag"),
            ({"cag": failed}, "Direct"),
            ({"direct": failed}, "Cag"),
            ({"cag": failed, "direct": failed}, "Exhausted"),
        ):
            ended = run(services, outputs_of(stack)["Arn"], {"failures": failures})
            assert ended["states"] == ["AfterRag", reached]


def test_a_throttle_is_retried_by_the_state(services: Services) -> None:
    refused = [429, 429]

    def invoke(name: str, event: Any) -> Any:
        if refused:
            headers = {"x-amzn-ErrorType": "TooManyRequestsException", "x-amzn-RequestId": "1"}
            return web.json_response({"Message": "Rate Exceeded."}, status=refused.pop(), headers=headers)
        return "answered"

    services.invoke = invoke
    retry = [{"ErrorEquals": ["Lambda.TooManyRequestsException"], "IntervalSeconds": 1, "MaxAttempts": 2}]
    with deployed_stack(services, "sm5", template({"M": machine({"Rag": task(Retry=retry)})}, Arn=ref("M"))) as stack:
        ended = run(services, outputs_of(stack)["Arn"], {"id": "r1"})
    assert (ended["status"], ended["output"]["Payload"]) == ("SUCCEEDED", "answered")


def test_a_broken_connection_to_the_service_is_the_sdk_client_s_error(services: Services) -> None:
    class Gone(web.Response):
        async def prepare(self, request: web.BaseRequest) -> None:
            assert request.transport is not None
            request.transport.abort()

    services.invoke = lambda name, event: Gone()
    with deployed_stack(services, "sm6", template({"M": machine({"Rag": task()})}, Arn=ref("M"))) as stack:
        ended = run(services, outputs_of(stack)["Arn"], {"id": "r1"})
    assert (ended["status"], ended["error"]) == ("FAILED", "Lambda.SdkClientException")


def test_states_all_does_not_catch_a_runtime_error(services: Services) -> None:
    services.invoke = lambda name, event: {}
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Never"}]
    states = {"Rag": task(Catch=catch), "Never": {"Type": "Pass", "End": True}}
    with deployed_stack(services, "sm7", template({"M": machine(states)}, Arn=ref("M"))) as stack:
        ended = run(services, outputs_of(stack)["Arn"], {"no": "id"})
    assert (ended["status"], ended["states"], ended["error"]) == ("FAILED", ["Rag"], "States.Runtime")


def test_states_all_does_not_catch_an_output_that_is_too_large(services: Services) -> None:
    services.invoke = lambda name, event: "x" * 300_000
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Never"}]
    states = {"Rag": task(Catch=catch), "Never": {"Type": "Pass", "End": True}}
    with deployed_stack(services, "sm8", template({"M": machine(states)}, Arn=ref("M"))) as stack:
        ended = run(services, outputs_of(stack)["Arn"], {"id": "r1"})
    assert (ended["status"], ended["error"]) == ("FAILED", "States.DataLimitExceeded")


def test_an_input_that_is_too_large_or_no_json_is_refused(services: Services) -> None:
    with deployed_stack(services, "sm9", template({"M": machine({"Rag": task()})}, Arn=ref("M"))) as stack:
        client = services.client("stepfunctions")
        arn = outputs_of(stack)["Arn"]
        for document in (json.dumps("x" * 262_144), "{"):
            with pytest.raises(client.exceptions.InvalidExecutionInput):
                client.start_execution(stateMachineArn=arn, input=document)


def test_an_execution_ends_at_its_time_limit(services: Services) -> None:
    def invoke(name: str, event: Any) -> Any:
        return {}

    services.invoke = invoke
    states = {"Wait": {"Type": "Wait", "Seconds": 30, "End": True}}
    declared = template({"M": machine(states, TimeoutSeconds=1)}, Arn=ref("M"))
    with deployed_stack(services, "sm10", declared) as stack:
        ended = run(services, outputs_of(stack)["Arn"], {})
    assert ended["status"] == "TIMED_OUT"


def test_an_express_execution_without_a_limit_of_its_own_gets_five_minutes(services: Services) -> None:
    from moto.stepfunctions.parser.models import stepfunctions_parser_backends

    with deployed_stack(services, "sm11", template({"M": machine({"Rag": task()})}, Arn=ref("M"))) as stack:
        run(services, outputs_of(stack)["Arn"], {"id": "r1"})
        backend: Any = stepfunctions_parser_backends[ACCOUNT_ID]["us-east-1"]
        execution = backend.express_executions[-1]
        assert execution.exec_worker._get_evaluation_entrypoint().timeout_seconds.timeout_seconds == 300


def test_a_definition_is_taken_from_s3_with_its_substitutions(services: Services) -> None:
    services.invoke = lambda name, event: name
    states = {"Rag": {**task(), "Parameters": {"FunctionName": "${Answer}", "Payload": {}}}}
    definition = json.dumps({"StartAt": "Rag", "States": states}).encode()
    services.client("s3").put_object(Bucket="assets", Key="machine.json", Body=definition)
    declared = machine(states)
    del declared["Properties"]["DefinitionString"]
    declared["Properties"] |= {
        "DefinitionS3Location": {"Bucket": "assets", "Key": "machine.json"},
        "DefinitionSubstitutions": {"Answer": "the-worker"},
    }
    with deployed_stack(services, "sm12", template({"M": declared}, Arn=ref("M"))) as stack:
        assert run(services, outputs_of(stack)["Arn"], {})["output"]["Payload"] == "the-worker"


# --- what Lambda refuses ---


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"Environment": {"Variables": {"A": "x" * 4090}}}, "exceeded the 4KB limit. String measured"),
        ({"Layers": [ref("Layer")] * 6}, "Cannot reference more than 5 layers"),
        ({"ReservedConcurrentExecutions": 901}, "below its minimum value of [100]"),
        ({"Code": {"S3Bucket": "assets", "S3Key": "large.zip"}}, "Unzipped size must be smaller than 262144000 bytes"),
        ({"Layers": [ref("Layer"), ref("Large")]}, "Function code combined with layers exceeds the maximum"),
    ],
)
def test_a_configuration_that_lambda_refuses_cannot_be_deployed(
    services: Services, changes: dict[str, Any], why: str
) -> None:
    properties = {**FUNCTION["Properties"], "Layers": [], "Environment": {}} | changes
    content = {"S3Bucket": "assets", "S3Key": "large.zip"}
    resources = {
        "Layer": LAYER,
        "Large": {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Content": content}},
        "Fn": {"Type": "AWS::Lambda::Function", "Properties": properties},
    }
    with deployed_stack(services, "refused", template(resources)) as stack:
        assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
        events = services.client("cloudformation").describe_stack_events(StackName=stack["StackId"])["StackEvents"]
        assert any(why in event.get("ResourceStatusReason", "") for event in events)


# --- protection ---


def test_a_protected_stack_cannot_be_deleted(services: Services) -> None:
    client = services.client("cloudformation")
    resources = {"Queue": {"Type": "AWS::SQS::Queue"}}
    client.create_stack(StackName="kept", TemplateBody=json.dumps({"Resources": resources}))
    client.update_termination_protection(StackName="kept", EnableTerminationProtection=True)
    (found,) = client.describe_stacks(StackName="kept")["Stacks"]
    assert found["EnableTerminationProtection"] is True
    for name in ("kept", found["StackId"]):
        with pytest.raises(ClientError, match="cannot be deleted while TerminationProtection is enabled"):
            client.delete_stack(StackName=name)
    client.update_termination_protection(StackName="kept", EnableTerminationProtection=False)
    client.delete_stack(StackName="kept")
    with pytest.raises(ClientError, match="does not exist"):
        client.describe_stacks(StackName="kept")
