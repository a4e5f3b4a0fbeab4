"""The access log of a stage: a line for each connect, message and disconnect, in the stage's format.

Source: API Gateway Developer Guide, "Configuring logging for a WebSocket API", table of ``$context`` variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cicada_local.gateway.authorizer import Refused
from cicada_local.gateway.integration import IntegrationFailed, ProxyResponse

ABSENT = "-"
"""Stands for a variable without a value."""

_RESPONSE_TYPES = {401: "UNAUTHORIZED", 403: "ACCESS_DENIED", 500: "AUTHORIZER_FAILURE"}
_VARIABLE = re.compile(r"\$context\.([A-Za-z]+(?:\.[A-Za-z]+)*)")


def access_line(form: str, context: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
    """One line.

    Args:
        form: the stage's format.
        context: the event's ``requestContext``.
        outcome: what is known afterwards: ``status`` and what :func:`answered` or :func:`failed` say.
    """
    known = {**context, **outcome}
    known["authorizer"] = {**(context.get("authorizer") or {}), **(outcome.get("authorizer") or {})}

    def value(variable: re.Match[str]) -> str:
        found: Any = known
        for part in variable[1].split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return ABSENT if found is None else str(found)

    return _VARIABLE.sub(value, form)


def answered(response: ProxyResponse) -> dict[str, Any]:
    """What the variables say of a function that responded: Lambda's status, and the function's own."""
    return {"status": response.status, "integrationStatus": 200, "integration": {"status": response.status}}


def failed(error: IntegrationFailed) -> dict[str, Any]:
    """What they say of one that did not."""
    return {
        "status": error.status,
        "integrationStatus": error.lambda_status,
        "error": {"responseType": error.response_type},
    }


def refused(refusal: Refused) -> dict[str, Any]:
    """What they say of a client that the authorizer did not let in."""
    return {
        "status": refusal.status,
        "authorizer": {"status": refusal.authorizer_status},
        "error": {"responseType": _RESPONSE_TYPES[refusal.status]},
    }
