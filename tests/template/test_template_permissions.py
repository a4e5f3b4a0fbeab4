"""Each role may do what its code does, on what it does it with, and nothing else."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest

from cicada.index.access_rules import ACCESS_KEY
from cicada_local.permissions.requirements import CONDITION_KEYS
from stacks.findings import flat
from stacks.keys import OBJECT_READER, TABLE_READER, TABLE_WRITER
from tests.template.templates import FUNCTIONS, Synthesis, as_list

HERE = "<AWS::Region>:<AWS::AccountId>"
TABLE = "<Cicada-Data.PublishOutputFnGetAttRequestsC42AC379Arn231A34F2>"
CONNECTIONS = f"arn:<AWS::Partition>:execute-api:{HERE}:<Cicada-Data.ApiId>/live/POST/@connections/*"
BUCKET = "arn:<AWS::Partition>:s3:::<Cicada-Data.IndexBucket>"
XRAY = {("xray:PutTelemetryRecords", "*"), ("xray:PutTraceSegments", "*")}


def own_logs(synthesis: Synthesis, function: str) -> set[tuple[str, str]]:
    (group,) = (
        g.id for g in synthesis.resources("AWS::Logs::LogGroup") if g.id.startswith(FUNCTIONS[function] + "Logs")
    )
    return {("logs:CreateLogStream", f"<{group}.Arn>"), ("logs:PutLogEvents", f"<{group}.Arn>")}


def allowed(synthesis: Synthesis, function: str) -> set[tuple[str, str]]:
    return {(action, resource) for action, resource, _ in synthesis.permissions(FUNCTIONS[function] + "Role")}


def test_the_message_processor(shipped: Synthesis) -> None:
    assert allowed(shipped, "message_processor") == XRAY | own_logs(shipped, "message_processor") | {
        ("dynamodb:BatchGetItem", TABLE),
        ("dynamodb:ConditionCheckItem", TABLE),
        ("dynamodb:DeleteItem", TABLE),
        ("dynamodb:GetItem", TABLE),
        ("dynamodb:PutItem", TABLE),
        ("dynamodb:Query", TABLE),
        ("dynamodb:UpdateItem", TABLE),
        ("states:StartExecution", f"<{shipped.machine('Workflow').id}>"),
        ("execute-api:ManageConnections", CONNECTIONS),
    }


def test_the_reader_of_the_corpus_changes_nothing(shipped: Synthesis, full: Synthesis) -> None:
    granted = {
        ("dynamodb:BatchGetItem", TABLE),
        ("dynamodb:GetItem", TABLE),
        ("s3:GetObject", f"{BUCKET}/index/*"),
        ("s3:GetObject", f"{BUCKET}/incoming/*"),
        ("s3:ListBucket", BUCKET),
    }
    found = allowed(shipped, "corpus") - XRAY - own_logs(shipped, "corpus")
    assert granted <= found
    assert {action for action, _ in found - granted} == {"bedrock:InvokeModel"}
    assert all("embed" in resource for action, resource in found if action == "bedrock:InvokeModel")
    of_all = {action for action, _ in allowed(full, "corpus")}
    assert not {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "s3:PutObject"} & of_all


def test_the_answer_worker(shipped: Synthesis) -> None:
    stream, profile = "bedrock:InvokeModelWithResponseStream", f"arn:<AWS::Partition>:bedrock:{HERE}:inference-profile"
    regions = ("<AWS::Region>", "us-east-1", "us-east-2", "us-west-1", "us-west-2")
    assert allowed(shipped, "answer") == XRAY | own_logs(shipped, "answer") | {
        ("dynamodb:BatchWriteItem", TABLE),
        ("dynamodb:DeleteItem", TABLE),
        ("dynamodb:GetItem", TABLE),
        ("dynamodb:PutItem", TABLE),
        ("dynamodb:Query", TABLE),
        ("dynamodb:UpdateItem", TABLE),
        ("execute-api:ManageConnections", CONNECTIONS),
        ("s3:GetObject", f"{BUCKET}/index/*"),
        ("s3:ListBucket", BUCKET),
        (stream, f"{profile}/us.amazon.nova-lite-v1:0"),
        (stream, f"{profile}/us.amazon.nova-micro-v1:0"),
        *((stream, f"arn:<AWS::Partition>:bedrock:{r}::foundation-model/amazon.nova-lite-v1:0") for r in regions),
        *((stream, f"arn:<AWS::Partition>:bedrock:{r}::foundation-model/amazon.nova-micro-v1:0") for r in regions),
        # Sorts a theory's evidence.
        *(("bedrock:InvokeModel", f"{profile}/us.amazon.{model}") for model in ("nova-lite-v1:0", "nova-micro-v1:0")),
        *(
            ("bedrock:InvokeModel", f"arn:<AWS::Partition>:bedrock:{r}::foundation-model/amazon.{model}")
            for r in regions
            for model in ("nova-lite-v1:0", "nova-micro-v1:0")
        ),
        (
            "bedrock:InvokeModel",
            "arn:<AWS::Partition>:bedrock:<AWS::Region>::foundation-model/amazon.titan-embed-text-v2:0",
        ),
    }


def test_the_function_that_closes_a_request(shipped: Synthesis) -> None:
    """An event over 2,048 bytes is an item of its own: it puts such an end, and finds and deletes a blocked text's."""
    assert allowed(shipped, "exhausted") == XRAY | own_logs(shipped, "exhausted") | {
        ("dynamodb:DeleteItem", TABLE),
        ("dynamodb:GetItem", TABLE),
        ("dynamodb:PutItem", TABLE),
        ("dynamodb:Query", TABLE),
        ("dynamodb:UpdateItem", TABLE),
        ("execute-api:ManageConnections", CONNECTIONS),
    }


