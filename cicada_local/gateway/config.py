"""What the gateway is told of an API, and the limits that it holds clients and callers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class AuthorizerConfig:
    """A Lambda authorizer of type REQUEST; WebSocket APIs ask it on ``$connect`` only."""

    function_arn: str
    identity_sources: Sequence[str] = ()
    """Such as ``route.request.querystring.token`` or ``route.request.header.Authorization``: a client that leaves one
    out gets 401, and the function is not asked."""
    authorizer_id: str = ""


@dataclass(frozen=True)
class RouteConfig:
    """A route with a Lambda proxy integration (AWS_PROXY)."""

    function_arn: str
    authorizer: AuthorizerConfig | None = None
    two_way: bool = False
    """The route has a route response: what the function returns as ``body`` is sent to the client."""


@dataclass(frozen=True)
class AccessLog:
    """Where and how a stage logs its connects, messages and disconnects."""

    group: str
    """The log group's name."""
    form: str
    """A line, with ``$context`` variables."""


@dataclass(frozen=True)
class ApiConfig:
    """One stage of a WebSocket API."""

    api_id: str
    stage: str
    routes: Mapping[str, RouteConfig]
    """By route key: ``$connect``, ``$disconnect``, ``$default`` and what the selection expression can yield."""
    route_selection_expression: str = "$request.body.action"
    region: str = "us-east-1"
    account_id: str = "123456789012"
    stage_variables: Mapping[str, str] = field(default_factory=dict)
    access_log: AccessLog | None = None

    @property
    def domain_name(self) -> str:
        """The host that AWS would give the API, as its events tell it."""
        return f"{self.api_id}.execute-api.{self.region}.amazonaws.com"

    def authorizer_arn(self, authorizer_id: str) -> str:
        """What a function's policy must name so that an authorizer may invoke it."""
        return f"arn:aws:execute-api:{self.region}:{self.account_id}:{self.api_id}/authorizers/{authorizer_id}"

    def route_arn(self, route_key: str) -> str:
        """What an authorizer's policy is matched against, and a function's policy must name."""
        return f"arn:aws:execute-api:{self.region}:{self.account_id}:{self.api_id}/{self.stage}/{route_key}"


@dataclass(frozen=True)
class Limits:
    """Amazon's limits; tests pass smaller ones. Sources are in CONFORMANCE.md."""

    idle_s: float = 600.0
    """Without a message in either direction, the connection is closed with 1001. Control frames are no messages."""
    lifetime_s: float = 7200.0
    frame_bytes: int = 32 * 1024
    message_bytes: int = 128 * 1024
    integration_timeout_s: float = 29.0
    send_buffer_bytes: int = 256 * 1024
    """What may wait for a client that does not read, before posts are answered with 429. AWS publishes no figure."""
    authorizer_result_bytes: int = 8 * 1024
    url_chars: int = 4096
