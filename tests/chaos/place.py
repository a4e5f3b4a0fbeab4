"""Where the askers go, and as whom."""

from __future__ import annotations

from dataclasses import dataclass

from cicada.identity import ANONYMOUS


@dataclass(frozen=True)
class Place:
    """A deployment, as one user reaches it."""

    url: str
    """Of its WebSocket."""
    token: str | None = None
    """What its authorizer wants; None where it has none."""
    subject: str = ANONYMOUS
    """Who the deployment takes the user for."""


def bearer(token: str | None) -> dict[str, str] | None:
    """The headers that carry a token."""
    return {"Authorization": f"Bearer {token}"} if token else None
