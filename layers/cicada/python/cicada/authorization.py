"""Who may connect: a JSON Web Token checked against the issuer's published keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import jwt

from cicada.errors import Unauthorized

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Signatures by a private key only: with a shared-secret algorithm a public key could be passed off as the secret."""
MAX_TOKEN_CHARS = 4_096
MAX_SUBJECT_CHARS = 128
MAX_TENANT_CHARS = 128
MAX_DATE_S = 253_402_300_799
"""The last second of the year 9999, in epoch seconds: a claim beyond it is no date."""
_DATES = ("exp", "nbf", "iat")
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
        """The key that the token's header names.

        Raises:
            jwt.PyJWTError: the token names no usable key.
            Exception: whatever the issuer's document of keys is broken by.
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
        if len(token) > MAX_TOKEN_CHARS or not token.isascii():
            raise Unauthorized("the token is too long, or no ASCII")
        claims = self._claims(token, self._key(token))
        if not all(_is_date(claims[name]) for name in _DATES if name in claims):
            raise Unauthorized("exp, nbf or iat is no date")
        subject = claims["sub"]
        if not _is_name(subject, MAX_SUBJECT_CHARS):
            raise Unauthorized("the subject is empty, too long, or no text")
        return Identity(subject, int(claims["exp"]), self._tenant(claims))

    def _key(self, token: str) -> Any:
        """The public key that a token names."""
        try:
            return self._keys.get_signing_key_from_jwt(token).key
        except (jwt.PyJWKClientConnectionError, jwt.PyJWKSetError) as error:
            raise KeysUnavailable(str(error)) from error
        except jwt.PyJWTError as error:
            raise _does_not_hold(error) from error
        except Exception as error:  # one malformed key, or no JSON at all, is met in many ways
            raise KeysUnavailable(f"the issuer's keys cannot be read: {type(error).__name__}") from error

    def _claims(self, token: str, key: Any) -> dict[str, Any]:
        """The claims of a token that is signed with a key, is for us, and is valid now."""
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
        except Exception as error:  # beside its own errors, PyJWT raises TypeError where the key is of another kind
            raise _does_not_hold(error) from error

    def _tenant(self, claims: Mapping[str, Any]) -> str | None:
        if self._tenant_claim is None:
            return None
        tenant = claims.get(self._tenant_claim)
        if not _is_name(tenant, MAX_TENANT_CHARS):
            raise Unauthorized(f"the token's {self._tenant_claim} names no tenant, or is too long")
        return tenant


def _does_not_hold(error: Exception) -> Unauthorized:
    """A refusal that names the error's kind, and the claim that is missing: an error's message may quote the token."""
    missing = f" {error.claim}" if isinstance(error, jwt.MissingRequiredClaimError) else ""
    return Unauthorized(f"the token does not hold: {type(error).__name__}{missing}")


def _is_date(claim: object) -> bool:
    """Whether a claim is a number of epoch seconds. PyJWT takes true, and text of digits, for one too."""
    return isinstance(claim, int | float) and not isinstance(claim, bool) and abs(claim) <= MAX_DATE_S


def _is_name(claim: object, most_chars: int) -> TypeGuard[str]:
    """Whether a claim can name somebody: text that is not empty, not too long, and encodable as UTF-8."""
    if not isinstance(claim, str) or not 0 < len(claim) <= most_chars:
        return False
    return not any("\ud800" <= char <= "\udfff" for char in claim)


def _token(event: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """A browser can set no header on a WebSocket, so it sends ``?token=``; everybody else may use Authorization."""
    kind, _, value = (headers.get("authorization") or "").partition(" ")
    if kind.lower() == "bearer" and value:
        return value.strip()
    token = (event.get("queryStringParameters") or {}).get("token")
    if not token:
        raise Unauthorized("there is no token")
    return str(token)
