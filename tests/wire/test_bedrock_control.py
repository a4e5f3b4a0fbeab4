"""The stand-in of Bedrock's control plane does what AWS does: each line of its list, by a boto3 client over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from aiohttp import web
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from cicada_local.bedrock import control
from cicada_local.bedrock.control import BedrockControl
from cicada_local.faults import Faults
from tests.wire.app_server import serving_app

NOVA = "amazon.nova-lite-v1:0"
TESTED = ("BC01", "BC02", "BC03", "BC04", "BC05", "BC06")


@pytest.fixture(scope="module")
def faults() -> Faults:
    return Faults()


@pytest.fixture(scope="module")
def url(faults: Faults) -> Iterator[str]:
    app = web.Application()
    BedrockControl(faults).add_routes(app)
    with serving_app(app) as address:
        yield address


@pytest.fixture
def client(url: str, faults: Faults) -> Any:
    faults.disarm()
    return bedrock(url)


def bedrock(url: str, **config: Any) -> Any:
    return boto3.client(
        "bedrock",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}, **config),
    )


def refusal(call: Any, **params: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as refused:
        call(**params)
    answer = refused.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def test_every_line_is_tested() -> None:
    assert tuple(re.findall(r"^(BC\d\d) ", control.__doc__ or "", re.MULTILINE)) == TESTED


def test_bc01_a_models_availability(client: Any, faults: Faults) -> None:
    found = client.get_foundation_model_availability(modelId=NOVA)
    assert (found["modelId"], found["agreementAvailability"]) == (NOVA, {"status": "AVAILABLE"})
    assert found["authorizationStatus"] == "AUTHORIZED"
    assert found["entitlementAvailability"] == found["regionAvailability"] == "AVAILABLE"
    faults.arm("bedrock_control.agreement", times=1, status="ERROR", message="no payment method", model=NOVA)
    assert client.get_foundation_model_availability(modelId=NOVA)["agreementAvailability"] == {
        "status": "ERROR",
        "errorMessage": "no payment method",
    }


@pytest.mark.parametrize("model_id", ["us.amazon.nova-lite-v1:0", "nobody.model-1"])
def test_bc02_what_is_no_model_is_not_found(client: Any, model_id: str) -> None:
    assert refusal(client.get_foundation_model_availability, modelId=model_id) == ("ResourceNotFoundException", 404)


def test_bc03_a_profile_names_its_models(client: Any) -> None:
    found = client.get_inference_profile(inferenceProfileIdentifier=f"us.{NOVA}")
    assert found["inferenceProfileArn"].endswith(f":inference-profile/us.{NOVA}")
    assert [one["modelArn"].split(":")[3] for one in found["models"]] == ["us-east-1", "us-east-2", "us-west-2"]
    assert (found["status"], found["type"]) == ("ACTIVE", "SYSTEM_DEFINED")


@pytest.mark.parametrize("profile_id", [f"eu.{NOVA}", f"in.{NOVA}", "us.nobody.model-1", NOVA])
def test_bc04_profiles_of_elsewhere_are_not_found(client: Any, profile_id: str) -> None:
    assert refusal(client.get_inference_profile, inferenceProfileIdentifier=profile_id)[1] == 404


def test_bc05_anthropics_form(client: Any, faults: Faults) -> None:
    assert json.loads(client.get_use_case_for_model_access()["formData"]) == control.FORM
    faults.arm("bedrock_control.use_case", times=1)
    assert refusal(client.get_use_case_for_model_access) == ("ResourceNotFoundException", 404)


def test_bc06_requests_are_signed(url: str, faults: Faults) -> None:
    unsigned = bedrock(url, signature_version=UNSIGNED)
    assert refusal(unsigned.get_use_case_for_model_access) == ("MissingAuthenticationTokenException", 403)


def test_a_fault_refuses(client: Any, faults: Faults) -> None:
    faults.arm("bedrock_control.error", times=1)
    assert refusal(client.get_use_case_for_model_access) == ("AccessDeniedException", 403)
    faults.arm("bedrock_control.error", times=1, exception="ThrottlingException", status=429)
    assert refusal(client.get_use_case_for_model_access) == ("ThrottlingException", 429)
