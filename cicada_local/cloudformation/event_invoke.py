"""How functions' asynchronous invocations are configured, which moto leaves out."""

from __future__ import annotations

from typing import Any

from cicada_local.calls import function_name
from cicada_local.cloudformation.base import Declaration, Resource, define, forgetting
from cicada_local.functions.config import AsyncConfig

EVENT_INVOKE_CONFIGS: dict[str, AsyncConfig] = {}
"""By a function's name."""
RETRIES, AGE_S = (0, 2), (60, 21_600)
"""The least and the most that may be configured."""


def _read(properties: dict[str, Any]) -> AsyncConfig:
    """The configuration that a template asks for.

    Raises:
        ValueError: Lambda would refuse it, or it has something that is not served.
    """
    retries = int(properties.get("MaximumRetryAttempts", RETRIES[1]))
    age_s = int(properties.get("MaximumEventAgeInSeconds", AGE_S[1]))
    for name, value, (least, most) in (
        ("MaximumRetryAttempts", retries, RETRIES),
        ("MaximumEventAgeInSeconds", age_s, AGE_S),
    ):
        if not least <= value <= most:
            raise ValueError(f"{name} must be from {least} to {most}")
    destinations = properties.get("DestinationConfig", {})
    if "OnSuccess" in destinations:
        raise ValueError("Destinations of successful events are not served here")
    return AsyncConfig(retries, float(age_s), queue_arn(destinations.get("OnFailure", {}).get("Destination", "")))


def queue_arn(arn: str) -> str:
    """A queue's ARN, or nothing.

    Raises:
        ValueError: it is something else's.
    """
    if arn and ":sqs:" not in arn:
        raise ValueError(f"Destinations but queues are not served here: {arn}")
    return arn


def _create(declaration: Declaration) -> Resource:
    name = function_name(declaration.properties["FunctionName"])

    def replace(properties: dict[str, Any]) -> None:
        EVENT_INVOKE_CONFIGS[name] = _read(properties)

    replace(declaration.properties)
    return Resource(f"{name}|$LATEST", {}, replace=replace, remove=forgetting(EVENT_INVOKE_CONFIGS, name))


def _update(config: Resource, declaration: Declaration) -> Resource:
    config.replace(declaration.properties)
    return config


define("AWS::Lambda::EventInvokeConfig", create=_create, update=_update, attributes=())