def test_the_recovery_sweep(shipped: Synthesis) -> None:
    """It alone reads the index of open requests; it leaves no traces, so it has no right to."""
    assert allowed(shipped, "recovery_sweep") == own_logs(shipped, "recovery_sweep") | {
        ("dynamodb:DeleteItem", TABLE),
        ("dynamodb:GetItem", TABLE),
        ("dynamodb:PutItem", TABLE),
        ("dynamodb:Query", TABLE),
        ("dynamodb:UpdateItem", TABLE),
        ("dynamodb:Scan", f"{TABLE}/index/open"),
        ("states:StartExecution", f"<{shipped.machine('Workflow').id}>"),
        ("execute-api:ManageConnections", CONNECTIONS),
    }


@pytest.mark.parametrize("function", ["authorizer", "connection"])
def test_the_functions_that_only_log(shipped: Synthesis, function: str) -> None:
    assert allowed(shipped, function) == XRAY | own_logs(shipped, function)


def test_the_workflow(shipped: Synthesis) -> None:
    may = {(action, resource) for action, resource, _ in shipped.permissions("WorkflowRole")}
    assert {pair for pair in may if pair[1] != "*"} == {
        ("lambda:InvokeFunction", f"<{shipped.function('answer').id}.Arn>"),
        ("lambda:InvokeFunction", f"<{shipped.function('exhausted').id}.Arn>"),
    }
    assert {action.split(":")[0] for action, resource in may if resource == "*"} == {"logs", "xray"}


def test_a_model_behind_a_profile_can_be_called_through_the_profile_only(shipped: Synthesis) -> None:
    models = [
        (resource, condition)
        for action, resource, condition in shipped.permissions("AnswerRole")
        if action.endswith("ResponseStream") and "foundation-model" in resource
    ]
    assert len(models) == 10
    for resource, condition in models:
        name = resource.rsplit("/", 1)[-1]
        profile = f"arn:<AWS::Partition>:bedrock:{HERE}:inference-profile/us.{name}"
        assert condition == {"StringEquals": {"bedrock:InferenceProfileArn": profile}}


