"""What the issuer has granted: authorization codes, browser sessions, refresh tokens."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

CODE_LIFETIME_S = 300
SESSION_LIFETIME_S = 3600

_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
"""A SHA-256 in base64url, without padding."""


@dataclass(frozen=True)
class Grant:
    """What a user has granted to a client by signing in."""

    pool_id: str
    client_id: str
    username: str
    scopes: tuple[str, ...]
    nonce: str | None
    auth_time: int
    """When the user signed in, seconds since the epoch."""
    origin_jti: str
    """Common to all tokens of this sign-in."""
    event_id: str


@dataclass(frozen=True)
class Code:
    """What a code stands for."""

    grant: Grant
    redirect_uri: str
    challenge: str | None
    expires_at: float


@dataclass(frozen=True)
class RefreshToken:
    """What a refresh token stands for."""

    grant: Grant
    expires_at: float

    def stored(self) -> dict[str, Any]:
        """It as plain data."""
        return asdict(self)

    @classmethod
    def restored(cls, stored: dict[str, Any]) -> RefreshToken:
        """What :meth:`stored` gave."""
        grant = stored["grant"]
        return cls(Grant(**{**grant, "scopes": tuple(grant["scopes"])}), stored["expires_at"])


@dataclass(frozen=True)
class Session:
    """A browser that has signed in."""

    pool_id: str
    username: str
    auth_time: int
    expires_at: float


class Grants:
    """Keeps what was granted, and for how long it holds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with nothing. The clock gives seconds since the epoch."""
        self._clock = clock
        self._codes: dict[str, Code] = {}
        self._sessions: dict[str, Session] = {}
        self.refresh_tokens: dict[str, RefreshToken] = {}
        self.revoked_origins: set[str] = set()
        """Sign-ins whose access tokens are no longer accepted."""

    def new_grant(
        self, pool_id: str, client_id: str, username: str, scopes: tuple[str, ...], nonce: str | None, auth_time: int
    ) -> Grant:
        """What a sign-in grants."""
        return Grant(
            pool_id, client_id, username, scopes, nonce, auth_time, str(uuid.uuid4()), event_id=str(uuid.uuid4())
        )

    def code(self, grant: Grant, redirect_uri: str, challenge: str | None) -> str:
        """A code, good for one exchange."""
        code = str(uuid.uuid4())
        self._codes[code] = Code(grant, redirect_uri, challenge, self._clock() + CODE_LIFETIME_S)
        return code

    def redeem(self, code: str) -> Code | None:
        """What a code stands for; None if it was redeemed before, is too old, or never was."""
        found = self._codes.pop(code, None)
        return found if found is not None and self._clock() < found.expires_at else None

    def session(self, pool_id: str, username: str, auth_time: int) -> str:
        """A new browser session."""
        name = secrets.token_urlsafe(32)
        self._sessions[name] = Session(pool_id, username, auth_time, self._clock() + SESSION_LIFETIME_S)
        return name

    def in_session(self, name: str, pool_id: str) -> Session | None:
        """The session of a cookie."""
        found = self._sessions.get(name)
        return found if found is not None and found.pool_id == pool_id and self._clock() < found.expires_at else None

    def end_session(self, name: str) -> None:
        """Forget a browser session."""
        self._sessions.pop(name, None)

    def refresh_token(self, grant: Grant, expires_at: float) -> str:
        """A new refresh token."""
        token = secrets.token_urlsafe(96)
        self.refresh_tokens[token] = RefreshToken(grant, expires_at)
        return token

    def refreshed(self, token: str) -> RefreshToken | None:
        """What a refresh token stands for; None if it is revoked, rotated out, expired or unknown."""
        found = self.refresh_tokens.get(token)
        if found is None or self._clock() >= found.expires_at:
            self.refresh_tokens.pop(token, None)
            return None
        return found

    def rotate_out(self, token: str, grace_s: int) -> None:
        """End a refresh token that was exchanged for another one, after a period for repeated requests."""
        found = self.refresh_tokens[token]
        until = min(found.expires_at, self._clock() + grace_s)
        self.refresh_tokens[token] = RefreshToken(found.grant, until)

    def revoke(self, origin_jti: str) -> None:
        """End all tokens of a sign-in."""
        self.revoked_origins.add(origin_jti)
        for token, found in list(self.refresh_tokens.items()):
            if found.grant.origin_jti == origin_jti:
                del self.refresh_tokens[token]


def proves(verifier: str, challenge: str) -> bool:
    """Whether a PKCE verifier (RFC 7636, S256) matches its challenge."""
    if _VERIFIER.fullmatch(verifier) is None:
        return False
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
    return secrets.compare_digest(digest, challenge.encode())
