"""The check of one model. Shapes: botocore's models of bedrock and bedrock-runtime; the refusals' words are Bedrock's
(Amazon Bedrock User Guide, "Request access to models"; AWS re:Post, "Resolve AWS Marketplace permissions")."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from botocore.response import StreamingBody

from cicada_cli.doctor.findings import Finding, Status, worst
from cicada_cli.doctor.models import by_model, check_model
from tests.support.stubbed_aws import DENIED, REGION, THROTTLED, Refusal, Step, StubbedAws

NOVA, PROFILE = "amazon.nova-lite-v1:0", "us.amazon.nova-lite-v1:0"
HAIKU = "us.anthropic.claude-haiku-5-5"
TITAN = "amazon.titan-embed-text-v2:0"
ALLOWED = ("us-east-1", "us-east-2", "us-west-1", "us-west-2")
MARKETPLACE = (
    "Model access is denied due to IAM user or service role is not authorized to perform the required AWS Marketplace "
    "actions (aws-marketplace:ViewSubscriptions, aws-marketplace:Subscribe) to enable access to this model."
)
FORM = "Model use case details have not been submitted for this account. Fill out the Anthropic use case details form."
ON_DEMAND = f"Invocation of model ID {NOVA} with on-demand throughput isn’t supported. Retry with an inference profile."


def available(**changes: Any) -> Step:
    answer: dict[str, Any] = {
        "modelId": NOVA,
        "agreementAvailability": {"status": "AVAILABLE"},
        "authorizationStatus": "AUTHORIZED",
        "entitlementAvailability": "AVAILABLE",
        "regionAvailability": "AVAILABLE",
    }
    return "bedrock.GetFoundationModelAvailability", answer | changes


def profile(*regions: str, model: str = NOVA) -> Step:
    name = f"us.{model}"
    return "bedrock.GetInferenceProfile", {
        "inferenceProfileName": "US Nova Lite",
        "inferenceProfileArn": f"arn:aws:bedrock:us-east-1:111122223333:inference-profile/{name}",
        "models": [{"modelArn": f"arn:aws:bedrock:{region}::foundation-model/{model}"} for region in regions],
        "inferenceProfileId": name,
        "status": "ACTIVE",
        "type": "SYSTEM_DEFINED",
    }


CONVERSE: Step = (
    "bedrock-runtime.Converse",
    {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hello"}]}},
        "stopReason": "max_tokens",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 211},
    },
)


def embedding(length: int) -> Step:
    body = json.dumps({"embedding": [0.1] * length, "inputTextTokenCount": 1}).encode()
    stream = StreamingBody(io.BytesIO(body), len(body))
    return "bedrock-runtime.InvokeModel", {"body": stream, "contentType": "application/json"}


def check(
    model_id: str, *steps: Step, setting: str = "models.generationModelId", dimensions: int = 1024
) -> list[Finding]:
    calls = StubbedAws(*steps)
    found = list(check_model(calls, model_id, [setting], region=REGION, dimensions=dimensions, allowed=ALLOWED))
    calls.assert_asked_all()
    return found


def problem(model_id: str, *steps: Step) -> Finding:
    found = check(model_id, *steps)
    (finding,) = [one for one in found if one.status is Status.PROBLEM]
    assert finding.mend
    return finding


def test_a_model_of_amazon_answers() -> None:
    (finding,) = check(NOVA, available(), CONVERSE)
    assert finding.status is Status.OK
    assert "1 tokens in, 1 out, 211 ms (models.generationModelId)" in finding.message


def test_a_profile_that_routes_where_the_functions_may_call_is_fine() -> None:
    (finding,) = check(PROFILE, profile("us-east-1", "us-west-2"), available(), CONVERSE)
    assert finding.status is Status.OK


def test_a_profile_that_routes_further_than_the_functions_may_is_told() -> None:
    found = check(PROFILE, profile("us-east-1", "us-south-9"), available(), CONVERSE)
    assert (found[0].status, found[0].mend) == (Status.WARNING, 'add ["us-south-9"] to models.destinationRegions')
    assert found[1].status is Status.OK


def test_a_profile_that_is_not_there_is_a_problem_and_nothing_is_called() -> None:
    missing: Step = ("bedrock.GetInferenceProfile", Refusal("ResourceNotFoundException", status=404))
    assert "unknown inference profile in us-east-1" in problem(PROFILE, missing, available()).message


def test_a_model_that_nobody_has_subscribed_to_is_not_called() -> None:
    """A first call would subscribe the account, and accept the provider's licence."""
    finding = problem(NOVA, available(agreementAvailability={"status": "NOT_AVAILABLE"}))
    assert "has not subscribed" in finding.message
    assert "aws-marketplace:Subscribe" in (finding.mend or "")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"agreementAvailability": {"status": "ERROR", "errorMessage": "no payment method"}}, "no payment method"),
        ({"entitlementAvailability": "NOT_AVAILABLE"}, "has not subscribed"),
        ({"authorizationStatus": "NOT_AUTHORIZED"}, "not authorised"),
        ({"regionAvailability": "NOT_AVAILABLE"}, "not available in this Region"),
    ],
)
def test_what_the_availability_says_against_a_model_is_a_problem(changes: dict[str, Any], said: str) -> None:
    assert said in problem(NOVA, available(**changes)).message


