"""The functions: what they are told, what they run on, and what is known of them afterwards."""

from __future__ import annotations

import pytest

from cicada.settings import (
    AnswerSettings,
    AuthorizerSettings,
    DeliverySettings,
    IndexMaintenanceSettings,
    MessageProcessorSettings,
)
from stacks.findings import flat
from tests.template.templates import FUNCTIONS, ROOT, Synthesis

CALLBACK = "https://Cicada-Data-ApiId.execute-api.<AWS::Region>.<AWS::URLSuffix>/live"


def test_every_folder_of_lambdas_is_a_function(shipped: Synthesis) -> None:
    folders = {path.name for path in (ROOT / "lambdas").iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert folders == FUNCTIONS.keys()
    assert len(list(shipped.resources("AWS::Lambda::Function"))) == len(folders)


@pytest.mark.parametrize("folder", FUNCTIONS)
def test_functions_run_on_arm_and_are_traced_and_logged_as_json(shipped: Synthesis, folder: str) -> None:
    function = shipped.function(folder).properties
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]
    assert function["Handler"] == "handler.handler"
    assert function["TracingConfig"] == {"Mode": "Active"}
    logging = function["LoggingConfig"]
    assert (logging["LogFormat"], logging["ApplicationLogLevel"], logging["SystemLogLevel"]) == ("JSON", "INFO", "INFO")
    assert flat(logging["LogGroup"]).startswith(f"<{FUNCTIONS[folder]}Logs")


def test_the_log_level_reaches_function_and_service(full: Synthesis) -> None:
    for folder in FUNCTIONS:
        assert full.environment(folder)["LOG_LEVEL"] == "DEBUG"
        assert full.function(folder).properties["LoggingConfig"]["ApplicationLogLevel"] == "DEBUG"


def test_a_frame_is_answered_before_api_gateway_gives_up(shipped: Synthesis) -> None:
    for folder in ("message_processor", "connection", "authorizer"):
        assert shipped.function(folder).properties["Timeout"] < 29


@pytest.mark.parametrize("folder", FUNCTIONS)
def test_every_function_says_whose_it_is(shipped: Synthesis, folder: str) -> None:
    environment = shipped.environment(folder)
    assert environment["POWERTOOLS_SERVICE_NAME"] == "cicada"
    assert environment["POWERTOOLS_METRICS_NAMESPACE"] == "Cicada"


@pytest.mark.parametrize("folder", ["message_processor", "answer", "exhausted"])
def test_functions_that_deliver_know_the_table_and_the_callback(shipped: Synthesis, folder: str) -> None:
    environment = shipped.environment(folder)
    assert environment["AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI"] == CALLBACK
    assert DeliverySettings.read(environment).requests_table.startswith("Cicada-Data:")


def test_the_message_processor_reads_its_settings(shipped: Synthesis, local: Synthesis) -> None:
    settings = MessageProcessorSettings.read(shipped.environment("message_processor"))
    assert settings.state_machine_arn == f"<{shipped.one('AWS::StepFunctions::StateMachine').id}>"
    assert settings.auth == "jwt"
    assert settings.retention_s == 7 * 24 * 3600
    assert MessageProcessorSettings.read(local.environment("message_processor")).auth == "none"


def test_the_answer_worker_reads_its_settings(shipped: Synthesis) -> None:
    settings = AnswerSettings.read(shipped.environment("answer"))
    assert settings.index_bucket == "Cicada-Data-IndexBucket"
    assert settings.generation_model_id == "us.amazon.nova-lite-v1:0"
    assert settings.direct_model_id == "us.amazon.nova-micro-v1:0"
    assert settings.embedding_model_id == "amazon.titan-embed-text-v2:0"
    assert settings.embedding_dimensions == 1024
    assert (settings.max_tokens, settings.temperature, settings.top_p) == (2048, 0.2, None)
    assert (settings.top_k, settings.min_score, settings.prompt_passages) == (20, 0.5, 10)


def test_a_model_that_refuses_temperature_is_sent_none(full: Synthesis) -> None:
    settings = AnswerSettings.read(full.environment("answer"))
    assert (settings.temperature, settings.top_p) == (None, 0.9)


def test_the_authorizer_reads_its_settings(shipped: Synthesis, full: Synthesis) -> None:
    settings = AuthorizerSettings.read(shipped.environment("authorizer"))
    assert settings.jwt_issuer == "https://issuer.example.org/"
    assert settings.jwt_audience == "cicada"
    assert settings.jwks_url == "https://issuer.example.org/.well-known/jwks.json"
    assert settings.origins() == frozenset()
    with_origins = AuthorizerSettings.read(full.environment("authorizer"))
    assert with_origins.jwks_url == "https://keys.example.org/"
    assert with_origins.origins() == {"https://a.example", "https://b.example"}


def test_no_variable_is_set_that_nobody_reads(shipped: Synthesis) -> None:
    shared = {"LOG_LEVEL", "POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE"}
    callback = {"AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI"}
    read = {
        "message_processor": callback | {name.upper() for name in MessageProcessorSettings.model_fields},
        "answer": callback | {"OPENBLAS_NUM_THREADS"} | {name.upper() for name in AnswerSettings.model_fields},
        "exhausted": callback | {name.upper() for name in DeliverySettings.model_fields},
        "index_maintenance": {"OPENBLAS_NUM_THREADS"}
        | {name.upper() for name in IndexMaintenanceSettings.model_fields},
        "authorizer": {name.upper() for name in AuthorizerSettings.model_fields},
        "connection": set(),
    }
    for folder, names in read.items():
        assert shipped.environment(folder).keys() <= shared | names


def test_data_outlives_its_stack_unless_the_deployer_says_otherwise(shipped: Synthesis, full: Synthesis) -> None:
    for type in ("AWS::S3::Bucket", "AWS::DynamoDB::Table"):
        assert shipped.one(type).rest["DeletionPolicy"] == "Retain"
        assert full.one(type).rest["DeletionPolicy"] == "Delete"


def test_the_bucket_is_private_versioned_and_encrypted(shipped: Synthesis, full: Synthesis) -> None:
    for synthesis, algorithm in ((shipped, "AES256"), (full, "aws:kms")):
        bucket = synthesis.one("AWS::S3::Bucket").properties
        assert all(bucket["PublicAccessBlockConfiguration"].values())
        assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
        (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert encryption["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == algorithm


def test_a_key_of_ones_own_encrypts_the_table_and_every_log(full: Synthesis) -> None:
    assert full.one("AWS::DynamoDB::Table").properties["SSESpecification"]["SSEType"] == "KMS"
    assert full.one("AWS::KMS::Key").properties["EnableKeyRotation"]
    assert all("KmsKeyId" in group.properties for group in full.resources("AWS::Logs::LogGroup"))
