"""Amazon Bedrock's control plane as far as Cicada asks it: whether an account may call a model.

What AWS does, and this does too (``tests/wire/test_bedrock_control.py``, by a boto3 client):

=====  ===========================================================================================================
line   what AWS does, and this does too
=====  ===========================================================================================================
BC01   GetFoundationModelAvailability tells agreement, authorisation, entitlement and Region of a model's own id.
BC02   An inference profile's id names no model there, nor does an unknown one: ResourceNotFoundException (404).
BC03   GetInferenceProfile tells a system-defined profile's ARN and its model's in every destination Region.
BC04   A profile of another geography, or of no known model, does not exist here: ResourceNotFoundException (404).
BC05   GetUseCaseForModelAccess gives Anthropic's form, or a ResourceNotFoundException (404) where none was submitted.
BC06   A request without a signature is refused (403). The signature itself is not checked.
=====  ===========================================================================================================

Shapes: botocore's service model ``bedrock/2023-04-20``. Chosen here: the words of the errors. The account has every
model, and has submitted the form. Fault switches (``cicada_local.faults``):

``bedrock_control.agreement``  ``status`` (``NOT_AVAILABLE`` unless told) and ``message``; limited by ``model``
``bedrock_control.use_case``   no form was submitted
``bedrock_control.error``      ``exception`` (code), ``status``, ``message``; 403 AccessDeniedException unless told
"""

from __future__ import annotations

import base64
import json
from typing import Any

from aiohttp import web

from cicada_local.bedrock.catalogue import MODELS
from cicada_local.bedrock.errors import AwsError, ModelNotFound, with_aws_errors
from cicada_local.faults import Faults
from cicada_local.places import ACCOUNT_ID, REGION

DESTINATIONS = {"us": ("us-east-1", "us-east-2", "us-west-2"), "global": ("", REGION)}
"""The geographies whose profiles can be called from the local cloud's Region, and where they route to."""
FORM = {"companyName": "Example", "intendedUsers": "0", "useCases": "Trying Cicada"}
_INTERNAL = "The system encountered an unexpected error during processing."
_CREATED = "2024-11-20T00:00:00Z"


class BedrockControl:
    """The operations."""

    def __init__(self, faults: Faults) -> None:
        """``faults``: the switches."""
        self._faults = faults

    def add_routes(self, app: web.Application) -> None:
        """Serve the operations' paths."""
        for path, handler in {
            "/foundation-model-availability/{model_id}": self._availability,
            "/inference-profiles/{profile_id}": self._profile,
            "/use-case-for-model-access": self._use_case,
        }.items():
            app.router.add_get(path, with_aws_errors(handler, internal=_INTERNAL))

    async def _availability(self, request: web.Request) -> web.Response:
        self._fail(request)
        model_id = request.match_info["model_id"]
        if model_id not in MODELS:
            raise ModelNotFound("The provided model identifier is not found.")
        agreement = {"status": "AVAILABLE"}
        if (fault := self._faults.take("bedrock_control.agreement", model=model_id)) is not None:
            agreement = {"status": fault.get("status", "NOT_AVAILABLE")}
            agreement |= {"errorMessage": fault["message"]} if "message" in fault else {}
        return web.json_response(
            {
                "modelId": model_id,
                "agreementAvailability": agreement,
                "authorizationStatus": "AUTHORIZED",
                "entitlementAvailability": "AVAILABLE",
                "regionAvailability": "AVAILABLE",
            }
        )

    async def _profile(self, request: web.Request) -> web.Response:
        self._fail(request)
        profile_id = request.match_info["profile_id"]
        geography, _, base = profile_id.partition(".")
        if geography not in DESTINATIONS or base not in MODELS:
            raise ModelNotFound(f"The inference profile {profile_id} is not found.")
        models = [f"arn:aws:bedrock:{region}::foundation-model/{base}" for region in DESTINATIONS[geography]]
        return web.json_response(
            {
                "inferenceProfileName": f"{geography.upper()} {base}",
                "description": f"Routes requests to {base} in {geography}.",
                "createdAt": _CREATED,
                "updatedAt": _CREATED,
                "inferenceProfileArn": f"arn:aws:bedrock:{REGION}:{ACCOUNT_ID}:inference-profile/{profile_id}",
                "models": [{"modelArn": arn} for arn in models],
                "inferenceProfileId": profile_id,
                "status": "ACTIVE",
                "type": "SYSTEM_DEFINED",
            }
        )

    async def _use_case(self, request: web.Request) -> web.Response:
        self._fail(request)
        if self._faults.take("bedrock_control.use_case") is not None:
            raise ModelNotFound("No use case was submitted for this account.")
        form = base64.b64encode(json.dumps(FORM).encode()).decode()
        return web.json_response({"formData": form})

    def _fail(self, request: web.Request) -> None:
        fault: dict[str, Any] | None = self._faults.take("bedrock_control.error", path=request.path)
        if fault is not None:
            raise AwsError(
                fault.get("message", "You are not authorized to perform this action."),
                code=fault.get("exception", "AccessDeniedException"),
                status=int(fault.get("status", 403)),
            )
