"""Who is calling: the identity that the authorizer put on the connection, checked on every message."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cicada.errors import Unauthorized

ANONYMOUS = "anonymous"
"""The subject of everybody where the deployment has no authorizer: the local cloud alone."""


@dataclass(frozen=True)
class Caller:
    """Who sent a frame, over which connection; ``frame_id`` is the gateway's id of this very frame."""

    subject: str
    connection_id: str
    frame_id: str
    tenant: str | None = None
    """The asker's tenant, where the deployment reads one from the token."""
    expires_at: int | None = None
    """When the connection's token expires, in epoch seconds; None where the deployment has no authorizer."""

    @property
    def owner(self) -> str:
        """Whose requests these are: a subject in one tenant does not see what it asked in another."""
        return owner_of(self.subject, self.tenant)


def owner_of(subject: str, tenant: str | None) -> str:
    """The name under which a subject's requests are kept, in its tenant."""
    return subject if tenant is None else f"{quote(tenant, safe='')}/{subject}"


def asker_of(subject: str) -> str:
    """A short name for a subject in the logs, which tells askers apart and names none: 8 hexadecimal digits."""
    return hashlib.sha256(subject.encode()).hexdigest()[:8]


def caller_of(event: Mapping[str, Any], *, anonymous: bool, now_s: float) -> Caller:
    """The caller of a WebSocket event, from its request context alone: nothing in a body can name another.

    Args:
        event: as API Gateway hands it to an integration.
        anonymous: whether the deployment has no authorizer.
        now_s: epoch seconds.

    Raises:
        Unauthorized: there is no identity on the connection, or its token has expired.
    """
    context = event["requestContext"]
    connection_id = str(context["connectionId"])
    frame_id = str(context.get("messageId") or context["requestId"])
    if anonymous:
        return Caller(ANONYMOUS, connection_id, frame_id)
    identity = context.get("authorizer") or {}
    subject, expires_at = identity.get("subject"), identity.get("expires_at")
    if not subject or not expires_at:
        raise Unauthorized("the connection carries no identity")
    if int(expires_at) <= now_s:
        raise Unauthorized("the token has expired")
    tenant = identity.get("tenant")
    return Caller(str(subject), connection_id, frame_id, None if tenant is None else str(tenant), int(expires_at))
