"""CloudFormation's protocol for custom resources: a request comes as an event, the response goes to a presigned URL.

Source: AWS CloudFormation user guide, "Custom resource request and response reference". A stack operation waits for the
response, by default for an hour, so :func:`respond` sends one whatever happens.
"""

from __future__ import annotations

import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

logger = logging.getLogger(__name__)

MAX_REASON_CHARS = 500
"""A response may have 4,096 bytes; a character takes six at most."""
PUT_ATTEMPTS = 4
PUT_TIMEOUT_S = 10.0
PUT_PAUSE_S = 1.0
"""Before the second attempt; doubled before each further one."""

Send = Callable[[str, bytes], None]


@dataclass(frozen=True)
class ResourceRequest:
    """What CloudFormation asks for."""

    kind: Literal["Create", "Update", "Delete"]
    resource_type: str
    """As the template has it, for example ``Custom::PageFiles``."""
    properties: Mapping[str, Any]
    """The template's. CloudFormation turns numbers and booleans into strings."""
    old_properties: Mapping[str, Any] = field(default_factory=dict)
    """Those before an update."""


def respond(
    event: Mapping[str, Any], physical_id: str, handle: Callable[[ResourceRequest], None], send: Send | None = None
) -> None:
    """Handle a request and send the response.

    Args:
        event: as CloudFormation invokes the function with it.
        physical_id: names what the resource stands for. It must not change, or CloudFormation deletes the "old" one.
        handle: does what is asked; its exception becomes the reason of the failure.
        send: puts the response to its URL; :func:`put` when None.

    Raises:
        OSError: the response could not be sent. CloudFormation then waits for the resource's ``ServiceTimeout``.
    """
    response: dict[str, Any] = {
        "Status": "SUCCESS",
        "PhysicalResourceId": event.get("PhysicalResourceId") or physical_id,
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    try:
        handle(
            ResourceRequest(
                kind=event["RequestType"],
                resource_type=event["ResourceType"],
                properties=event["ResourceProperties"],
                old_properties=event.get("OldResourceProperties", {}),
            )
        )
    except Exception as error:
        logger.exception("custom resource failed", extra={"resource": event["LogicalResourceId"]})
        response |= {"Status": "FAILED", "Reason": f"{type(error).__name__}: {error}"[:MAX_REASON_CHARS]}
    (send or put)(event["ResponseURL"], json.dumps(response, ensure_ascii=False).encode(errors="replace"))


def put(url: str, body: bytes, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Put a response to a presigned URL; a failure that may pass is tried again.

    Raises:
        OSError: it could not be put.
    """
    # The URL is signed without a content type, so the request must not have one.
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})  # noqa: S310
    for attempt in range(1, PUT_ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(request, timeout=PUT_TIMEOUT_S):  # noqa: S310 (CloudFormation's URL)
                return
        except urllib.error.HTTPError as error:
            if error.code < 500 or attempt == PUT_ATTEMPTS:
                raise
        except OSError:
            if attempt == PUT_ATTEMPTS:
                raise
        sleep(PUT_PAUSE_S * 2 ** (attempt - 1))
