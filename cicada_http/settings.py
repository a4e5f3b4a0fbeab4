"""What the function is told by its environment."""

from __future__ import annotations

from typing import Literal

from cicada.settings import Environment


class HttpSettings(Environment):
    """For the function behind the function URL."""

    websocket_url: str
    """Of the deployment that answers."""
    auth: Literal["jwt", "none"] = "jwt"
    """``none`` is for the local cloud only: requests need no token."""
    jwt_issuer: str = ""
    """Whose tokens the deployment accepts: clients are told where to sign in."""
    jwt_scopes: str = ""
    """The scopes that a client should ask for, separated by spaces."""
    allowed_origins: str = ""
    """Origins whose pages may send requests, separated by commas; none when empty."""

    def origins(self) -> frozenset[str]:
        """The allowed origins."""
        return frozenset(filter(None, self.allowed_origins.split(",")))