def test_a_global_profile_needs_no_list_of_regions(full: Synthesis) -> None:
    model = "anthropic.claude-haiku-4-5-20251001-v1:0"
    found = {resource for action, resource, _ in full.permissions("AnswerRole") if resource.endswith(model)}
    assert found == {
        f"arn:<AWS::Partition>:bedrock:{HERE}:inference-profile/global.{model}",
        f"arn:<AWS::Partition>:bedrock:::foundation-model/{model}",
        f"arn:<AWS::Partition>:bedrock:<AWS::Region>::foundation-model/{model}",
        f"arn:<AWS::Partition>:bedrock:eu-south-9::foundation-model/{model}",
    }


def test_an_embedding_model_behind_a_profile_can_be_called_in_its_regions(full: Synthesis) -> None:
    model = "cohere.embed-v4:0"
    for folder in ("answer", "ingest_document", "index_document", "retrieve"):
        found = {resource for _, resource in allowed(full, folder) if resource.endswith(model)}
        assert f"arn:<AWS::Partition>:bedrock:{HERE}:inference-profile/eu.{model}" in found
        assert f"arn:<AWS::Partition>:bedrock:eu-central-1::foundation-model/{model}" in found
        assert len(found) == 11, "the profile, the own Region, the eight known ones and the named one"


WIDEST = {
    # X-Ray's writes and the set-up of log delivery know no resources.
    "xray": ("*",),
    "logs": ("*",),
    # Connections come and go; objects are named by their content, or by what was uploaded.
    "execute-api": ("/live/POST/@connections/*",),
    "s3": tuple(
        f"/{folder}/*"
        for folder in ("index", "incoming", "ingested", "ingests", "prepared", "enriched", "assets", "audit")
    ),
    # A Distributed Map watches the executions of its own state machine.
    "states": ("-ingest:*", "-ingest/*"),
}


def test_no_other_wildcard_is_allowed(each: Synthesis) -> None:
    for action, resource, _ in each.permissions(""):
        assert "*" not in action
        if "*" in resource:
            widest = WIDEST[action.split(":")[0]]
            assert resource == "*" if widest == ("*",) else resource.endswith(widest)
            assert resource.count("*") == 1


def test_no_role_but_api_gateways_has_a_managed_policy(each: Synthesis) -> None:
    managed = {r.id for r in each.resources("AWS::IAM::Role") if r.properties.get("ManagedPolicyArns")}
    assert all(id.startswith("ApiLoggingRole") for id in managed)


def test_each_function_has_a_role_of_its_own(each: Synthesis) -> None:
    roles = [flat(function.properties["Role"]) for function in each.resources("AWS::Lambda::Function")]
    assert len(set(roles)) == len(roles)


def trusts(synthesis: Synthesis) -> list[dict[str, Any]]:
    return [
        statement
        for role in synthesis.resources("AWS::IAM::Role")
        for statement in role.properties["AssumeRolePolicyDocument"]["Statement"]
    ]


def test_only_the_services_take_the_roles(each: Synthesis) -> None:
    services = {statement["Principal"]["Service"] for statement in trusts(each)}
    assert services <= {f"{name}.amazonaws.com" for name in ("lambda", "states", "apigateway", "s3")}


