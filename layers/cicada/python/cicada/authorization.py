"""Who may connect: a JSON Web Token checked against the issuer's published keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jwt

from cicada.errors import Unauthorized

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Signatures by a private key only: with a shared-secret algorithm a public key could be passed off as the secret."""
MAX_TOKEN_CHARS = 4_096
MAX_SUBJECT_CHARS = 128
MAX_TENANT_CHARS = 128
_LEEWAY_S = 10
"""How far the issuer's clock may be off."""


class ForbiddenOrigin(Unauthorized):
    """A browser connects from a page that is not allowed to."""


class KeysUnavailable(Exception):
    """The issuer's keys could not be fetched: a fault of ours, not of whoever connects."""


@dataclass(frozen=True)
class Identity:
    """Whose token it is, and until when (epoch seconds)."""

    subject: str
    expires_at: int
    tenant: str | None = None
    """What the token says in the claim of tenants; None where the deployment has none."""


class SigningKeys(Protocol):
    """The issuer's public keys; PyJWT's ``PyJWKClient`` is one."""

    def get_signing_key_from_jwt(self, token: str) -> Any:
        """The key that the token's header names. Raises a subclass of ``jwt.PyJWTError``."""
        ...


class TokenVerifier:
    """Checks connections before they are opened."""

    def __init__(
        self,
        keys: SigningKeys,
        *,
        issuer: str,
        audience: str,
        origins: frozenset[str],
        tenant_claim: str | None = None,
    ) -> None:
        """Set the rules.

        Args:
            keys: of the issuer.
            issuer: the tokens' ``iss``.
            audience: the tokens' ``aud``.
            origins: that a browser may connect from; any when empty.
            tenant_claim: names the asker's tenant. A token must carry it where it is given: whoever shares with a
                tenant must know whose it is.
        """
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._origins = origins
        self._tenant_claim = tenant_claim

    def identify(self, event: Mapping[str, Any]) -> Identity:
        """The identity of a ``$connect`` event of API Gateway.

        Raises:
            ForbiddenOrigin: the ``Origin`` header is there and not allowed, or absent where origins are listed.
            Unauthorized: no token, or none that holds; the message says why, for the log.
            KeysUnavailable: the issuer's keys could not be fetched.
        """
        headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        if self._origins and headers.get("origin") not in self._origins:
            raise ForbiddenOrigin("origin is not allowed")
        return self.verify(_token(event, headers))

    def verify(self, token: str) -> Identity:
        """Check a token. Raises Unauthorized, KeysUnavailable."""
        if len(token) > MAX_TOKEN_CHARS:
            raise Unauthorized("the token is too long")
        try:
            claims = jwt.decode(
                token,
                self._keys.get_signing_key_from_jwt(token).key,
                algorithms=list(ALGORITHMS),
                audience=self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "sub", "iss", "aud"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise KeysUnavailable(str(error)) from error
        except jwt.PyJWTError as error:
            raise Unauthorized(f"{type(error).__name__}: {error}") from error
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARS:
            raise Unauthorized("the subject is empty or too long")
        return Identity(subject, int(claims["exp"]), self._tenant(claims))

    def _tenant(self, claims: Mapping[str, Any]) -> str | None:
        if self._tenant_claim is None:
            return None
        tenant = claims.get(self._tenant_claim)
        if not isinstance(tenant, str) or not 0 < len(tenant) <= MAX_TENANT_CHARS:
            raise Unauthorized(f"the token's {self._tenant_claim} names no tenant, or is too long")
        return tenant


def _token(event: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """A browser can set no header on a WebSocket, so it sends ``?token=``; everybody else may use Authorization."""
    kind, _, value = (headers.get("authorization") or "").partition(" ")
    if kind.lower() == "bearer" and value:
        return value.strip()
    token = (event.get("queryStringParameters") or {}).get("token")
    if not token:
        raise Unauthorized("there is no token")
    return str(token)
