"""What becomes of an asynchronous event that its function fails on: retries, then a destination or a dead-letter queue.

Source: AWS Lambda Developer Guide, "How Lambda handles errors and retries with asynchronous invocation" and "Capturing
records of Lambda asynchronous invocations".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from cicada_local.functions.config import FunctionConfig, InvokeResult

DEAD_LETTERS = "dead_letter_queue"
"""Where a deployed function keeps the dead-letter queue of its template, which moto leaves out."""
EXHAUSTED, TOO_OLD = "RetriesExhausted", "EventAgeExceeded"

Send = Callable[[str, str, str, Mapping[str, str]], str | None]
"""Sends a message for a role or a rule: its ARN, the queue's, the text, its attributes. Says what went wrong, if so."""


def send_nowhere(sender: str, queue: str, text: str, attributes: Mapping[str, str]) -> str | None:  # noqa: ARG001
    """Where there are no queues."""
    return f"the queue {queue} does not exist"


@dataclass(frozen=True)
class DroppedEvent:
    """An event that Lambda gives up."""

    request_id: str
    payload: bytes
    condition: str
    attempts: int
    result: InvokeResult | None
    """Of the last attempt; None if there was none."""

    def record(self, config: FunctionConfig) -> str:
        """What a destination gets."""
        document: dict[str, object] = {
            "version": "1.0",
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "requestContext": {
                "requestId": self.request_id,
                "functionArn": f"{config.arn}:$LATEST",
                "condition": self.condition,
                "approximateInvokeCount": self.attempts,
            },
            "requestPayload": json.loads(self.payload),
        }
        if self.result is not None:
            document["responseContext"] = {
                "statusCode": 200,
                "executedVersion": "$LATEST",
                "functionError": self.result.function_error,
            }
            document["responsePayload"] = json.loads(self.result.payload or b"null")
        return json.dumps(document)

    def attributes(self) -> dict[str, str]:
        """What a dead-letter queue is told beside the event itself."""
        told = {"RequestID": self.request_id, "ErrorCode": "200"}
        if self.result is None:
            return {**told, "ErrorCode": "429"}
        error = json.loads(self.result.payload or b"{}")
        message = error.get("errorMessage") if isinstance(error, dict) else None
        return {**told, "ErrorMessage": str(message)[:1024]} if message else told


def give_up(config: FunctionConfig, event: DroppedEvent, send: Send, count: Callable[[str], None]) -> None:
    """Hand an event on to wherever its function's failures go, and count what became of it.

    Args:
        config: the function's.
        event: given up.
        send: sends messages.
        count: told of each metric of Lambda's that rises by one.
    """
    configured = config.asynchronous
    if configured.on_failure and send(config.role, configured.on_failure, event.record(config), {}) is not None:
        count("DestinationDeliveryFailures")
    if configured.dead_letter:
        failure = send(config.role, configured.dead_letter, event.payload.decode(), event.attributes())
        if failure is not None:
            count("DeadLetterErrors")
    count("AsyncEventsDropped")
