"""Events that EventBridge's rules hand to functions: refused ones are tried again, or go to the target's dead letters.

Source: Amazon EventBridge User Guide, "How EventBridge retries delivering events" and "Using dead-letter queues to
process undelivered events".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cicada_local.functions import InvokeResult, LambdaApiError, Permits, permit_all
from cicada_local.functions.async_events import Send, send_nowhere
from cicada_local.functions.errors import ResourceNotFound, TooManyRequests

logger = logging.getLogger(__name__)

MAX_RETRIES, MAX_AGE_S = 185, 86_400.0
"""EventBridge's, where a target sets none."""
FIRST_DELAY_S, LONGEST_DELAY_S = 1.0, 60.0
"""Between tries; AWS publishes no figures."""


class Invoke(Protocol):
    """Invokes a function, see :meth:`cicada_local.functions.FunctionService.invoke`."""

    def __call__(self, name_or_arn: str, payload: bytes, *, invocation_type: str) -> Awaitable[InvokeResult]:
        """Raises LambdaApiError when the service refuses."""
        ...


@dataclass(frozen=True)
class Target:
    """A function that a rule invokes."""

    function_arn: str
    input: str | None = None
    """The event, as JSON; EventBridge's own when None."""
    dead_letters: str = ""
    """The ARN of the queue for events that cannot be handed on."""
    max_retries: int = MAX_RETRIES
    max_age_s: float = MAX_AGE_S

    @classmethod
    def of(cls, deployed: Mapping[str, Any]) -> Target:
        """A target of a deployed rule."""
        retry = deployed.get("RetryPolicy", {})
        return cls(
            deployed["Arn"],
            deployed.get("Input"),
            deployed.get("DeadLetterConfig", {}).get("Arn", ""),
            int(retry.get("MaximumRetryAttempts", MAX_RETRIES)),
            float(retry.get("MaximumEventAgeInSeconds", MAX_AGE_S)),
        )


class RuleTargets:
    """Hands events to functions. All methods belong to one event loop."""

    def __init__(
        self,
        invoke: Invoke,
        *,
        permits: Permits = permit_all,
        count: Callable[[str, str], None] = lambda *_: None,
        send: Send = send_nowhere,
        second_s: float = 1.0,
    ) -> None:
        """Take what it needs.

        Args:
            invoke: invokes a function.
            permits: whether a function's policy lets a rule invoke it.
            count: told of each metric of EventBridge's that rises by one, with the rule's name.
            send: sends messages to queues.
            second_s: how long a second between tries takes.
        """
        self._invoke = invoke
        self._permits = permits
        self._count = count
        self._send = send
        self._second_s = second_s
        self._under_way: set[asyncio.Task[None]] = set()

    async def deliver(self, rule_arn: str, target: Target, payload: bytes) -> None:
        """Hand an event on; a throttled one is tried again beside its caller."""
        if await self._try(rule_arn, target, payload):
            return
        task = asyncio.ensure_future(self._try_again(rule_arn, target, payload))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _try_again(self, rule_arn: str, target: Target, payload: bytes) -> None:
        delay_s, waited_s, tries = FIRST_DELAY_S, 0.0, 0
        while tries < target.max_retries and waited_s + delay_s <= target.max_age_s:
            await asyncio.sleep(delay_s * self._second_s)
            waited_s += delay_s
            delay_s = min(2 * delay_s, LONGEST_DELAY_S)
            tries += 1
            if await self._try(rule_arn, target, payload):
                return
        condition = "MaximumRetryAttempts" if tries >= target.max_retries else "MaximumEventAgeInSeconds"
        further = {"EXHAUSTED_RETRY_CONDITION": condition, "RETRY_ATTEMPTS": str(tries)}
        self._failed(rule_arn, target, payload, "THROTTLING", "Rate Exceeded.", further)

    async def _try(self, rule_arn: str, target: Target, payload: bytes) -> bool:
        """Whether an event is done with: handed on, or refused for good."""
        name = rule_arn.rpartition("/")[2]
        if not self._permits(target.function_arn, rule_arn):
            self._failed(rule_arn, target, payload, "NO_PERMISSIONS", f"{rule_arn} may not invoke the function")
            return True
        try:
            await self._invoke(target.function_arn, payload, invocation_type="Event")
        except TooManyRequests:
            return False
        except LambdaApiError as error:
            code = "NO_RESOURCE" if isinstance(error, ResourceNotFound) else "SDK_CLIENT_ERROR"
            self._failed(rule_arn, target, payload, code, str(error))
            return True
        self._count("Invocations", name)
        return True

    def _failed(
        self,
        rule_arn: str,
        target: Target,
        payload: bytes,
        code: str,
        message: str,
        further: Mapping[str, str] | None = None,
    ) -> None:
        name = rule_arn.rpartition("/")[2]
        logger.warning("%s could not invoke %s: %s: %s", name, target.function_arn, code, message)
        self._count("FailedInvocations", name)
        if not target.dead_letters:
            return
        attributes = {
            "RULE_ARN": rule_arn,
            "TARGET_ARN": target.function_arn,
            "ERROR_CODE": code,
            "ERROR_MESSAGE": message,
            **(further or {}),
        }
        failure = self._send(rule_arn, target.dead_letters, payload.decode(), attributes)
        self._count("InvocationsSentToDlq" if failure is None else "InvocationsFailedToBeSentToDlq", name)
