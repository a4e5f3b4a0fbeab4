"""``runtime_client``, awslambdaric's compiled client of the Runtime API, in Python: for systems without its wheel.

The same four functions with the same arguments and results; see ``awslambdaric.lambda_runtime_client``, their caller.
"""

import http.client
import os
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

_INVOCATION = "/2018-06-01/runtime/invocation"
_HEADERS = (
    "Lambda-Runtime-Aws-Request-Id",
    "Lambda-Runtime-Trace-Id",
    "Lambda-Runtime-Invoked-Function-Arn",
    "Lambda-Runtime-Client-Context",
    "Lambda-Runtime-Cognito-Identity",
    "Lambda-Runtime-Aws-Tenant-Id",
    "Lambda-Runtime-Invocation-Id",
    "Content-Type",
)
_identity: dict[str, str] = {}


def initialize_client(user_agent: str) -> None:
    """Remember how this client names itself."""
    _identity["User-Agent"] = user_agent


def next() -> tuple[bytes, dict[str, Any]]:
    """Wait for the next invocation: its event, and its headers."""
    body, headers = _call("GET", f"{_INVOCATION}/next", None, {}, HTTPStatus.OK)
    told: dict[str, Any] = {name: headers.get(name) for name in _HEADERS}
    told["Lambda-Runtime-Deadline-Ms"] = int(headers["Lambda-Runtime-Deadline-Ms"])
    return body, told


def post_invocation_result(invoke_id: str, data: bytes, content_type: str, _invocation_id: str | None = None) -> None:
    """Report what the handler returned."""
    headers = {"Content-Type": content_type}
    _call("POST", f"{_INVOCATION}/{quote(invoke_id)}/response", data, headers, HTTPStatus.ACCEPTED)


def post_error(invoke_id: str, error: str, _xray_fault: str, _invocation_id: str | None = None) -> None:
    """Report what the handler raised."""
    headers = {"Content-Type": "application/json", "Lambda-Runtime-Function-Error-Type": "Unhandled"}
    _call("POST", f"{_INVOCATION}/{quote(invoke_id)}/error", error.encode(), headers, HTTPStatus.ACCEPTED)


def _call(
    method: str, path: str, body: bytes | None, headers: dict[str, str], expected: HTTPStatus
) -> tuple[bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        connection.request(method, path, body, {**_identity, **headers})
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    if response.status != expected:
        raise RuntimeError(f"the Runtime API answered {method} {path} with {response.status}: {content!r}")
    return content, response.headers
