"""Faults of the services that moto plays: throttles, errors, slowness, and answers lost on their way back.

Each fault is ``<service>.<kind>`` with the services of :data:`SERVICES`; ``operation`` and ``resource`` limit it, such
as ``operation="UpdateItem"``. ``slow`` waits ``delay_ms``; ``lost_ack`` does what was asked and then closes the
connection without an answer. Two more strike the start of an execution, which AWS promises at least once, after an
acknowledgement that it may lose: ``stepfunctions.lost_start`` acknowledges one that never runs, and
``stepfunctions.duplicate_start`` runs one twice.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from typing import Any
from xml.sax.saxutils import escape

from aiohttp import web

from cicada_local.calls import Call
from cicada_local.faults import Faults

SERVICES = ("dynamodb", "s3", "stepfunctions")
KINDS = ("throttle", "error", "slow", "lost_ack")

_DYNAMODB = "com.amazonaws.dynamodb.v20120810#"
_REFUSALS: dict[tuple[str, str], tuple[int, str, str]] = {  # status, error type, message
    ("dynamodb", "throttle"): (
        400,
        f"{_DYNAMODB}ProvisionedThroughputExceededException",
        "The level of configured provisioned throughput for the table was exceeded.",
    ),
    ("dynamodb", "error"): (500, f"{_DYNAMODB}InternalServerError", "Internal server error"),
    ("stepfunctions", "throttle"): (400, "ThrottlingException", "Rate exceeded"),
    ("stepfunctions", "error"): (500, "InternalServerError", "Internal server error"),
    ("s3", "throttle"): (503, "SlowDown", "Please reduce your request rate."),
    ("s3", "error"): (500, "InternalError", "We encountered an internal error. Please try again."),
}


async def refusal(faults: Faults, call: Call) -> web.Response | None:
    """What to answer in place of the service, if a fault strikes; waits first if it is slow."""
    if call.service not in SERVICES:
        return None
    slow = _take(faults, call, "slow")
    if slow is not None:
        await asyncio.sleep(float(slow.get("delay_ms", 1000)) / 1000)
    for kind in ("throttle", "error"):
        if _take(faults, call, kind) is not None:
            return _refuse(call.service, kind)
    return None


def loses_answer(faults: Faults, call: Call) -> bool:
    """Whether the answer to this call gets lost."""
    return call.service in SERVICES and _take(faults, call, "lost_ack") is not None


def loses_start(faults: Faults, call: Call) -> web.Response | None:
    """What to answer in place of the service, if this start is to be acknowledged and then forgotten."""
    if not _is_start(call) or faults.take("stepfunctions.lost_start", resource=call.resource) is None:
        return None
    lost = call.resource.replace(":stateMachine:", ":express:")
    body = {"executionArn": f"{lost}:{uuid.uuid4()}:{uuid.uuid4()}", "startDate": time.time()}
    return web.json_response(body, content_type="application/x-amz-json-1.0")


def starts_twice(faults: Faults, call: Call) -> bool:
    """Whether this start is to run twice."""
    return _is_start(call) and faults.take("stepfunctions.duplicate_start", resource=call.resource) is not None


def _is_start(call: Call) -> bool:
    return (call.service, call.operation) == ("stepfunctions", "StartExecution")


def _take(faults: Faults, call: Call, kind: str) -> dict[str, Any] | None:
    return faults.take(f"{call.service}.{kind}", operation=call.operation, resource=call.resource)


def _refuse(service: str, kind: str) -> web.Response:
    status, error_type, message = _REFUSALS[service, kind]
    if service == "s3":
        text = f"<Error><Code>{error_type}</Code><Message>{escape(message)}</Message></Error>"
        return web.Response(status=status, text=f'<?xml version="1.0"?>{text}', content_type="application/xml")
    body = json.dumps({"__type": error_type, "message": message})
    return web.Response(status=status, text=body, content_type="application/x-amz-json-1.0")
