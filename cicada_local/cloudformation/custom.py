"""Custom resources: CloudFormation invokes their function and waits for the response at a URL of its own.

Source: AWS CloudFormation user guide, "Custom resource request and response reference". As on AWS the function is
invoked asynchronously, and what it returns or raises does not count: only a response, or none in time.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import urllib.request
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import moto.cloudformation.parsing
from aiohttp import web

from cicada_local.cloudformation.base import Declaration, Resource, define
from cicada_local.places import REGION

PATH = "/_cicada/custom-resources"
"""Where responses are put; below it, each request has a place of its own."""

SERVICE_TIMEOUT_S = 3600
"""How long CloudFormation waits where the template does not say."""
MAX_RESPONSE_BYTES = 4096
MAX_PHYSICAL_ID_BYTES = 1024
_INVOKE_TIMEOUT_S = 30.0


class CustomResourceFailed(Exception):
    """The function has told a failure, or nothing in time, or nothing that is a response."""


@dataclass
class _Pending:
    """A request whose response is awaited."""

    signature: str
    answered: threading.Event = field(default_factory=threading.Event)
    body: bytes = b""


_pending: dict[str, _Pending] = {}


class CustomResourceResponses:
    """Takes the responses of functions, as the presigned URLs of S3 do."""

    def add_routes(self, app: web.Application) -> None:
        """Add the route."""
        app.router.add_put(f"{PATH}/{{id}}", self._take)

    async def _take(self, request: web.Request) -> web.Response:
        pending = _pending.get(request.match_info["id"])
        signed = pending is not None and request.query.get("Signature") == pending.signature
        # The URL is signed for a request without a content type.
        if pending is None or not signed or request.headers.get("Content-Type"):
            return web.Response(status=403, text="<Error><Code>SignatureDoesNotMatch</Code></Error>")
        pending.body = await request.read()
        pending.answered.set()
        return web.Response()


def _ask(kind: str, asked: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request to the function, and return its response.

    Raises:
        CustomResourceFailed: there is none, or it tells a failure.
    """
    request_id, pending = str(uuid.uuid4()), _Pending(secrets.token_urlsafe())
    _pending[request_id] = pending
    base = f"http://localhost:{os.environ['MOTO_PORT']}"
    event = {
        "RequestType": kind,
        "ResponseURL": f"{base}{PATH}/{request_id}?Signature={pending.signature}",
        "RequestId": request_id,
        "ResourceProperties": _texts(properties),
        **asked,
    }
    try:
        _invoke(base, properties["ServiceToken"], event)
        timeout_s = int(properties.get("ServiceTimeout", SERVICE_TIMEOUT_S))
        if not pending.answered.wait(timeout_s):
            raise CustomResourceFailed(f"the custom resource did not respond within {timeout_s} s")
    finally:
        del _pending[request_id]
    return _read(pending.body, event)


def _invoke(base: str, function: str, event: Mapping[str, Any]) -> None:
    scope = f"{REGION}/lambda/aws4_request"
    request = urllib.request.Request(  # noqa: S310 - the front server's
        f"{base}/2015-03-31/functions/{function}/invocations",
        data=json.dumps(event).encode(),
        method="POST",
        headers={
            "X-Amz-Invocation-Type": "Event",
            "Authorization": f"AWS4-HMAC-SHA256 Credential=local/20260101/{scope}, Signature=0",
        },
    )
    with urllib.request.urlopen(request, timeout=_INVOKE_TIMEOUT_S):  # noqa: S310
        return


def _read(body: bytes, event: Mapping[str, Any]) -> dict[str, Any]:
    if len(body) > MAX_RESPONSE_BYTES:
        raise CustomResourceFailed("Response object is too long.")
    try:
        response = json.loads(body)
    except ValueError as error:
        raise CustomResourceFailed(f"Invalid response object: {error}") from error
    if not isinstance(response, dict) or response.get("Status") not in ("SUCCESS", "FAILED"):
        raise CustomResourceFailed("Invalid response object: Value of property Status must be SUCCESS or FAILED")
    wrong = [name for name in ("StackId", "RequestId", "LogicalResourceId") if response.get(name) != event[name]]
    if wrong:
        raise CustomResourceFailed(f"Invalid response object: {', '.join(wrong)} must be the request's")
    if response["Status"] == "FAILED":
        reason = response.get("Reason") or "See the details in CloudWatch Log Stream"
        raise CustomResourceFailed(
            f"Received response status [FAILED] from custom resource. Message returned: {reason}"
        )
    physical_id = response.get("PhysicalResourceId")
    if not isinstance(physical_id, str) or not 0 < len(physical_id.encode()) <= MAX_PHYSICAL_ID_BYTES:
        raise CustomResourceFailed("Invalid PhysicalResourceId")
    return response


def _texts(value: Any) -> Any:
    """Properties as a function gets them: CloudFormation writes numbers and booleans as texts."""
    match value:
        case dict():
            return {name: _texts(part) for name, part in value.items()}
        case list():
            return [_texts(part) for part in value]
        case bool():
            return str(value).lower()
        case _:
            return str(value)


class CustomResource(Resource):
    """One custom resource of a stack."""

    def __init__(self, asked: Mapping[str, Any], properties: Mapping[str, Any], response: Mapping[str, Any]) -> None:
        """Keep what its further requests have to tell."""
        super().__init__(str(response["PhysicalResourceId"]), response.get("Data", {}), remove=self._delete)
        self.asked = asked
        self.properties = properties

    def _told(self) -> dict[str, Any]:
        return {**self.asked, "PhysicalResourceId": self.physical_resource_id}

    def updated(self, properties: Mapping[str, Any]) -> CustomResource:
        """What it becomes with other properties. Another physical id means another resource: the first is deleted."""
        told = {**self._told(), "OldResourceProperties": _texts(self.properties)}
        after = CustomResource(self.asked, properties, _ask("Update", told, properties))
        if after.physical_resource_id != self.physical_resource_id:
            self._delete()
        return after

    def _delete(self) -> None:
        _ask("Delete", self._told(), self.properties)


def _create(declaration: Declaration) -> CustomResource:
    asked = {
        "StackId": declaration.stack_id,
        "ResourceType": declaration.resource_type,
        "LogicalResourceId": declaration.logical_id,
    }
    return CustomResource(asked, declaration.properties, _ask("Create", asked, declaration.properties))


def _update(resource: CustomResource, declaration: Declaration) -> CustomResource:
    return resource.updated(declaration.properties)


def delete_first(stack_resources: Any) -> None:
    """Delete a stack's custom resources: their functions, and what these work on, are still there.

    moto deletes in no order; CloudFormation deletes what depends on others before them.
    """
    for logical_id, resource in list(stack_resources._parsed_resources.items()):
        if isinstance(resource, CustomResource):
            resource._delete()
            del stack_resources._parsed_resources[logical_id]


_parsing: Any = moto.cloudformation.parsing
_parsing.CustomModel = define("AWS::CloudFormation::CustomResource", create=_create, update=_update)