def test_a_subscription_under_way_is_told_and_the_model_is_called() -> None:
    pending = available(agreementAvailability={"status": "PENDING"})
    assert [one.status for one in check(NOVA, pending, CONVERSE)] == [Status.WARNING, Status.OK]


def test_a_profiles_model_need_not_be_in_the_region_itself() -> None:
    elsewhere = available(regionAvailability="NOT_AVAILABLE")
    assert worst(check(PROFILE, profile("us-west-2"), elsewhere, CONVERSE)) is Status.OK


def test_anthropics_models_need_the_form() -> None:
    there = profile("us-east-1", model="anthropic.claude-haiku-5-5")
    form: Step = ("bedrock.GetUseCaseForModelAccess", {"formData": b"a form's data"})
    assert worst(check(HAIKU, there, available(), form, CONVERSE)) is Status.OK
    none: Step = ("bedrock.GetUseCaseForModelAccess", Refusal("ResourceNotFoundException", status=404))
    finding = problem(HAIKU, there, available(), none)
    assert "use-case form" in finding.message
    assert "docs/models.md" in (finding.mend or "")


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (Refusal("AccessDeniedException", MARKETPLACE, 403), "has not subscribed to the model"),
        (Refusal("ResourceNotFoundException", FORM, 404), "use-case form"),
        (Refusal("ValidationException", ON_DEMAND), "only be called through an inference profile"),
        (Refusal("ResourceNotFoundException", "This Model is marked by provider as Legacy", 404), "legacy"),
        (Refusal("AccessDeniedException", "You don't have access to the model.", 403), "no access to the model"),
        (Refusal("ValidationException", "Malformed input request"), "the call was refused"),
    ],
)
def test_a_refused_call_says_what_is_missing(refusal: Refusal, said: str) -> None:
    assert said in problem(NOVA, available(), ("bedrock-runtime.Converse", refusal)).message


def test_a_caller_who_may_not_call_models_learns_the_permission() -> None:
    (finding,) = check(NOVA, available(), ("bedrock-runtime.Converse", DENIED))
    assert (finding.status, finding.permission) == (Status.UNKNOWN, "bedrock:InvokeModel")


def test_a_caller_who_may_ask_nothing_of_the_control_plane_still_has_the_model_called() -> None:
    found = check(NOVA, ("bedrock.GetFoundationModelAvailability", DENIED), CONVERSE)
    assert [one.status for one in found] == [Status.UNKNOWN, Status.OK]
    assert found[0].permission == "bedrock:GetFoundationModelAvailability"


def test_a_throttled_first_call_points_to_the_quota() -> None:
    (finding,) = check(NOVA, available(), ("bedrock-runtime.Converse", THROTTLED))
    assert (finding.status, "Service Quotas" in (finding.mend or "")) == (Status.WARNING, True)


def test_the_embedding_model_is_asked_for_one_vector() -> None:
    (finding,) = check(TITAN, available(), embedding(1024), setting="models.embeddingModelId")
    assert finding.message.startswith("returns vectors of 1024 dimensions")
    (finding,) = check(TITAN, available(), embedding(256), setting="models.embeddingModelId")
    assert finding.status is Status.PROBLEM
    assert "256 dimensions" in finding.message


def test_other_embedding_models_are_asked_in_their_own_words() -> None:
    body = json.dumps({"embeddings": {"float": [[0.1] * 512]}}).encode()
    answer: Step = (
        "bedrock-runtime.InvokeModel",
        {"body": StreamingBody(io.BytesIO(body), len(body)), "contentType": "a"},
    )
    setting = "models.embeddingModelId"
    (finding,) = check("cohere.embed-v4:0", available(), answer, setting=setting, dimensions=512)
    assert finding.message.startswith("returns vectors of 512 dimensions")
    unreadable: Step = (
        "bedrock-runtime.InvokeModel",
        {"body": StreamingBody(io.BytesIO(b"{}"), 2), "contentType": "a"},
    )
    (finding,) = check("cohere.embed-v4:0", available(), unreadable, setting=setting, dimensions=512)
    assert finding.status is Status.PROBLEM


def test_re_ranking_models_are_not_called() -> None:
    (finding,) = check("amazon.rerank-v1:0", available(), setting="retrieval.rerankerModelId")
    assert finding.status is Status.OK


def test_models_of_other_endpoints_are_not_called() -> None:
    (finding,) = check("groq/openai/gpt-oss-120b")
    assert finding.status is Status.UNKNOWN


def test_a_model_that_several_settings_name_is_looked_at_once() -> None:
    assert by_model({"a": "x", "b": "y", "c": "x"}) == {"x": ["a", "c"], "y": ["b"]}
