"""What a deployer may write, and what is said about the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stacks.context import documented, parse, read
from stacks.describe import main as describe_main
from stacks.settings import LOCAL_ACCOUNT, ContextInvalid, Settings
from stacks.settings_record import record, written
from tests.template.templates import ROOT

AUTH = {"mode": "oidc", "issuer": "https://issuer.example.org/", "audience": "cicada"}


def complaint(document: object) -> str:
    with pytest.raises(ContextInvalid) as refused:
        parse(document, source="mine.json")
    return str(refused.value)


def test_the_shipped_settings_need_nothing_filled_in() -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    assert read(context, root=ROOT).auth.mode == "cognito"


def test_the_shipped_settings_are_the_defaults(shipped_settings: dict[str, Any]) -> None:
    assert parse(shipped_settings, source="shipped") == parse({}, source="bare")


def test_every_setting_is_shipped(shipped_settings: dict[str, Any]) -> None:
    def paths(document: dict[str, Any], prefix: str = "") -> set[str]:
        found = set()
        for name, value in document.items():
            nested = isinstance(value, dict) and name != "tags"
            found |= {f"{prefix}{name}"} | (paths(value, f"{prefix}{name}.") if nested else set())
        return found

    context = json.loads((ROOT / "cdk.json").read_text())["context"]["cicada"]
    documented_paths = {entry.path for entry in documented()}
    assert documented_paths - paths(context) == {"local"}


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()
    for entry in documented():
        assert f"| `{entry.path}` | `{entry.default}` | {entry.meaning} |" in page


def test_no_authorizer_is_refused_outside_the_local_cloud() -> None:
    message = complaint({"auth": {"mode": "none"}})
    assert "would let anybody use this deployment at your cost" in message
    assert "local cloud only" in message


def test_no_authorizer_is_accepted_by_the_local_cloud() -> None:
    assert parse({"auth": {"mode": "none"}, "local": True}, source="local").auth.mode == "none"


def test_a_local_issuer_stands_for_cognito_in_the_local_cloud_only() -> None:
    auth = {"mode": "cognito", "issuer": "http://localhost:4566/cognito"}
    assert parse({"auth": auth, "local": True}, source="local").auth.issuer == "http://localhost:4566/cognito"
    assert 'auth.issuer: is for mode "oidc"' in complaint({"auth": auth})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"auth": "none"}, "auth: must be an object with settings of its own"),
        ({"auth": {"mode": "anyone"}}, "auth.mode: "),
        ({"auth": {"mode": "oidc"}}, 'auth: issuer: is empty: mode "oidc" needs it'),
        ({"auth": AUTH | {"audience": None}}, 'auth: audience: is empty: mode "oidc" needs it'),
        (
            {"auth": {"audience": "cicada"}},
            'auth: audience: is for mode "oidc": set auth.mode to that, or leave audience null',
        ),
        ({"auth": {"clientId": "cicada"}}, "auth: clientId: is for mode"),
        ({"auth": {"jwksUrl": "https://keys.example.org"}}, "auth: jwksUrl: is for mode"),
        ({"auth": {"scopes": ["email"]}}, "auth: scopes: must contain openid"),
        ({"auth": {"scopes": ["openid", "offline_access"]}}, "and not offline_access (it gives refresh tokens without"),
        ({"auth": AUTH | {"scopes": ["openid", "two words"]}}, "auth.scopes.1: "),
        ({"auth": AUTH | {"requiredGroups": ["readers"]}}, "auth: requiredGroups: needs groupsClaim"),
        ({"auth": {"requiredGroups": ["readers"]}}, "auth: requiredGroups: readers must be in auth.groups"),
        ({"auth": AUTH | {"groupsClaim": "groups", "requiredGroups": ["a,b"]}}, "auth.requiredGroups.0: "),
        ({"auth": {"groups": ["two words"]}}, "auth.groups.0: "),
        ({"auth": {"domainPrefix": "my-cognito"}}, "auth.domainPrefix: must not contain 'cognito'"),
        ({"auth": {"domainPrefix": "Mine"}}, "auth.domainPrefix: "),
        ({"stackPrefix": "MyAws", "auth": {}}, "auth.domainPrefix: give one. It cannot be made of stackPrefix"),
        ({"auth": AUTH | {"issuer": "issuer.example.org"}}, "auth.issuer: must be a URL"),
        ({"auth": AUTH | {"issuer": "http://issuer.example.org"}}, "auth.issuer: must begin with https://"),
        ({"auth": AUTH | {"jwksUrl": "http://keys.example.org"}}, "auth.jwksUrl: must begin with https://"),
        ({"auth": AUTH | {"audience": " "}}, "auth.audience: is empty"),
        ({"auth": AUTH | {"allowedOrigins": ["https://a.example/"]}}, "auth.allowedOrigins.0: must be an origin"),
        ({"auth": AUTH | {"allowedOrigins": ["https://A.example"]}}, "auth.allowedOrigins.0: must be an origin"),
        (
            {"auth": AUTH | {"allowedOrigins": ["https://a.example,https://b.example"]}},
            "auth.allowedOrigins.0: must be",
        ),
        (
            {"auth": AUTH | {"allowedOrigins": ["https://a.example:443"]}},
            "allowedOrigins.0: must not end with :443",
        ),
        ({"auth": AUTH | {"issuer": "https://a.example;script-src *"}}, "auth.issuer: must be a URL"),
        ({"auth": AUTH | {"issuer": "https://mara:secret@a.example/"}}, "auth.issuer: must be a URL"),
        ({"auth": AUTH | {"audience": "one,two"}}, "auth.audience: "),
        ({"stackPrefx": "Mine"}, "stackPrefx: there is no such setting"),
        ({"models": {"modelId": "x.y"}}, "models.modelId: there is no such setting"),
        ({"models": {"generationModelId": "nova lite"}}, "models.generationModelId: "),
        ({"models": {"embeddingDimensions": 768}}, "offers 256, 512 and 1024 dimensions, not 768"),
        (
            {"models": {"embeddingModelId": "amazon.titan-embed-text-v1"}},
            "unsupported embedding model amazon.titan-embed-text-v1; supported: amazon.titan-embed-text-v2:0, ",
        ),
        ({"models": {"embeddingModelId": "us.cohere.embed-v4:0", "embeddingDimensions": 384}}, "not 384"),
        ({"models": {"embeddingModelId": "cohere.embed-english-v3", "embeddingDimensions": 512}}, "not 512"),
        ({"models": {"temperature": 1.5}}, "models.temperature: "),
        ({"retrieval": {"topK": 0}}, "retrieval.topK: "),
        ({"retrieval": {"minScore": 2}}, "retrieval.minScore: "),
        ({"retrieval": {"engine": "opensearch"}}, "retrieval.engine: "),
        ({"retrieval": {"engine": "kendra"}}, "retrieval: kendraIndexId: is for"),
        ({"retrieval": {"kendraIndexId": "1" * 36}}, "retrieval: kendraIndexId: is for"),
        ({"retrieval": {"engine": "kendra", "kendraIndexId": "mine"}}, "retrieval.kendraIndexId: "),
        ({"retrieval": {"engineBudgetS": 0}}, "retrieval.engineBudgetS: "),
        ({"knowledge": {"extractor": "oracle"}}, "knowledge.extractor: "),
        ({"knowledge": {"minIntentionConfidence": 1.5}}, "knowledge.minIntentionConfidence: "),
        ({"knowledge": {"contextTokens": 10}}, "knowledge.contextTokens: "),
        (
            {"knowledge": {"selectorModelId": "mine/chooser"}},
            "knowledge.selectorModelId: no endpoint of models.endpoints",
        ),
        ({"profiles": {"maxProfiles": 0}}, "profiles.maxProfiles: "),
        ({"profiles": {"maxRecordKib": 400}}, "profiles.maxRecordKib: "),
        ({"profiles": {"maxRecordKib": 128}}, "profiles: maxRecordKib: must be at least 346: a profile with maxFields"),
        (
            {"profiles": {"maxFields": 100, "maxRecordKib": 384}},
            "profiles: maxFields: a full profile would take 505 KiB",
        ),
        (
            {"profiles": {"maxHistoryEntries": 10, "maxDeletedHistoryEntries": 11}},
            "profiles: maxDeletedHistoryEntries: must not be above maxHistoryEntries",
        ),
        ({"budget": {"requestTimeS": 5}}, "budget.requestTimeS: "),
        ({"budget": {"requestTokens": 28_000}}, "must be at least 28192"),
        (
            {"retrieval": {"pipeline": "rerank"}, "budget": {"requestTokens": 56_000}},
            "must be at least 56384. A call may use an eighth of it",
        ),
        (
            {"knowledge": {"enabled": True}, "budget": {"requestTokens": 56_000}},
            "must be at least 56384. A call may use an eighth of it",
        ),
        ({"budget": {"requestCostUsd": 0.003}}, "one of us.amazon.nova-lite-v1:0 can cost 0.0008"),
        ({"budget": {"requestCostUsd": 0}}, "budget.requestCostUsd: "),
        ({"citations": {"judgeCostUsd": 0}}, "citations.judgeCostUsd: "),
        ({"citations": {"judge": "nobody"}}, "citations.judge: "),
        ({"cache": {"sharing": "everybody"}}, "cache.sharing: "),
        ({"cache": {"sharing": "tenant"}}, 'cache.sharing: "tenant" needs auth.tenantClaim'),
        ({"cache": {"replayThreshold": 0.8, "nearThreshold": 0.9}}, "must not be above replayThreshold"),
        ({"cache": {"nearThreshold": 0.9}}, "give both or neither"),
        ({"conversation": {"maxAgeHours": 0}}, "conversation.maxAgeHours: "),
        ({"recovery": {"sweepMinutes": 0}}, "recovery.sweepMinutes: "),
        ({"auth": AUTH | {"tenantClaim": " "}}, "auth.tenantClaim: is empty"),
        ({"usageLimits": {"user": {"usdHour": 1}}}, "usageLimits.user.usdHour"),
        ({"usageLimits": {"user": {"requestsMinute": 1.5}}}, "user: requestsMinute: must be a whole number"),
        ({"usageLimits": {"user": {"requestsMinute": 0}}}, "usageLimits.user.requestsMinute: "),
        (
            {"usageLimits": {"user": {"usdDay": 0.3}}},
            "usageLimits.user.usdDay: must be at least 0.4: a question reserves so much before it is answered, by "
            "budget.requestCostUsd",
        ),
        (
            {"usageLimits": {"deployment": {"tokensMonth": 100_000}}},
            "usageLimits.deployment.tokensMonth: must be at least 120000",
        ),
        ({"usageLimits": {"groups": {"writers": {"usdDay": 5}}}}, "usageLimits: groups need auth.groupsClaim"),
        (
            {"auth": {}, "usageLimits": {"members": {"writers": {"usdDay": 5}}}},
            "usageLimits: writers must be in auth.groups, which the stacks make",
        ),
        ({"access": {"default": "nobody"}}, "access: groups need auth.groupsClaim"),
        ({"access": {"collections": {"notes": ["gms"]}}}, "access: groups need auth.groupsClaim"),
        (
            {"auth": {}, "access": {"collections": {"notes": ["gms"]}}},
            "access: gms must be in auth.groups, which the stacks make",
        ),
        ({"access": {"collections": {"notes": "gms"}}}, "access.collections.notes: "),
        ({"access": {"collections": {"no tes": []}}}, "access.collections.no tes"),
        ({"throttling": {"ratePerS": "fast"}}, "throttling.ratePerS: "),
        ({"ingest": {"chunkSize": 150}}, "ingest.overlap: is 200, and must be less than chunkSize, which is 150"),
        ({"ingest": {"chunkSize": 4_000}}, "ingest.chunkSize: "),
        (
            {"ingest": {"collections": {"contracts": {"chunkSize": 100, "overlap": 100}}}},
            "ingest.collections.contracts.overlap: is 100, and must be less than chunkSize, which is 100",
        ),
        ({"logRetentionDays": 8}, "logRetentionDays: must be one of 1, 3, 5, 7"),
        ({"retentionDays": 0}, "retentionDays: "),
        ({"alarmEmail": "nobody"}, "alarmEmail: "),
        ({"onDelete": "keep"}, "onDelete: "),
        ({"stackPrefix": "1st"}, "stackPrefix: "),
        ({"customerManagedKey": "yes"}, "customerManagedKey: "),
    ],
)
def test_a_wrong_setting_is_named(change: dict[str, Any], said: str) -> None:
    message = complaint({"auth": AUTH} | change)
    assert message.startswith("mine.json: not ready to deploy.")
    assert said in message


def test_all_that_is_wrong_is_said_at_once() -> None:
    message = complaint({"auth": AUTH, "retentionDays": 0, "logLevel": "LOUD", "colour": "red"})
    assert all(name in message for name in ("retentionDays: ", "logLevel: ", "colour: "))


def test_a_complaint_says_what_the_setting_means() -> None:
    assert "(minimum similarity of a returned passage)" in complaint({"auth": AUTH, "retrieval": {"minScore": -1}})


def test_groups_are_read_from_the_claim_that_the_issuer_uses() -> None:
    def groups_in(auth: dict[str, Any]) -> str | None:
        return parse({"auth": auth}, source="mine").auth.groups_in

    assert groups_in({}) == "cognito:groups"
    assert groups_in(AUTH) is None
    assert groups_in(AUTH | {"groupsClaim": "roles"}) == "roles"
    with_another = {"groupsClaim": "custom:staff", "requiredGroups": ["readers"]}
    assert groups_in(with_another) == "custom:staff"


def test_a_file_can_hold_the_settings(tmp_path: Path) -> None:
    (tmp_path / "staging.json").write_text(json.dumps({"auth": AUTH, "stackPrefix": "Staging"}))
    assert read({"settings": "staging.json", "cicada": {}}, root=tmp_path).stack_prefix == "Staging"


def test_a_file_that_is_no_settings_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    for name in ("broken.json", "missing.json"):
        with pytest.raises(ContextInvalid, match=name):
            read({"settings": name}, root=tmp_path)


def settings_with(**models: str) -> Settings:
    return parse({"auth": AUTH, "models": models}, source="mine")


@pytest.mark.parametrize(
    ("model_id", "region"),
    [
        ("us.amazon.nova-lite-v1:0", "eu-central-1"),
        ("eu.amazon.nova-lite-v1:0", "us-east-1"),
        ("us.amazon.nova-lite-v1:0", "us-gov-west-1"),
        ("apac.amazon.nova-lite-v1:0", "eu-west-1"),
    ],
)
def test_a_profile_of_another_geography_is_refused_before_anything_is_deployed(model_id: str, region: str) -> None:
    with pytest.raises(ContextInvalid, match=f"models.generationModelId: {model_id} cannot be called from {region}"):
        settings_with(generationModelId=model_id).for_environment(account="1", region=region)


@pytest.mark.parametrize("region", ["ap-south-1", "us-east-1", None])
@pytest.mark.parametrize("model_id", ["in.amazon.nova-lite-v1:0", "in.new.model-1", "mx.anthropic.claude-haiku-5-5"])
def test_a_profile_of_an_unknown_geography_is_refused(model_id: str, region: str | None) -> None:
    with pytest.raises(
        ContextInvalid, match=rf"models.directModelId: {model_id} is an inference profile of .*global\."
    ):
        models = {"generationModelId": "global.amazon.nova-2-lite-v1:0", "directModelId": model_id}
        settings_with(**models).for_environment(account="1", region=region)


@pytest.mark.parametrize("model_id", ["deepseek.v3.2", "zai.glm-4.7", "newcomer.model-1.5", "local.extractive"])
def test_a_models_own_id_may_have_dots(model_id: str) -> None:
    assert settings_with(directModelId=model_id).for_environment(account="1", region="us-east-1")


@pytest.mark.parametrize(
    "setting",
    [
        "retrieval.rerankerModelId",
        "retrieval.expansionModelId",
        "knowledge.selectorModelId",
        "knowledge.extractorModelId",
        "ingest.enrichmentModelId",
    ],
)
def test_every_other_model_is_looked_at_too(setting: str) -> None:
    group, name = setting.split(".")
    settings = parse({"auth": AUTH, group: {name: "eu.amazon.nova-micro-v1:0"}}, source="mine")
    with pytest.raises(ContextInvalid, match=f"{setting}: eu.amazon.nova-micro-v1:0 cannot be called from us-east-1"):
        settings.for_environment(account="1", region="us-east-1")


@pytest.mark.parametrize(
    ("model_id", "region", "there"),
    [
        ("amazon.rerank-v1:0", "us-west-2", True),
        ("amazon.rerank-v1:0", "us-east-1", False),
        ("cohere.rerank-v3-5:0", "us-east-1", True),
        ("cohere.rerank-v3-5:0", "us-east-2", False),
    ],
)
def test_a_re_ranking_model_is_refused_where_it_is_not(model_id: str, region: str, there: bool) -> None:
    settings = parse({"auth": AUTH, "retrieval": {"rerankerModelId": model_id}}, source="mine")
    if there:
        assert settings.for_environment(account="1", region=region) is settings
        return
    with pytest.raises(ContextInvalid, match=rf"retrieval.rerankerModelId: {model_id} is known in ap-northeast-1, .*"):
        settings.for_environment(account="1", region=region)


def test_the_refusal_names_the_profiles_that_a_region_can_call() -> None:
    with pytest.raises(ContextInvalid, match=r"begins with apac\. or jp\. or global\."):
        settings_with().for_environment(account="1", region="ap-northeast-1")


@pytest.mark.parametrize("region", ["us-east-2", "us-west-2", None])
def test_the_defaults_suit_their_geography(region: str | None) -> None:
    assert settings_with().for_environment(account="1", region=region)


def test_a_models_own_id_and_a_global_profile_go_everywhere() -> None:
    settings = settings_with(generationModelId="global.amazon.nova-2-lite-v1:0", directModelId="amazon.nova-micro-v1:0")
    assert settings.for_environment(account="1", region="sa-east-1")


def test_settings_of_the_local_cloud_are_refused_by_an_account() -> None:
    local = parse({"auth": {"mode": "none"}, "local": True}, source="local")
    with pytest.raises(ContextInvalid, match="local cloud and not for AWS account 111122223333"):
        local.for_environment(account="111122223333", region="us-east-1")
    assert local.for_environment(account=LOCAL_ACCOUNT, region="us-east-1") is local


def test_the_record_tells_which_settings_have_changed() -> None:
    before, after = (record(settings_with(directModelId=model)) for model in ("amazon.nova-micro-v1:0", "openai.gpt"))
    assert {"auth", "models", "retentionDays"} <= before.keys()
    assert [name for name in before if before[name] != after[name]] == ["models"]
    assert "models=" in written(before)
    assert len(written(before)) < 1_000  # an output of a stack holds it


def described(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert describe_main(argv) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def test_settings_are_described_without_the_cdk(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"auth": AUTH, "limits": {"answerConcurrency": 3}}))
    told = described(capsys, "--settings", str(file), "--account", "111122223333", "--region", "us-east-1")
    assert told["models"]["models.embeddingModelId"] == "amazon.titan-embed-text-v2:0"
    assert (told["stackPrefix"], told["answerConcurrency"], told["local"]) == ("Cicada", 3, False)
    assert told["record"] == record(parse({"auth": AUTH, "limits": {"answerConcurrency": 3}}, source="mine"))
    loaded = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import stacks.describe"], capture_output=True, text=True, cwd=ROOT
    )
    assert "pydantic" in loaded.stderr
    assert "aws_cdk" not in loaded.stderr


def test_settings_that_do_not_suit_the_region_are_described_as_such(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"auth": AUTH}))
    told = described(capsys, "--settings", str(file), "--region", "eu-west-1")
    assert told["error"].startswith(
        "models.generationModelId: us.amazon.nova-lite-v1:0 cannot be called from eu-west-1"
    )
