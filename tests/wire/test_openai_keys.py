"""An endpoint's key, from Secrets Manager to the endpoint and nowhere else."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cicada.errors import ModelRefused
from cicada.models.endpoint_keys import SECRETS_CONFIG
from cicada.models.endpoints import Endpoints
from cicada.models.factory import ModelFactory
from cicada.models.ports import Finished, Prompt, TextModel, Unbounded
from cicada.settings import AnswerSettings
from tests.wire.openai_service import OpenAiService, serving

PROMPT = Prompt("Answer.", "Who found the letter?")
FIRST, SECOND = "sk-canary-first-0123456789", "sk-canary-second-0123456789"


@pytest.fixture
def service() -> Iterator[OpenAiService]:
    with serving() as running:
        running.key = FIRST
        yield running


class House:
    """A secret, and a model whose endpoint asks for it."""

    def __init__(self, service: OpenAiService) -> None:
        self.client = boto3.client("secretsmanager", region_name="eu-west-1", config=SECRETS_CONFIG)
        self.arn = self.client.create_secret(Name="endpoint", SecretString=FIRST)["ARN"]
        self.reads: list[str] = []
        self.client.meta.events.register("before-call.secretsmanager", self._count)
        price = {"input_usd_per_million": 1, "output_usd_per_million": 1}
        self.settings = {"mine": {"base_url": service.url, "secret_arn": self.arn, "models": {"model": price}}}
        models = ModelFactory(
            bedrock=lambda: None, secrets=lambda: self.client, endpoints=Endpoints.model_validate(self.settings)
        )
        self.model: TextModel = models.text("mine/model", max_tokens=100)

    def _count(self, *, model: Any, **_: Any) -> None:
        if model.name == "GetSecretValue":
            self.reads.append(model.name)

    def rotate(self, key: str) -> None:
        self.client.put_secret_value(SecretId=self.arn, SecretString=json.dumps({"apiKey": key}))

    def read(self) -> Any:
        return list(self.model.stream(PROMPT, time_budget_s=20, call_scope=Unbounded()))[-1]


@pytest.fixture
def house(service, monkeypatch) -> Iterator[House]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws(config={"core": {"passthrough": {"urls": [f"{service.url}.*"]}}}):
        yield House(service)


def test_the_key_is_read_when_it_is_first_needed_and_then_kept(house, service):
    assert house.reads == []
    for _ in range(3):
        assert isinstance(house.read(), Finished)
    assert len(house.reads) == 1
    assert service.headers[0]["authorization"] == f"Bearer {FIRST}"


def test_a_rotated_key_is_read_again_after_its_first_refusal(house, service):
    house.read()
    service.key = SECOND
    house.rotate(SECOND)
    assert isinstance(house.read(), Finished)
    assert len(house.reads) == 2
    assert service.calls == 3


def test_a_key_that_is_wrong_is_refused_and_not_read_for_ever(house, service):
    service.key = "another"
    with pytest.raises(ModelRefused):
        house.read()
    assert (service.calls, len(house.reads)) == (1, 1)
    with pytest.raises(ModelRefused):
        house.read()
    assert (service.calls, len(house.reads)) == (2, 2)


def test_a_secret_that_is_gone_refuses_the_call_without_one_to_the_endpoint(house, service):
    house.client.delete_secret(SecretId=house.arn, ForceDeleteWithoutRecovery=True)
    with pytest.raises(ModelRefused, match="key could not be read"):
        house.read()
    assert service.calls == 0


def test_the_key_is_in_no_log_line_no_error_and_no_setting(house, service, caplog):
    with caplog.at_level(logging.DEBUG):
        house.read()
        service.faults.arm("openai.error", times=1, status=500, message=f"upstream refused {FIRST}")
        house.read()
        service.key = "another"
        with pytest.raises(ModelRefused) as refused:
            house.read()
    told = f"{refused.value!r} {refused.value.__cause__!r} {caplog.text}"
    assert service.calls > 3
    assert "canary" not in told
    assert "canary" not in json.dumps(house.settings)
    assert "canary" not in repr(vars(house.model))


def test_a_settings_error_quotes_none_of_what_was_set():
    environment = {
        "REQUESTS_TABLE": "t",
        "INDEX_BUCKET": "b",
        "GENERATION_MODEL_ID": "mine/model",
        "DIRECT_MODEL_ID": "mine/model",
        "EMBEDDING_MODEL_ID": "e",
        "EMBEDDING_DIMENSIONS": "256",
        "MODEL_ENDPOINTS": json.dumps({"mine": {"base_url": f"http://{FIRST}.example", "models": {}}}),
    }
    with pytest.raises(Exception, match="MODEL_ENDPOINTS") as raised:
        AnswerSettings.read(environment)
    assert "canary" not in str(raised.value)
