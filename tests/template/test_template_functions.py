"""The functions: what they are told, what they run on, and what is known of them afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cicada.rights import ConfiguredAccess
from cicada.settings import (
    AnswerSettings,
    AuthorizerSettings,
    CorpusSettings,
    DeliverySettings,
    IndexMaintenanceSettings,
    MessageProcessorSettings,
    PageFilesSettings,
    RecordSettingsSettings,
    RecoverySettings,
)
from cicada.usage.limits import Limits, UsageLimits
from stacks.findings import flat
from tests.template.templates import FUNCTIONS, OPTIONAL_FUNCTIONS, ROOT, Synthesis

CALLBACK = "https://<Cicada-Data.ApiId>.execute-api.<AWS::Region>.<AWS::URLSuffix>/live"


ONLY_WHERE_ASKED_FOR = {"agent_tools", *OPTIONAL_FUNCTIONS}


def test_every_folder_of_lambdas_is_a_function(shipped: Synthesis) -> None:
    folders = {path.name for path in (ROOT / "lambdas").iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert folders == FUNCTIONS.keys() | ONLY_WHERE_ASKED_FOR
    assert len(list(shipped.resources("AWS::Lambda::Function"))) == len(FUNCTIONS)


@pytest.mark.parametrize("folder", FUNCTIONS)
def test_functions_run_on_arm_and_are_traced_and_logged_as_json(shipped: Synthesis, folder: str) -> None:
    function = shipped.function(folder).properties
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]
    assert function["Handler"] == "handler.handler"
    logging = function["LoggingConfig"]
    # Lambda would drop embedded metrics, which have no level, at any level above INFO.
    assert (logging["LogFormat"], logging["ApplicationLogLevel"]) == ("JSON", "TRACE")
    if folder != "recovery_sweep":
        assert function["TracingConfig"] == {"Mode": "Active"}
        assert logging["SystemLogLevel"] == "INFO"
    assert flat(logging["LogGroup"]).startswith(f"<{FUNCTIONS[folder]}Logs")


def test_the_log_level_reaches_the_logger(full: Synthesis) -> None:
    for folder in FUNCTIONS:
        assert full.environment(folder)["LOG_LEVEL"] == "DEBUG"


def test_a_frame_is_answered_before_api_gateway_gives_up(shipped: Synthesis) -> None:
    for folder in ("message_processor", "corpus", "connection", "authorizer"):
        assert shipped.function(folder).properties["Timeout"] < 29


@pytest.mark.parametrize("folder", FUNCTIONS)
def test_every_function_says_whose_it_is(shipped: Synthesis, folder: str) -> None:
    environment = shipped.environment(folder)
    assert environment["POWERTOOLS_SERVICE_NAME"] == shipped.prefix
    assert environment["POWERTOOLS_METRICS_NAMESPACE"] == "Cicada"


@pytest.mark.parametrize("folder", ["message_processor", "answer", "exhausted", "recovery_sweep"])
def test_functions_that_deliver_know_the_table_and_the_callback(shipped: Synthesis, folder: str) -> None:
    environment = shipped.environment(folder)
    assert environment["AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI"] == CALLBACK
    assert DeliverySettings.read(environment).requests_table.startswith("<Cicada-Data.")


def test_the_message_processor_reads_its_settings(shipped: Synthesis, local: Synthesis) -> None:
    settings = MessageProcessorSettings.read(shipped.environment("message_processor"))
    assert settings.state_machine_arn == f"<{shipped.machine('Workflow').id}>"
    assert settings.auth == "jwt"
    assert settings.retention_s == 7 * 24 * 3600
    assert settings.request_time_s == 300
    assert MessageProcessorSettings.read(local.environment("message_processor")).auth == "none"


def test_limits_reach_those_who_take_questions_and_who_administer(shipped: Synthesis, full: Synthesis) -> None:
    limits = UsageLimits.model_validate_json(full.environment("message_processor")["USAGE_LIMITS"])
    assert limits == UsageLimits(
        user=Limits(requests_minute=6, usd_day=2.5), groups={"readers": Limits(usd_month=100.0)}
    )
    told = json.loads(full.template("Gateway")["Outputs"]["UsageLimits"]["Value"])
    assert told.pop("request") == {"tokens": 60_000, "usd": 0.1}
    assert UsageLimits.model_validate(told) == limits
    assert "USAGE_LIMITS" not in shipped.environment("message_processor")
    assert json.loads(shipped.template("Gateway")["Outputs"]["UsageLimits"]["Value"]).keys() == {"request"}


def test_rules_of_access_reach_every_function_that_reads_and_the_command_line(
    shipped: Synthesis, full: Synthesis
) -> None:
    wanted = ConfiguredAccess(default="nobody", collections={"script": ("readers",)})
    reading = ("answer", "corpus", "retrieve", "facets", "graph_query", "get_document_summary", "enrich_schema")
    for told in (
        *(full.environment(folder)["ACCESS"] for folder in reading),
        full.template("Gateway")["Outputs"]["Access"]["Value"],
    ):
        assert ConfiguredAccess.model_validate_json(told) == wanted
    assert not [folder for folder in reading if "ACCESS" in shipped.environment(folder)]
    assert shipped.template("Gateway")["Outputs"]["Access"]["Value"] == "{}"


def test_the_answer_worker_reads_its_settings(shipped: Synthesis) -> None:
    settings = AnswerSettings.read(shipped.environment("answer"))
    assert settings.index_bucket == "<Cicada-Data.IndexBucket>"
    assert settings.generation_model_id == "us.amazon.nova-lite-v1:0"
    assert settings.direct_model_id == "us.amazon.nova-micro-v1:0"
    assert settings.embedding_model_id == "amazon.titan-embed-text-v2:0"
    assert settings.embedding_dimensions == 1024
    assert (settings.max_tokens, settings.temperature, settings.top_p) == (2048, 0.2, None)
    assert settings.direct_max_tokens == 512
    assert (settings.top_k, settings.min_score, settings.prompt_passages) == (20, 0.5, 10)
    assert (settings.request_time_s, settings.request_tokens, settings.request_cost_usd) == (300, 120_000, 0.4)


def test_what_is_kept_of_answers_is_the_deployers_choice(shipped: Synthesis, full: Synthesis) -> None:
    by_default = AnswerSettings.read(shipped.environment("answer"))
    assert (by_default.cache_enabled, by_default.cache_sharing) == (True, "user")
    assert (by_default.cache_ttl_s, by_default.cache_max_entries) == (7 * 24 * 3600, 1000)
    assert (by_default.cache_replay_threshold, by_default.cache_near_threshold) == (None, None)
    assert (by_default.conversation_enabled, by_default.conversation_max_age_s) == (True, 12 * 3600)
    assert (by_default.conversation_max_turns, by_default.conversation_max_tokens) == (6, 2000)
    chosen = AnswerSettings.read(full.environment("answer"))
    assert (chosen.cache_enabled, chosen.cache_sharing) == (False, "tenant")
    assert (chosen.cache_ttl_s, chosen.cache_max_entries) == (2 * 24 * 3600, 50)
    assert (chosen.cache_replay_threshold, chosen.cache_near_threshold) == (0.95, 0.8)
    assert (chosen.conversation_enabled, chosen.conversation_max_age_s) == (False, 3600)
    assert (chosen.conversation_max_turns, chosen.conversation_max_tokens) == (3, 500)


def test_a_model_that_refuses_temperature_is_sent_none(full: Synthesis) -> None:
    settings = AnswerSettings.read(full.environment("answer"))
    assert (settings.temperature, settings.top_p) == (None, 0.9)


def test_the_authorizer_reads_its_settings(shipped: Synthesis, full: Synthesis) -> None:
    settings = AuthorizerSettings.read(shipped.environment("authorizer"))
    assert settings.jwt_issuer.startswith("<Cicada-SignIn.PublishOutputFnGetAttUsers0A0EEA89ProviderURL")
    assert settings.jwt_audience.startswith("<Cicada-SignIn.PublishOutputRefUsersClient")
    assert settings.jwks_url == f"{settings.jwt_issuer}/.well-known/jwks.json"
    assert settings.origins() == settings.groups() == frozenset()
    assert settings.audiences() == {settings.jwt_audience}
    assert (settings.groups_claim, settings.token_in_url) == ("cognito:groups", False)
    with_origins = AuthorizerSettings.read(full.environment("authorizer"))
    assert with_origins.jwt_issuer == "https://issuer.example.org/"
    assert with_origins.jwt_audience == "cicada"
    assert with_origins.jwks_url == "https://keys.example.org/"
    page = "https://ask.example.org"  # the deployed page's own
    assert with_origins.origins() == {"https://a.example", "https://b.example", page}
    assert (settings.tenant_claim, with_origins.tenant_claim) == ("", "org_id")
    assert with_origins.audiences() == {"cicada", "cicada-page"}
    assert (with_origins.groups_claim, with_origins.token_in_url) == ("roles", True)
    assert with_origins.groups() == {"readers", "Cicada admins"}


def test_the_authorizer_asks_the_issuer_where_its_keys_are(make: Callable[[dict[str, Any]], Synthesis]) -> None:
    auth = {"mode": "oidc", "issuer": "https://issuer.example.org/", "audience": "cicada"}
    environment = make({"auth": auth, "local": True}).environment("authorizer")
    assert "JWKS_URL" not in environment
    assert AuthorizerSettings.read(environment).jwks_url == ""


def test_no_variable_is_set_that_nobody_reads(shipped: Synthesis) -> None:
    shared = {"LOG_LEVEL", "POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE"}
    callback = {"AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI"}
    read = {
        "message_processor": callback | {name.upper() for name in MessageProcessorSettings.model_fields},
        "answer": callback | {"OPENBLAS_NUM_THREADS"} | {name.upper() for name in AnswerSettings.model_fields},
        "corpus": {"OPENBLAS_NUM_THREADS"} | {name.upper() for name in CorpusSettings.model_fields},
        "exhausted": callback | {name.upper() for name in DeliverySettings.model_fields},
        "recovery_sweep": callback | {name.upper() for name in RecoverySettings.model_fields},
        "index_maintenance": {"OPENBLAS_NUM_THREADS"}
        | {name.upper() for name in IndexMaintenanceSettings.model_fields},
        "authorizer": {name.upper() for name in AuthorizerSettings.model_fields},
        "connection": set(),
        "page_files": {name.upper() for name in PageFilesSettings.model_fields},
        "record_settings": {name.upper() for name in RecordSettingsSettings.model_fields},
    }
    for folder, names in read.items():
        assert shipped.environment(folder).keys() <= shared | names


def test_data_outlives_its_stack_unless_the_deployer_says_otherwise(shipped: Synthesis, full: Synthesis) -> None:
    for type, stack in (("AWS::S3::Bucket", "Data"), ("AWS::S3::Bucket", "Page"), ("AWS::DynamoDB::Table", "Data")):
        assert shipped.one(type, stack=stack).rest["DeletionPolicy"] == "Retain"
        assert full.one(type, stack=stack).rest["DeletionPolicy"] == "Delete"


def test_the_bucket_is_private_versioned_and_encrypted(shipped: Synthesis, full: Synthesis) -> None:
    for synthesis, algorithm in ((shipped, "AES256"), (full, "aws:kms")):
        bucket = synthesis.one("AWS::S3::Bucket", stack="Data").properties
        assert all(bucket["PublicAccessBlockConfiguration"].values())
        assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
        (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert encryption["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == algorithm


def test_a_key_of_ones_own_encrypts_the_table_and_every_log(full: Synthesis) -> None:
    assert full.one("AWS::DynamoDB::Table").properties["SSESpecification"]["SSEType"] == "KMS"
    assert full.one("AWS::KMS::Key").properties["EnableKeyRotation"]
    assert all("KmsKeyId" in group.properties for group in full.resources("AWS::Logs::LogGroup"))
