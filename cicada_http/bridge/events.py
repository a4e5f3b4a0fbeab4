"""A function URL's event as an ASGI request.

Source: AWS Lambda Developer Guide, "Invoking Lambda function URLs", payload format 2.0.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

VERSION = "2.0"
REQUEST_ID = "aws.request_id"
"""The key of a scope under which the application finds Lambda's request id."""
_DEFAULT_PORTS = {"https": 443, "http": 80}
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
"""Lambda has read the whole body: they say nothing of what the application gets."""


class EventInvalid(Exception):
    """The event does not come from a function URL; the message says what is wrong."""


@dataclass(frozen=True)
class HttpRequest:
    """A request as the application gets it."""

    scope: dict[str, Any]
    """Of type ``http``."""
    body: bytes


def read_event(event: object, request_id: str) -> HttpRequest:
    """Read a function URL's event.

    Args:
        event: parsed JSON.
        request_id: Lambda's.

    Raises:
        EventInvalid: it is another service's event, or malformed.
    """
    event = _object(event, "event")
    if event.get("version") != VERSION:
        raise EventInvalid(f"version: must be {VERSION}")
    context = _object(event.get("requestContext"), "requestContext")
    http = _object(context.get("http"), "requestContext.http")
    raw_path = _text(event, "rawPath") or "/"
    headers = list(_headers(event))
    scheme = dict(headers).get(b"x-forwarded-proto", b"https").decode("latin-1")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": _text(http, "method").upper(),
        "scheme": scheme,
        "path": unquote(raw_path),
        "raw_path": raw_path.encode(),
        "query_string": _text(event, "rawQueryString").encode(),
        "root_path": "",
        "headers": headers,
        "client": (_text(http, "sourceIp"), 0),
        "server": (_text(context, "domainName"), _DEFAULT_PORTS.get(scheme)),
        REQUEST_ID: request_id,
    }
    if not scope["method"]:
        raise EventInvalid("requestContext.http.method: is missing")
    return HttpRequest(scope, _body(event))


def _headers(event: Mapping[str, Any]) -> Iterator[tuple[bytes, bytes]]:
    headers = _object(event.get("headers") or {}, "headers")
    for name in headers:
        if name.lower() not in _HOP_BY_HOP:
            yield _bytes(name.lower()), _bytes(_text(headers, name))
    cookies = event.get("cookies") or []
    if not isinstance(cookies, list) or not all(isinstance(cookie, str) for cookie in cookies):
        raise EventInvalid("cookies: must be a list of strings")
    if cookies:
        yield b"cookie", _bytes("; ".join(cookies))


def _body(event: Mapping[str, Any]) -> bytes:
    body = _text(event, "body")
    if not event.get("isBase64Encoded"):
        return body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EventInvalid("body: is not base64") from error


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise EventInvalid(f"{name}: must be an object")
    return value


def _text(values: Mapping[str, Any], name: str) -> str:
    """A string; empty where there is none."""
    value = values.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise EventInvalid(f"{name}: must be a string")
    return value


def _bytes(text: str) -> bytes:
    """HTTP's own encoding of headers, or UTF-8 for what does not fit."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
