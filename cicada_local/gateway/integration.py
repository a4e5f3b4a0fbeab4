"""Calling the functions behind routes and authorizers."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cicada_local.functions.config import InvokeResult, Permits
from cicada_local.functions.errors import LambdaApiError

Invoke = Callable[[str, bytes], Awaitable[InvokeResult]]
"""``FunctionService.invoke``: runs a function, by its ARN, with an event. Raises ``LambdaApiError`` when refused."""


class IntegrationFailed(Exception):
    """The function failed, was refused, or returned what is no proxy response."""

    status = 502
    response_type = "INTEGRATION_FAILURE"
    """API Gateway's name for it."""

    def __init__(self, message: str, *, error_message: str | None = None, lambda_status: int | None = 200) -> None:
        super().__init__(message)
        self.error_message = error_message
        """What the function raised, where it raised."""
        self.lambda_status = lambda_status
        """What Lambda answered to the invocation; None where it was not asked, or did not answer in time."""


class IntegrationRefused(IntegrationFailed):
    """The function's policy does not let API Gateway invoke it."""

    status = 500


class IntegrationTimedOut(IntegrationFailed):
    """The function took longer than the gateway waits; it goes on, and what it returns is lost."""

    status = 504
    response_type = "INTEGRATION_TIMEOUT"


@dataclass(frozen=True)
class ProxyResponse:
    """What a function behind an AWS_PROXY integration returned."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | bytes = ""
    """Bytes when the function said that its body is in base64."""

    @property
    def succeeded(self) -> bool:
        """A status of the 2xx class."""
        return 200 <= self.status < 300


class Integrations:
    """Invokes functions within the gateway's time."""

    def __init__(self, invoke: Invoke, permits: Permits, timeout_s: float) -> None:
        self._invoke = invoke
        self._permits = permits
        self._timeout_s = timeout_s
        self._running: set[asyncio.Task[bytes]] = set()

    async def call(self, function_arn: str, event: dict[str, Any], source_arn: str) -> Any:
        """Invoke a function and decode what it returns.

        Args:
            function_arn: the function.
            event: what it gets.
            source_arn: the route or authorizer for which it is invoked, which its policy must name.

        Raises:
            IntegrationFailed: in each of its ways.
        """
        if not self._permits(function_arn, source_arn):
            refused = f"Invalid permissions on Lambda function: {source_arn} may not invoke it"
            raise IntegrationRefused(refused, lambda_status=403)
        task = asyncio.create_task(self._payload(function_arn, json.dumps(event).encode()))
        self._running.add(task)
        task.add_done_callback(self._finished)
        done, _ = await asyncio.wait({task}, timeout=self._timeout_s)
        if not done:
            raise IntegrationTimedOut(f"no response within {self._timeout_s:g} s", lambda_status=None)
        try:
            return json.loads(task.result())
        except ValueError as error:
            raise IntegrationFailed("the function returned no JSON") from error

    async def proxy(self, function_arn: str, event: dict[str, Any], source_arn: str) -> ProxyResponse:
        """Invoke a function behind an AWS_PROXY integration; the arguments are those of :meth:`call`.

        Raises:
            IntegrationFailed: in each of its ways; a result without a ``statusCode`` is one.
        """
        result = await self.call(function_arn, event, source_arn)
        if not isinstance(result, dict) or not isinstance(status := result.get("statusCode"), int | str):
            raise IntegrationFailed("malformed Lambda proxy response: no statusCode")
        try:
            headers = {str(name).lower(): str(value) for name, value in (result.get("headers") or {}).items()}
            body = result.get("body") or ""
            if not isinstance(body, str):
                raise TypeError("body is no string")
            decoded = base64.b64decode(body, validate=True) if result.get("isBase64Encoded") else body
            return ProxyResponse(int(status), headers, decoded)
        except (ValueError, TypeError, AttributeError, binascii.Error) as error:
            raise IntegrationFailed(f"malformed Lambda proxy response: {error}") from error

    def close(self) -> None:
        """Wait for nothing any more."""
        for task in self._running:
            task.cancel()

    async def _payload(self, function_arn: str, payload: bytes) -> bytes:
        try:
            result = await self._invoke(function_arn, payload)
        except LambdaApiError as error:
            raise IntegrationFailed(f"{error.type_}: {error}", lambda_status=error.status) from error
        if result.function_error is not None:
            raise IntegrationFailed("the function failed", error_message=_error_message(result.payload))
        return result.payload

    def _finished(self, task: asyncio.Task[bytes]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # of a function that nobody waits for any more


def _error_message(payload: bytes) -> str | None:
    try:
        message = json.loads(payload).get("errorMessage")
    except (ValueError, AttributeError):
        return None
    return message if isinstance(message, str) else None
