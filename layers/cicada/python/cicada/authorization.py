"""Decides who may connect: checks a JSON Web Token against the issuer's published keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import jwt

from cicada.errors import Unauthorized

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Asymmetric signatures only: with HMAC algorithms, an attacker could sign with the public key."""
MAX_TOKEN_CHARS = 4_096
MAX_SUBJECT_CHARS = 128
MAX_TENANT_CHARS = 128
MAX_DATE_S = 253_402_300_799
"""The last second of the year 9999, in epoch seconds: larger claims are not dates."""
_DATES = ("exp", "nbf", "iat")
_LEEWAY_S = 10
"""How far the issuer's clock may differ."""


class ForbiddenOrigin(Unauthorized):
    """A browser connects from an origin that is not allowed."""


class KeysUnavailable(Exception):
    """The issuer's keys could not be fetched: a server fault, not the client's."""


@dataclass(frozen=True)
class Identity:
    """The user of a token, and when the token expires (epoch seconds)."""

    subject: str
    expires_at: int
    tenant: str | None = None
    """From the tenant claim; None if the deployment has no tenants."""


class SigningKeys(Protocol):
    """The issuer's public keys; PyJWT's ``PyJWKClient`` is one."""

    def get_signing_key_from_jwt(self, token: str) -> Any:
        """The key that the token's header names.

        Raises:
            jwt.PyJWTError: the token names no usable key.
            Exception: the issuer's key document is malformed.
        """
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
            issuer: the tokens' ``iss``.
            audience: the tokens' ``aud``.
            origins: from which a browser may connect; any when empty.
            tenant_claim: the claim that names the tenant. If it is set, every token must have it.
        """
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._origins = origins
        self._tenant_claim = tenant_claim

    def identify(self, event: Mapping[str, Any]) -> Identity:
        """The identity of a ``$connect`` event of API Gateway.

        Raises:
            ForbiddenOrigin: origins are listed, and the ``Origin`` header is absent or not among them.
            Unauthorized: no token, or an invalid one; the message says why, for the log.
            KeysUnavailable.
        """
        headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        if self._origins and headers.get("origin") not in self._origins:
            raise ForbiddenOrigin("origin is not allowed")
        return self.verify(_token(event, headers))

    def verify(self, token: str) -> Identity:
        """Check a token. Raises Unauthorized, KeysUnavailable."""
        if len(token) > MAX_TOKEN_CHARS or not token.isascii():
            raise Unauthorized("the token is too long or not ASCII")
        claims = self._claims(token, self._key(token))
        if not all(_is_date(claims[name]) for name in _DATES if name in claims):
            raise Unauthorized("exp, nbf or iat is not a date")
        subject = claims["sub"]
        if not _is_name(subject, MAX_SUBJECT_CHARS):
            raise Unauthorized("the subject is empty, too long or not text")
        return Identity(subject, int(claims["exp"]), self._tenant(claims))

    def _key(self, token: str) -> Any:
        """The public key that a token names."""
        try:
            return self._keys.get_signing_key_from_jwt(token).key
        except (jwt.PyJWKClientConnectionError, jwt.PyJWKSetError) as error:
            raise KeysUnavailable(str(error)) from error
        except jwt.PyJWTError as error:
            raise _invalid_token(error) from error
        except Exception as error:  # PyJWT raises many types for malformed keys and JSON
            raise KeysUnavailable(f"the issuer's keys cannot be read: {type(error).__name__}") from error

    def _claims(self, token: str, key: Any) -> dict[str, Any]:
        """The claims of a token, after checking its signature, audience, issuer and dates."""
        try:
            return jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "sub", "iss", "aud"]},
            )
        except Exception as error:  # PyJWT also raises TypeError if the key has another type
            raise _invalid_token(error) from error

    def _tenant(self, claims: Mapping[str, Any]) -> str | None:
        if self._tenant_claim is None:
            return None
        tenant = claims.get(self._tenant_claim)
        if not _is_name(tenant, MAX_TENANT_CHARS):
            raise Unauthorized(f"the token's {self._tenant_claim} is missing, empty or too long")
        return tenant


def _invalid_token(error: Exception) -> Unauthorized:
    """A refusal with the error's type and a missing claim, but not its message, which may quote the token."""
    missing = f" {error.claim}" if isinstance(error, jwt.MissingRequiredClaimError) else ""
    return Unauthorized(f"invalid token: {type(error).__name__}{missing}")


def _is_date(claim: object) -> bool:
    """Whether a claim is a number of epoch seconds. PyJWT would also accept true and strings of digits."""
    return isinstance(claim, int | float) and not isinstance(claim, bool) and abs(claim) <= MAX_DATE_S


def _is_name(claim: object, most_chars: int) -> TypeGuard[str]:
    """Whether a claim can be a name: text that is not empty, not too long, and encodable as UTF-8."""
    if not isinstance(claim, str) or not 0 < len(claim) <= most_chars:
        return False
    return not any("\ud800" <= char <= "\udfff" for char in claim)


def _token(event: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """A browser cannot set headers on a WebSocket, so it sends ``?token=``; other clients may use Authorization."""
    kind, _, value = (headers.get("authorization") or "").partition(" ")
    if kind.lower() == "bearer" and value:
        return value.strip()
    token = (event.get("queryStringParameters") or {}).get("token")
    if not token:
        raise Unauthorized("no token")
    return str(token)
