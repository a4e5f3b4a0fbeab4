"""Uploads and the functions for integrators: who may do what, who is told of what, and what reaches the functions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from cicada.corpus.chunking.options import ChunkOptions
from cicada.ingest.incoming.run_records import Batch
from cicada.ingest.settings import IngestSettings, IngestStartSettings
from cicada.integrators.settings import (
    IndexDocumentSettings,
    IndexSettings,
    RetrieveSettings,
    SummarySettings,
)
from stacks.findings import flat
from stacks.ingest_states import BATCH, BATCH_FIELDS, ONE, PREPARE
from tests.template.templates import Synthesis
from tests.template.test_template_permissions import BUCKET, XRAY, allowed, own_logs

EMBEDS = (
    "bedrock:InvokeModel",
    "arn:<AWS::Partition>:bedrock:<AWS::Region>::foundation-model/amazon.titan-embed-text-v2:0",
)
READS, WRITES, DELETES = "s3:GetObject", "s3:PutObject", "s3:DeleteObject"


def objects(action: str, *folders: str) -> set[tuple[str, str]]:
    return {(action, f"{BUCKET}/{folder}/*") for folder in folders}


LISTS = {("s3:ListBucket", BUCKET)}
RUNS = "arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:Cicada-ingest"
ROLES: dict[str, set[tuple[str, str]]] = {
    "ingest_plan": objects(READS, "incoming", "index", "ingested", "ingests")
    | objects(WRITES, "ingested", "ingests")
    | LISTS
    | {("states:DescribeExecution", f"{RUNS}:*")},
    "ingest_document": objects(READS, "incoming", "index", "prepared", "enriched", "ingests")
    | objects(WRITES, "prepared", "enriched", "ingests")
    | objects(DELETES, "prepared")
    | LISTS
    | {EMBEDS},
    "ingest_commit": objects(READS, "prepared", "index", "ingested", "ingests")
    | objects(WRITES, "index", "ingested", "ingests", "audit")
    | LISTS,
    "index_document": objects(READS, "index", "prepared", "enriched")
    | objects(WRITES, "index", "prepared", "enriched", "audit")
    | objects(DELETES, "prepared")
    | LISTS
    | {EMBEDS},
    "graph_query": objects(READS, "index") | LISTS,
    "facets": objects(READS, "index") | LISTS,
    "extract_citations": set(),
}


@pytest.mark.parametrize("folder", ROLES)
def test_a_function_may_do_what_it_does_and_nothing_else(shipped: Synthesis, folder: str) -> None:
    assert allowed(shipped, folder) == XRAY | own_logs(shipped, folder) | ROLES[folder]


def test_the_function_that_is_told_of_uploads_may_start_the_workflow_and_nothing_else(shipped: Synthesis) -> None:
    machine = f"<{shipped.machine('Machine').id}>"
    assert allowed(shipped, "ingest_start") == XRAY | own_logs(shipped, "ingest_start") | {
        ("states:StartExecution", machine),
        ("sqs:SendMessage", f"<{shipped.one('AWS::SQS::Queue').id}.Arn>"),
    }


def test_an_upload_that_is_handed_to_nobody_is_kept_for_the_operator(each: Synthesis) -> None:
    queue = each.one("AWS::SQS::Queue")
    arn = {"Fn::GetAtt": [queue.id, "Arn"]}
    (target,) = each.rule_for("ingest_start").properties["Targets"]
    assert target["DeadLetterConfig"] == {"Arn": arn}
    assert each.async_invocation("ingest_start")["DestinationConfig"] == {"OnFailure": {"Destination": arn}}
    assert queue.properties["SqsManagedSseEnabled"] is True
    assert queue.properties["MessageRetentionPeriod"] == 14 * 24 * 3600
    statements = each.one("AWS::SQS::QueuePolicy").properties["PolicyDocument"]["Statement"]
    assert {(s["Effect"], json.dumps(s["Principal"]), s["Action"]) for s in statements} == {
        ("Deny", '{"AWS": "*"}', "sqs:*"),
        ("Allow", '{"Service": "events.amazonaws.com"}', "sqs:SendMessage"),
    }


@pytest.mark.parametrize("folder", ["retrieve", "enrich_schema", "get_document_summary"])
def test_those_who_ask_a_model_may_call_the_small_one(shipped: Synthesis, folder: str) -> None:
    models = {resource.rsplit("/", 1)[-1] for action, resource in allowed(shipped, folder) if "bedrock" in action}
    embedding = set() if folder == "get_document_summary" else {"amazon.titan-embed-text-v2:0"}
    assert models == {"us.amazon.nova-micro-v1:0", "amazon.nova-micro-v1:0"} | embedding


def test_the_workflow_may_run_its_functions_and_itself(shipped: Synthesis) -> None:
    may = {(action, resource) for action, resource, _ in shipped.permissions("RoleDefaultPolicy")}
    watches = ("states:DescribeExecution", "states:StopExecution")
    assert {pair for pair in may if pair[1] != "*"} == {
        *(
            ("lambda:InvokeFunction", f"<{shipped.function(folder).id}.Arn>")
            for folder in ("ingest_plan", "ingest_document", "ingest_commit")
        ),
        ("states:StartExecution", RUNS.replace(":execution:", ":stateMachine:")),
        *((action, f"{RUNS}{each}*") for action in watches for each in ":/"),
        *objects(READS, "ingests"),
    }


def test_uploads_below_incoming_are_told_and_nothing_else(each: Synthesis) -> None:
    rule = each.rule_for("ingest_start").properties
    assert rule["EventPattern"]["source"] == ["aws.s3"]
    assert set(rule["EventPattern"]["detail-type"]) == {"Object Created", "Object Deleted"}
    assert rule["EventPattern"]["detail"]["object"] == {"key": [{"prefix": "incoming/"}]}
    assert flat(rule["EventPattern"]["detail"]["bucket"]["name"][0]) == f"<{each.prefix}-Data.IndexBucket>"
    told = each.one("AWS::S3::Bucket", stack="Data").properties["NotificationConfiguration"]
    assert told == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}


def definition(synthesis: Synthesis) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(flat(synthesis.machine("Machine").properties["DefinitionString"]))
    return found


def test_the_workflow_is_deployed_as_it_is_defined(each: Synthesis) -> None:
    states = definition(each)["States"]
    assert states[PREPARE]["MaxConcurrency"] == 4
    prepared = states[PREPARE]["ItemProcessor"]["States"]
    assert prepared[BATCH]["TimeoutSeconds"] > each.function("ingest_document").properties["Timeout"]
    assert f"<{each.function('ingest_document').id}.Arn>" == prepared[BATCH]["Parameters"]["FunctionName"]
    assert ONE in json.dumps(prepared)
    assert each.machine("Machine").properties["LoggingConfiguration"]["IncludeExecutionData"] is False


def test_all_of_a_batch_is_handed_on() -> None:
    assert set(BATCH_FIELDS) == {to_camel(name) for name in Batch.model_fields}


def test_no_null_of_the_definition_is_lost(shipped: Synthesis) -> None:
    """The CDK leaves nulls out of JSON: a definition that needs one would mean something else."""
    assert "null" not in json.dumps(definition(shipped))
    assert definition(shipped)["States"][PREPARE]["ResultPath"] == "$.prepared"


def test_the_functions_of_the_ingest_read_their_settings(shipped: Synthesis) -> None:
    for folder in ("ingest_plan", "ingest_document", "ingest_commit"):
        settings = IngestSettings.read(shipped.environment(folder))
        recipe = settings.recipe("any")
        assert (recipe.embedding_model_id, recipe.dimensions) == ("amazon.titan-embed-text-v2:0", 1024)
        assert recipe.chunks == ChunkOptions()
        assert (recipe.enrichment.entities, recipe.enrichment.model_id) == ("rules", "")
    assert IngestStartSettings.read(shipped.environment("ingest_start")).quiet_s == 30


def test_the_functions_for_integrators_read_their_settings(shipped: Synthesis) -> None:
    retrieve = RetrieveSettings.read(shipped.environment("retrieve"))
    assert retrieve.writing_model_id == "us.amazon.nova-micro-v1:0"
    assert RetrieveSettings.read(shipped.environment("enrich_schema")) == retrieve
    assert IndexDocumentSettings.read(shipped.environment("index_document")).recipe("any").dimensions == 1024
    assert SummarySettings.read(shipped.environment("get_document_summary")).embedding_dimensions == 1024
    for folder in ("graph_query", "facets"):
        assert IndexSettings.read(shipped.environment(folder)).embedding_dimensions == 1024


def test_those_who_call_the_functions_have_a_policy_for_it(shipped: Synthesis) -> None:
    policy = shipped.one("AWS::IAM::ManagedPolicy", stack="Integrators").properties
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == "lambda:InvokeFunction"
    functions = ("retrieve", "index_document", "get_document_summary", "extract_citations", "graph_query", "facets")
    assert {flat(arn) for arn in statement["Resource"]} == {
        f"<{shipped.function(folder).id}.Arn>" for folder in (*functions, "enrich_schema")
    }
    names = {shipped.function(folder).properties["FunctionName"] for folder in functions}
    assert "Cicada-get-document-summary" in names