def test_the_workflows_role_is_taken_in_the_name_of_this_account_only(shipped: Synthesis) -> None:
    taken = [s for s in trusts(shipped) if s["Principal"]["Service"] == "states.amazonaws.com"]
    assert len(taken) == 2
    assert all(s["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}} for s in taken)


def test_functions_are_invoked_by_this_api_and_these_rules_only(each: Synthesis) -> None:
    permissions = list(each.resources("AWS::Lambda::Permission"))
    assert len(permissions) >= 4
    for permission in permissions:
        if permission.properties["Principal"] == "*":
            assert permission.properties["FunctionName"]["Fn::GetAtt"][0] == each.function("http").id
            continue
        principal, source = permission.properties["Principal"], flat(permission.properties["SourceArn"])
        if principal == "events.amazonaws.com":
            assert source in {f"<{rule.id}.Arn>" for rule in each.resources("AWS::Events::Rule")}
        else:
            assert principal == "apigateway.amazonaws.com"
            assert f":<{each.prefix}-Data.ApiId>/" in source
        assert "*" not in source


def test_nobody_reads_the_bucket_in_the_clear(each: Synthesis) -> None:
    policy = each.one("AWS::S3::BucketPolicy", stack="Data").properties["PolicyDocument"]["Statement"]
    denied = [s["Condition"] for s in policy if s["Effect"] == "Deny" and as_list(s["Action"]) == ["s3:*"]]
    assert {"Bool": {"aws:SecureTransport": "false"}} in denied
    assert all(s["Effect"] == "Deny" for s in policy)


def test_a_key_of_ones_own_is_used_by_those_who_read_the_table_or_write_the_index(full: Synthesis) -> None:
    users = {
        name
        for name, id in FUNCTIONS.items()
        if any(action.startswith("kms:") for action, _, _ in full.permissions(id + "Role"))
    }
    assert users == {
        *("message_processor", "answer", "exhausted", "recovery_sweep", "index_maintenance"),
        *("corpus", "ingest_plan", "ingest_document", "ingest_commit", "record_settings"),
        *("retrieve", "index_document", "get_document_summary", "graph_query", "facets", "enrich_schema"),
    }


KEY_USES = {
    "reads objects": {"kms:Decrypt"},
    "writes objects": {"kms:Decrypt", "kms:GenerateDataKey"},
    "writes the table": set(TABLE_WRITER),
    "reads objects and the table": {*OBJECT_READER, *TABLE_READER},
}


def test_a_key_of_ones_own_encrypts_for_those_who_write_only(full: Synthesis) -> None:
    for name, id in FUNCTIONS.items():
        actions = {action for action, _, _ in full.permissions(id + "Role")}
        kind = (
            "writes the table"
            if "dynamodb:PutItem" in actions
            else "writes objects"
            if "s3:PutObject" in actions
            else "reads objects and the table"
            if "dynamodb:GetItem" in actions
            else "reads objects"
        )
        used = {action for action in actions if action.startswith("kms:")}
        assert used in (set(), KEY_USES[kind]), name


def test_the_local_cloud_fills_in_every_condition_key_of_the_roles(each: Synthesis) -> None:
    conditions = [condition for _, _, condition in each.permissions("") if condition]
    conditions += [statement["Condition"] for statement in trusts(each) if "Condition" in statement]
    for policy in each.resources("AWS::S3::BucketPolicy"):
        statements = policy.properties["PolicyDocument"]["Statement"]
        conditions += [statement["Condition"] for statement in statements if "Condition" in statement]
    keys = {key.lower() for condition in conditions for operands in condition.values() for key in operands}
    assert keys <= CONDITION_KEYS


def test_who_may_read_is_written_by_the_ingest_workflow_alone(shipped: Synthesis) -> None:
    rules = f"{BUCKET}/{ACCESS_KEY}"
    writing = ("s3:PutObject", "s3:DeleteObject")
    writers = set()
    for name in FUNCTIONS:
        denied = {
            action for action, resource, _ in shipped.permissions(FUNCTIONS[name] + "Role", "Deny") if resource == rules
        }
        for action, resource in allowed(shipped, name):
            if action in writing and fnmatchcase(rules, resource) and action not in denied:
                writers.add((name, action))
    assert writers == {("ingest_commit", "s3:PutObject")}


def test_whoever_searches_may_read_the_rules(shipped: Synthesis) -> None:
    for name in ("answer", "retrieve", "facets", "graph_query", "get_document_summary", "enrich_schema"):
        read = [resource for action, resource in allowed(shipped, name) if action == "s3:GetObject"]
        assert any(fnmatchcase(f"{BUCKET}/{ACCESS_KEY}", resource) for resource in read), name
