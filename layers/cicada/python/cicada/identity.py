"""The caller's identity, which the authorizer attached to the connection; checked for every message."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cicada.errors import Unauthorized

ANONYMOUS = "anonymous"
"""The subject of all callers if there is no authorizer, which only the local cloud allows."""


@dataclass(frozen=True)
class Caller:
    """Who sent a frame, and over which connection; ``frame_id`` is the gateway's id of the frame."""

    subject: str
    connection_id: str
    frame_id: str
    tenant: str | None = None
    """The user's tenant, if the deployment reads one from the token."""
    expires_at: int | None = None
    """When the connection's token expires, in epoch seconds; None without an authorizer."""
    issued_at: int | None = None
    """When the token was issued, in epoch seconds; None if it does not say."""
    groups: tuple[str, ...] = ()
    """The user's groups, as far as the authorizer passes them on."""

    @property
    def owner(self) -> str:
        """The owner of the caller's requests: a subject does not see in one tenant what it asked in another."""
        return owner_of(self.subject, self.tenant)


def owner_of(subject: str, tenant: str | None) -> str:
    """The owner of a subject's requests in a tenant."""
    return subject if tenant is None else f"{quote(tenant, safe='')}/{subject}"


def asker_of(subject: str) -> str:
    """A subject's pseudonym in the logs: 8 hexadecimal digits."""
    return hashlib.sha256(subject.encode()).hexdigest()[:8]


def caller_of(event: Mapping[str, Any], *, anonymous: bool, now_s: float) -> Caller:
    """The caller of an API Gateway WebSocket event, from its request context only: a body cannot name another caller.

    ``anonymous`` says that the deployment has no authorizer. Raises Unauthorized if the connection has no identity, or
    its token has expired.
    """
    context = event["requestContext"]
    connection_id = str(context["connectionId"])
    frame_id = str(context.get("messageId") or context["requestId"])
    if anonymous:
        return Caller(ANONYMOUS, connection_id, frame_id)
    identity = context.get("authorizer") or {}
    subject, expires_at = identity.get("subject"), identity.get("expires_at")
    if not subject or not expires_at:
        raise Unauthorized("the connection has no identity")
    if int(expires_at) <= now_s:
        raise Unauthorized("the token has expired")
    tenant, issued_at, groups = identity.get("tenant"), identity.get("issued_at"), identity.get("groups")
    return Caller(
        str(subject),
        connection_id,
        frame_id,
        tenant=None if tenant is None else str(tenant),
        expires_at=int(expires_at),
        issued_at=None if issued_at is None else int(issued_at),
        groups=tuple(str(groups).split(",")) if groups else (),
    )
