"""Asking a Lambda authorizer whether a client may connect.

Source: API Gateway developer guide, "Control access to WebSocket APIs with AWS Lambda REQUEST authorizers".
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from cicada_local.gateway.config import AuthorizerConfig, Limits
from cicada_local.gateway.events import Client, Upgrade, authorizer_event
from cicada_local.gateway.integration import IntegrationFailed, Integrations
from cicada_local.gateway.policy import PolicyInvalid, decide


class Refused(Exception):
    """The client may not connect: the upgrade is answered with this status."""

    def __init__(self, status: int, message: str, *, authorizer_status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.authorizer_status = authorizer_status
        """How the authorizer itself ended; None where none was asked."""


async def authorize(
    integrations: Integrations, authorizer: AuthorizerConfig, client: Client, upgrade: Upgrade, limits: Limits
) -> dict[str, str | int]:
    """What later events carry as ``requestContext.authorizer``.

    Raises:
        Refused: with 401 for a missing identity source or an authorizer that raises ``Unauthorized``, with 403 for a
            policy that does not allow, with 500 for an authorizer that fails or answers what is none.
    """
    event = authorizer_event(client, upgrade)
    if not all(_identity(source, event) for source in authorizer.identity_sources):
        raise Refused(401, "Unauthorized")
    begun = time.monotonic()
    try:
        source = client.api.authorizer_arn(authorizer.authorizer_id)
        result = await integrations.call(authorizer.function_arn, event, source)
    except IntegrationFailed as error:
        if error.error_message == "Unauthorized":
            raise Refused(401, "Unauthorized", authorizer_status=401) from error
        raise Refused(500, "Internal server error", authorizer_status=500) from error
    latency_ms = int((time.monotonic() - begun) * 1000)
    if not isinstance(result, dict) or len(json.dumps(result)) > limits.authorizer_result_bytes:
        raise Refused(500, "Internal server error", authorizer_status=200)
    try:
        decision = decide(result.get("policyDocument"), "execute-api:Invoke", event["methodArn"])
        context = _context(result.get("context") or {})
        principal = result["principalId"]
    except (PolicyInvalid, TypeError, KeyError) as error:
        raise Refused(500, "Internal server error", authorizer_status=200) from error
    if decision != "allow":
        raise Refused(403, "Forbidden", authorizer_status=200)
    return {**context, "principalId": str(principal), "integrationLatency": latency_ms}


def _identity(source: str, event: Mapping[str, Any]) -> str | None:
    """The value of an identity source such as ``route.request.header.Authorization``; falsy when it is missing."""
    kind, _, name = source.rpartition(".")
    match kind:
        case "route.request.header":
            headers = {key.lower(): value for key, value in event["headers"].items()}
            return headers.get(name.lower())
        case "route.request.querystring":
            found: str | None = event.get("queryStringParameters", {}).get(name)
            return found
        case "stageVariables":
            variable: str | None = event["stageVariables"].get(name)
            return variable
        case "context":
            value = event["requestContext"].get(name)
            return None if value is None else str(value)
    raise ValueError(f"{source} is no identity source of a WebSocket API")


def _context(context: Any) -> dict[str, str | int]:
    """An authorizer's context: numbers and booleans become strings, anything nested is refused."""
    if not isinstance(context, Mapping):
        raise TypeError("the context is no JSON object")
    told: dict[str, str | int] = {}
    for name, value in context.items():
        if not isinstance(value, str | int | float | bool):
            raise TypeError(f"{name} is no string, number or boolean")
        told[name] = value if isinstance(value, str) else json.dumps(value)
    return told
