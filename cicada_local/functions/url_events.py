"""What a function gets of a request to its URL, and what the client gets of the function's answer.

Source: AWS Lambda Developer Guide, "Invoking Lambda function URLs", payload format 2.0.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

from multidict import CIMultiDict

STREAMED = "application/vnd.awslambda.http-integration-response"
SEPARATOR = bytes(8)
MAX_PRELUDE_BYTES = 16 * 1024

_TEXT = ("text/", "application/json", "application/javascript", "application/xml")
"""Bodies of these types, and of those that end with +json or +xml, come as text if they are ASCII."""
_REMAPPED = frozenset({"connection", "content-length", "date", "server", "www-authenticate"})
"""Headers of a response that Lambda sets itself or renames, so that no browser asks for a password."""
_NOT_PASSED_ON = frozenset({"connection", "transfer-encoding"})


class ResponseInvalid(Exception):
    """The function's answer is none of a function URL."""


def event_of(
    *,
    url_id: str,
    domain: str,
    method: str,
    raw_path: str,
    query: str,
    headers: Iterable[tuple[str, str]],
    body: bytes,
    source_ip: str,
    port: int,
) -> dict[str, Any]:
    """The event of a request.

    Args:
        url_id: the first label of the URL's domain.
        domain: the whole domain.
        method: the HTTP method.
        raw_path: the path as it was sent.
        query: the query string as it was sent.
        headers: as they were sent.
        body: empty where there was none.
        source_ip: the client's.
        port: the one that it spoke to.
    """
    named: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower not in _NOT_PASSED_ON:
            named[lower] = f"{named[lower]},{value}" if lower in named else value
    cookies = [part.strip() for part in named.pop("cookie", "").split(";") if part.strip()]
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    now = time.time()
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": raw_path,
        "rawQueryString": query,
        "headers": {
            **named,
            "x-amzn-trace-id": f"Root=1-{int(now):08x}-{uuid.uuid4().hex[:24]}",
            "x-forwarded-for": source_ip,
            "x-forwarded-port": str(port),
            "x-forwarded-proto": "http",
        },
        "requestContext": {
            "accountId": "anonymous",
            "apiId": url_id,
            "domainName": domain,
            "domainPrefix": url_id,
            "http": {
                "method": method,
                "path": unquote(raw_path),
                "protocol": "HTTP/1.1",
                "sourceIp": source_ip,
                "userAgent": named.get("user-agent", ""),
            },
            "requestId": str(uuid.uuid4()),
            "routeKey": "$default",
            "stage": "$default",
            "time": datetime.fromtimestamp(now, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "timeEpoch": int(now * 1000),
        },
        "isBase64Encoded": False,
    }
    if parameters:
        event["queryStringParameters"] = parameters
    if cookies:
        event["cookies"] = cookies
    if body:
        event["isBase64Encoded"] = not _is_text(named.get("content-type", ""), body)
        event["body"] = base64.b64encode(body).decode() if event["isBase64Encoded"] else body.decode("ascii")
    return event


def _is_text(content_type: str, body: bytes) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return body.isascii() and (kind.startswith(_TEXT) or kind.endswith(("+json", "+xml")))


def streamed_head(prelude: bytes) -> tuple[int, CIMultiDict[str]]:
    """Status and headers of a streamed response from the JSON before its separator. Raises ResponseInvalid."""
    try:
        document = json.loads(prelude)
        status = int(document.get("statusCode", 200))
        headers = dict(document.get("headers") or {})
        cookies = [str(cookie) for cookie in document.get("cookies") or ()]
    except (ValueError, TypeError, AttributeError) as error:
        raise ResponseInvalid(f"the response does not begin with its status and headers: {error}") from error
    return status, head(headers, cookies)


def buffered(payload: bytes) -> tuple[int, CIMultiDict[str], bytes]:
    """Status, headers and body of a buffered answer. Raises ResponseInvalid."""
    answer = json.loads(payload or b"null")
    if not isinstance(answer, dict) or "statusCode" not in answer:
        return 200, head({"content-type": "application/json"}, ()), payload
    body = str(answer.get("body") or "").encode()
    try:
        content = base64.b64decode(body, validate=True) if answer.get("isBase64Encoded") else body
        status, headers = int(answer["statusCode"]), dict(answer.get("headers") or {})
    except (ValueError, TypeError) as error:
        raise ResponseInvalid(str(error)) from error
    return status, head({"content-type": "application/json", **headers}, answer.get("cookies") or ()), content


def head(headers: Mapping[str, Any], cookies: Iterable[str]) -> CIMultiDict[str]:
    """A response's headers as the client gets them."""
    found: CIMultiDict[str] = CIMultiDict()
    for name, value in headers.items():
        if name.lower() != "transfer-encoding":
            found[f"x-amzn-Remapped-{name}" if name.lower() in _REMAPPED else name] = str(value)
    for cookie in cookies:
        found.add("Set-Cookie", cookie)
    return found
