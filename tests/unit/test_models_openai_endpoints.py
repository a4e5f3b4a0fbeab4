"""Endpoints: their settings, their keys, their prices, and which adapter a model id gets."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from pydantic import ValidationError

from cicada.errors import ModelBusy, ModelError, ModelRefused, ModelUnavailable, SettingsInvalid
from cicada.models import endpoints
from cicada.models.bedrock_structured import BedrockStructuredModel
from cicada.models.bedrock_text import BedrockTextModel
from cicada.models.endpoint_keys import GivenKey, SecretKey
from cicada.models.endpoints import Endpoints
from cicada.models.factory import ModelFactory
from cicada.models.model_ids import read_endpoint_id
from cicada.models.openai_chat import OpenAiTextModel
from cicada.models.openai_errors import Complaint, EndpointFault, read_complaint, read_fault, read_retry_after
from cicada.models.openai_structured import OpenAiStructuredModel, strict_schema, without_filler
from cicada.models.ports import Usage
from cicada.models.prices import cost

ROOT = Path(__file__).parents[2]
SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:groq-AbCdEf"
SETTINGS: dict[str, Any] = {
    "groq": {
        "base_url": "https://api.groq.com/openai/v1/",
        "secret_arn": SECRET,
        "models": {
            "openai/gpt-oss-120b": {"input_usd_per_million": 0.15, "output_usd_per_million": 0.6},
            "cheap": {
                "input_usd_per_million": 1.0,
                "output_usd_per_million": 2.0,
                "cached_input_usd_per_million": 0.5,
            },
        },
    },
    "laptop": {
        "base_url": "http://localhost:11434/v1",
        "models": {"qwen3:8b": {"input_usd_per_million": 0, "output_usd_per_million": 0}},
    },
}
ENDPOINTS = Endpoints.model_validate(SETTINGS)


@pytest.fixture(autouse=True)
def own_prices(monkeypatch):
    monkeypatch.setattr(endpoints, "_prices", {})


@pytest.mark.parametrize(
    ("model_id", "read"),
    [
        ("groq/cheap", ("groq", "cheap")),
        ("groq/openai/gpt-oss-120b", ("groq", "openai/gpt-oss-120b")),
        ("amazon.nova-lite-v1:0", None),
        ("arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0", None),
    ],
)
def test_a_slash_tells_an_endpoints_model_from_bedrocks(model_id, read):
    assert read_endpoint_id(model_id) == read


def test_a_model_is_found_at_its_endpoint_and_nowhere_else():
    found = ENDPOINTS.find("groq/openai/gpt-oss-120b")
    assert found is not None
    endpoint, name = found
    assert (endpoint.base_url, name) == ("https://api.groq.com/openai/v1", "openai/gpt-oss-120b")
    for other in ("groq/gpt", "openai/gpt-oss-120b", "cheap", "amazon.nova-lite-v1:0"):
        assert ENDPOINTS.find(other) is None


def test_only_what_is_called_is_told_on():
    told = ENDPOINTS.only(["groq/cheap", "amazon.nova-lite-v1:0"])
    assert told.model_ids() == ["groq/cheap"]
    assert told.secret_arns() == [SECRET]
    assert Endpoints.model_validate_json(told.model_dump_json(exclude_none=True)) == told


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com",
        "ftp://a.example",
        "https://",
        "https://a:b@c.example",
        "https://a.example/?k=1",
        "https://a .b",
    ],
)
def test_an_address_that_is_not_safe_is_none(url):
    with pytest.raises(ValidationError):
        Endpoints.model_validate({"mine": {**SETTINGS["laptop"], "base_url": url}})


# --- prices ---


def test_what_an_endpoint_charges_is_known_once_it_was_told():
    assert cost("groq/cheap", Usage(1_000_000)) is None
    models()
    usage = Usage(input_tokens=1_000_000, output_tokens=500_000, cache_read_tokens=2_000_000)
    price = cost("groq/cheap", usage)
    assert price is not None
    assert price.usd == pytest.approx(1.0 + 1.0 + 1.0)


def test_cached_input_costs_as_much_as_other_where_no_price_is_told_for_it():
    models()
    price = cost("groq/openai/gpt-oss-120b", Usage(cache_read_tokens=1_000_000))
    assert price is not None
    assert price.usd == pytest.approx(0.15)


def test_a_model_that_costs_nothing_has_a_price():
    models()
    price = cost("laptop/qwen3:8b", Usage(5000, 5000))
    assert price is not None
    assert price.usd == 0


# --- adapters ---


def no_client() -> Any:
    return SimpleNamespace()


def models(**settings: Any) -> ModelFactory:
    return ModelFactory(bedrock=no_client, secrets=no_client, endpoints=ENDPOINTS, **settings)


def test_a_model_gets_the_adapter_of_its_service():
    made = models()
    assert isinstance(made.text("amazon.nova-lite-v1:0", max_tokens=5), BedrockTextModel)
    assert isinstance(made.structured("amazon.nova-lite-v1:0", max_tokens=5), BedrockStructuredModel)
    text = made.text("groq/openai/gpt-oss-120b", max_tokens=5)
    assert isinstance(text, OpenAiTextModel)
    assert (text.model_id, text.max_tokens) == ("groq/openai/gpt-oss-120b", 5)
    form = made.structured("laptop/qwen3:8b", max_tokens=6)
    assert isinstance(form, OpenAiStructuredModel)
    assert (form.model_id, form.max_tokens) == ("laptop/qwen3:8b", 6)


def test_a_model_that_no_endpoint_has_is_named_with_those_that_there_are():
    with pytest.raises(SettingsInvalid, match=r"no endpoint serves groq/other; known .*groq/cheap"):
        models().text("groq/other", max_tokens=5)


def test_bedrocks_client_is_made_once_and_only_for_its_models():
    made: list[Any] = []

    def bedrock() -> Any:
        made.append(no_client())
        return made[-1]

    chosen = ModelFactory(bedrock=bedrock, secrets=no_client, endpoints=ENDPOINTS)
    chosen.text("laptop/qwen3:8b", max_tokens=5)
    assert made == []
    chosen.text("amazon.nova-lite-v1:0", max_tokens=5)
    chosen.structured("amazon.nova-micro-v1:0", max_tokens=5)
    assert len(made) == 1


def test_the_version_of_a_model_changes_with_its_endpoints_address():
    elsewhere = {**SETTINGS, "groq": {**SETTINGS["groq"], "base_url": "https://other.example/v1"}}
    moved = ModelFactory(bedrock=no_client, secrets=no_client, endpoints=Endpoints.model_validate(elsewhere))
    assert models().version("groq/cheap") != moved.version("groq/cheap")
    assert models().version("laptop/qwen3:8b") == moved.version("laptop/qwen3:8b")
    assert models().version("amazon.nova-lite-v1:0") == "amazon.nova-lite-v1:0"


# --- keys ---


class Secrets:
    """Secrets Manager, with one secret."""

    def __init__(self, *texts: str | Exception | None) -> None:
        self.texts = texts
        self.asked: list[str] = []

    def get_secret_value(self, *, SecretId: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
        self.asked.append(SecretId)
        text = self.texts[min(len(self.asked), len(self.texts)) - 1]
        if isinstance(text, Exception):
            raise text
        return {"SecretBinary": b"x"} if text is None else {"SecretString": text}


def secret(*texts: str | Exception | None, clock: Any = lambda: 0.0) -> tuple[SecretKey, Secrets]:
    service = Secrets(*texts)
    return SecretKey(lambda: service, SECRET, clock=clock), service


def test_a_key_is_read_once_for_some_minutes():
    now_s = 0.0
    key, service = secret("sk-1", "sk-2", clock=lambda: now_s)
    assert [key.read(time_left_s=5).value for _ in range(3)] == ["sk-1"] * 3
    assert service.asked == [SECRET]
    now_s = 301.0
    assert key.read(time_left_s=5).value == "sk-2"


def test_a_key_that_is_refused_is_read_again_unless_it_has_just_been_read():
    key, service = secret("sk-1", "sk-2")
    fresh = key.read(time_left_s=5)
    assert not key.refused(fresh)
    assert key.read(time_left_s=5).value == "sk-2"
    kept = key.read(time_left_s=5)
    assert key.refused(kept)
    key.read(time_left_s=5)
    assert len(service.asked) == 3


@pytest.mark.parametrize("text", ["sk-1", " sk-1\n", '"sk-1"'[1:-1], '{"apiKey": "sk-1"}', '{"any name": "sk-1 "}'])
def test_a_secret_is_the_key_or_an_object_with_nothing_else(text):
    assert secret(text)[0].read(time_left_s=5).value == "sk-1"


@pytest.mark.parametrize(
    "text", ["", "  ", "sk canary", "sk-canary\nx", "sk-çanary", '{"a": "sk-canary", "b": "2"}', '{"a": 7}', "{}", None]
)
def test_a_secret_without_a_key_is_refused_without_being_quoted(text):
    with pytest.raises(ModelRefused) as raised:
        secret(text)[0].read(time_left_s=5)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("AccessDeniedException", 400, ModelRefused),
        ("ResourceNotFoundException", 400, ModelRefused),
        ("DecryptionFailure", 400, ModelRefused),
        ("InternalServiceError", 500, ModelUnavailable),
        ("ThrottlingException", 400, ModelBusy),
    ],
)
def test_a_secret_that_cannot_be_read_fails_the_call_by_its_kind(code, status, kind):
    error = ClientError(
        {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetSecretValue"
    )
    with pytest.raises(ModelError, match="the endpoint's key could not be read") as raised:
        secret(error)[0].read(time_left_s=5)
    assert type(raised.value) is kind


def test_a_silent_secrets_manager_makes_the_model_unavailable():
    with pytest.raises(ModelUnavailable):
        secret(EndpointConnectionError(endpoint_url="https://secretsmanager"))[0].read(time_left_s=5)


class SlowSecrets:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer = threading.Event()

    def get_secret_value(self, **_: Any) -> dict[str, Any]:
        self.asked += 1
        assert self.answer.wait(5)
        return {"SecretString": "sk-1"}


def test_a_key_is_waited_for_no_longer_than_there_is_time_and_read_once_for_all():
    service = SlowSecrets()
    key = SecretKey(lambda: service, SECRET)
    for _ in range(3):
        with pytest.raises(ModelUnavailable, match="timed out"):
            key.read(time_left_s=0.001)
    service.answer.set()
    assert key.read(time_left_s=5).value == "sk-1"
    assert service.asked == 1


def test_a_reading_that_failed_is_not_remembered():
    refusal = ClientError({"Error": {"Code": "ThrottlingException", "Message": "m"}}, "GetSecretValue")
    key, _ = secret(refusal, "sk-1")
    with pytest.raises(ModelBusy):
        key.read(time_left_s=5)
    assert key.read(time_left_s=5).value == "sk-1"


def test_a_key_does_not_show_itself():
    key, _ = secret("sk-canary")
    assert "canary" not in repr(key.read(time_left_s=5))
    assert "canary" not in repr(GivenKey("sk-canary").read(time_left_s=5))


# --- errors ---


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            {"error": {"message": "m", "type": "t", "code": "c", "param": "p"}},
            Complaint("m", "t", "c", "p"),
        ),
        ({"message": "m", "code": 400}, Complaint("m", "", "400", "")),
        ({"error": "m", "code": "c"}, Complaint("m", "", "c", "")),
        ({"detail": "m"}, Complaint("m")),
        (
            {"detail": [{"loc": ["body", "temperature"], "msg": "m", "type": "t", "input": "what was asked"}]},
            Complaint("m", "t", "", "temperature"),
        ),
        ([1], Complaint()),
        ({"error": {"message": ["x"]}}, Complaint()),
    ],
)
def test_a_complaint_is_read_from_the_bodies_of_many_servers(body, complaint):
    assert read_complaint(json.dumps(body).encode()) == complaint


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_complaint_says_nothing(body):
    assert read_complaint(body) == Complaint()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_read_in_seconds_or_as_a_date(headers, seconds):
    assert read_retry_after(headers, now_s=60.0) == seconds


def test_a_fault_of_a_server_that_quotes_a_part_of_the_prompt_is_told_without_its_words():
    complaint = Complaint("could not parse: …found the letter on the second…", type="server_error")
    fault = EndpointFault(500, complaint, sent=["Aoi found the letter\non the second evening."])
    failure = read_fault(fault)
    assert failure is not None
    assert str(failure.error) == "the endpoint answers 500 (server_error)"


@pytest.mark.parametrize("status", [400, 401, 0])
@pytest.mark.parametrize(
    "complaint",
    [
        Complaint("no", type="x", code="sk-canary-0123456789"),
        Complaint("no", type="key_sk-canary-0123456789"),
        Complaint("no", code="invalid_api_key: sk-canary-0123456789"),
        Complaint("no", type="could not parse: <passage>canary</passage>"),
        Complaint("no", code="c" * 65 + "canary"),
        Complaint("sk-canary-0123456789 is wrong"),
    ],
)
def test_no_field_of_an_error_brings_the_key_or_a_text_into_the_log(status, complaint):
    assert "canary" not in str(EndpointFault(status, complaint, sent=["Who?", "sk-canary-0123456789"]))


def test_the_codes_of_an_error_are_told():
    fault = EndpointFault(401, Complaint("no", "invalid_request_error", "invalid_api_key"), sent=["sk-1"])
    assert str(fault) == "the endpoint answers 401 (invalid_request_error/invalid_api_key)"


# --- schemas ---


def test_a_schema_with_free_keys_cannot_be_strict():
    free = {"type": "object", "properties": {"counts": {"type": "object"}}, "required": ["counts"]}
    assert strict_schema(free) == (free, False)


def test_what_may_be_null_stays_and_what_may_be_left_out_and_is_null_goes():
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "needed": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "spare": {"type": "string"},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        },
        "required": ["needed", "rows"],
    }
    value = {"needed": None, "spare": None, "rows": [{"a": None}, {"a": 1}], "unknown": None}
    assert without_filler(value, schema) == {"needed": None, "rows": [{}, {"a": 1}], "unknown": None}
    strict, kept = strict_schema(schema)
    assert kept
    assert strict["properties"]["needed"] == schema["properties"]["needed"]
    assert strict["properties"]["spare"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
