"""The events that authorizers and integrations get.

Source: API Gateway developer guide, "Example event input for $connect, $disconnect and $default", and "Create a Lambda
REQUEST authorizer function" for WebSocket APIs.
"""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from cicada_local.gateway.config import ApiConfig

_HOP_BY_HOP = frozenset({"connection", "upgrade"})


def new_id() -> str:
    """A connection's, message's or request's identifier: 16 characters, as API Gateway's look."""
    return base64.urlsafe_b64encode(secrets.token_bytes(11)).decode()


@dataclass(frozen=True)
class Client:
    """A connection as events tell of it."""

    api: ApiConfig
    connection_id: str
    connected_at_ms: int
    source_ip: str
    user_agent: str | None
    authorizer: Mapping[str, str | int] | None = None
    """What the authorizer gave, which every later event carries."""


@dataclass(frozen=True)
class Upgrade:
    """The HTTP side of a client's upgrade request."""

    headers: tuple[tuple[str, str], ...]
    query: tuple[tuple[str, str], ...] = field(default=())

    @classmethod
    def of(cls, request: web.Request) -> Upgrade:
        """Take it from the request, with what Amazon's front adds."""
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP]
        added = {
            "X-Amzn-Trace-Id": f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)}",
            "X-Forwarded-For": request.remote or "",
            "X-Forwarded-Port": str(request.url.port),
            "X-Forwarded-Proto": request.scheme,
        }
        return cls((*headers, *added.items()), tuple(request.query.items()))

    def fields(self) -> dict[str, Any]:
        """The event's fields for it; the query's are absent when there is none."""
        fields: dict[str, Any] = {"headers": dict(self.headers), "multiValueHeaders": _grouped(self.headers)}
        if self.query:
            fields["queryStringParameters"] = dict(self.query)
            fields["multiValueQueryStringParameters"] = _grouped(self.query)
        return fields


def authorizer_event(client: Client, upgrade: Upgrade) -> dict[str, Any]:
    """What a REQUEST authorizer is asked."""
    return {
        "type": "REQUEST",
        "methodArn": client.api.route_arn("$connect"),
        **upgrade.fields(),
        "stageVariables": dict(client.api.stage_variables),
        "requestContext": _context(client, "$connect", "CONNECT"),
    }


def connect_event(client: Client, upgrade: Upgrade) -> dict[str, Any]:
    """What the ``$connect`` integration gets."""
    return _event(client, {**upgrade.fields(), "requestContext": _context(client, "$connect", "CONNECT")})


def message_event(client: Client, route_key: str, request_id: str, body: str | bytes) -> dict[str, Any]:
    """What a message's integration gets; a binary message comes in base64."""
    context = _context(client, route_key, "MESSAGE", request_id=request_id, messageId=new_id())
    text = base64.b64encode(body).decode() if isinstance(body, bytes) else body
    return _event(client, {"requestContext": context, "body": text}, is_base64=isinstance(body, bytes))


def disconnect_event(client: Client, code: int, reason: str) -> dict[str, Any]:
    """What the ``$disconnect`` integration gets."""
    context = _context(client, "$disconnect", "DISCONNECT", disconnectStatusCode=code, disconnectReason=reason)
    headers = (("Host", client.api.domain_name), ("x-api-key", ""), ("X-Forwarded-For", ""), ("x-restapi", ""))
    return _event(client, {"headers": dict(headers), "multiValueHeaders": _grouped(headers), "requestContext": context})


def _event(client: Client, fields: dict[str, Any], *, is_base64: bool = False) -> dict[str, Any]:
    if client.api.stage_variables:
        fields["stageVariables"] = dict(client.api.stage_variables)
    return {**fields, "isBase64Encoded": is_base64}


def _context(client: Client, route_key: str, event_type: str, request_id: str = "", **more: Any) -> dict[str, Any]:
    now = time.time()
    request_id = request_id or new_id()
    context = {
        "routeKey": route_key,
        "eventType": event_type,
        "extendedRequestId": request_id,
        "requestTime": datetime.fromtimestamp(now, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "messageDirection": "IN",
        "stage": client.api.stage,
        "connectedAt": client.connected_at_ms,
        "requestTimeEpoch": int(now * 1000),
        "identity": {
            "sourceIp": client.source_ip,
            **({"userAgent": client.user_agent} if client.user_agent is not None else {}),
        },
        "requestId": request_id,
        "domainName": client.api.domain_name,
        "connectionId": client.connection_id,
        "apiId": client.api.api_id,
        **more,
    }
    if client.authorizer is not None:
        context["authorizer"] = dict(client.authorizer)
    return context


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name, value in pairs:
        grouped.setdefault(name, []).append(value)
    return grouped
