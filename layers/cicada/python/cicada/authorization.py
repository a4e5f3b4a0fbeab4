"""Decides who may connect: checks a JSON Web Token against the issuer's published keys.

A token comes in the ``Authorization`` header or, from browsers, which cannot set it on a WebSocket, among the offered
subprotocols. Both ID and access tokens are accepted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import jwt

from cicada.defaults import CLOCK_LEEWAY_S
from cicada.errors import Unauthorized
from cicada.issuer_keys import IssuerUnavailable
from cicada.subprotocols import offered_token

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Asymmetric signatures only: with HMAC algorithms, an attacker could sign with the public key."""
MAX_TOKEN_CHARS = 8_192
MAX_SUBJECT_CHARS = 128
MAX_TENANT_CHARS = 128
MAX_GROUP_CHARS = 128
MAX_GROUPS_BYTES = 4_096
"""Of all groups that are passed on, as JSON: API Gateway bounds what an authorizer returns to 8 KB."""
MAX_DATE_S = 253_402_300_799
"""The last second of the year 9999, in epoch seconds: larger claims are not dates."""
_DATES = ("exp", "nbf", "iat")


class Forbidden(Unauthorized):
    """The connection is denied, whatever token it brings."""


class ForbiddenOrigin(Forbidden):
    """A browser connects from an origin that is not allowed."""


class NotInGroup(Forbidden):
    """The user is in none of the groups that may connect."""


@dataclass(frozen=True)
class Identity:
    """The user of a token, and when the token expires (epoch seconds)."""

    subject: str
    expires_at: int
    tenant: str | None = None
    """From the tenant claim; None if the deployment has no tenants."""
    issued_at: int | None = None
    """In epoch seconds; None if the token does not say."""
    groups: tuple[str, ...] = ()
    """From the groups claim."""

    def context(self) -> dict[str, str]:
        """What an authorizer attaches to the connection: flat, and bounded."""
        told = {"subject": self.subject, "expires_at": str(self.expires_at)}
        if self.issued_at is not None:
            told["issued_at"] = str(self.issued_at)
        if self.tenant is not None:
            told["tenant"] = self.tenant
        if self.groups:
            told["groups"] = ",".join(self.groups)
        return told


@dataclass(frozen=True)
class TokenRules:
    """What a deployment asks of tokens."""

    issuer: str
    """The tokens' ``iss``."""
    audiences: frozenset[str]
    """One of the tokens' ``aud``; or the ``client_id`` of Cognito's access tokens, which have no ``aud``."""
    tenant_claim: str | None = None
    """The claim that names the tenant. If it is set, every token must have it."""
    groups_claim: str | None = None
    """The claim that lists the user's groups."""
    required_groups: frozenset[str] = frozenset()
    """Only users in one of them may connect; all users when empty."""


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
        rules: TokenRules,
        *,
        origins: frozenset[str] = frozenset(),
        token_in_url: bool = False,
    ) -> None:
        """Set the rules.

        Args:
            keys: the issuer's.
            rules: for the tokens.
            origins: from which a browser may connect; any when empty. Programs name none.
            token_in_url: accept a token in the URL too.
        """
        self._keys = keys
        self._rules = rules
        self._origins = origins
        self._token_in_url = token_in_url

    def identify(self, event: Mapping[str, Any]) -> Identity:
        """The identity of a ``$connect`` event of API Gateway.

        Raises:
            ForbiddenOrigin: origins are listed, and the ``Origin`` header, which every browser sends, is another.
            NotInGroup: the user is in none of the required groups.
            Unauthorized: no token, or an invalid one; the message says why, for the log.
            IssuerUnavailable.
        """
        headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        if self._origins and headers.get("origin", "") not in {*self._origins, ""}:
            raise ForbiddenOrigin("origin is not allowed")
        return self.verify(self._token(event, headers))

    def _token(self, event: Mapping[str, Any], headers: Mapping[str, str]) -> str:
        token = _bearer(headers) or offered_token(event)
        if token:
            return token
        in_url = (event.get("queryStringParameters") or {}).get("token")
        if not in_url:
            raise Unauthorized("missing token")
        if not self._token_in_url:
            raise Unauthorized(
                "the token is in the URL: send it as a subprotocol or in the Authorization header, or set "
                "auth.tokenInUrl"
            )
        return str(in_url)

    def verify(self, token: str) -> Identity:
        """Check a token. Raises NotInGroup, Unauthorized, IssuerUnavailable."""
        if len(token) > MAX_TOKEN_CHARS or not token.isascii():
            raise Unauthorized("the token is too long or not ASCII")
        claims = self._claims(token, self._key(token))
        if not all(_is_date(claims[name]) for name in _DATES if name in claims):
            raise Unauthorized("exp, nbf or iat is not a valid timestamp")
        subject = claims["sub"]
        if not _is_name(subject, MAX_SUBJECT_CHARS):
            raise Unauthorized("the subject is empty, too long or not text")
        return Identity(
            subject,
            int(claims["exp"]),
            tenant=self._tenant(claims),
            issued_at=int(claims["iat"]) if "iat" in claims else None,
            groups=self._groups(claims),
        )

    def _key(self, token: str) -> Any:
        """The public key that a token names."""
        try:
            return self._keys.get_signing_key_from_jwt(token).key
        except (jwt.PyJWKClientConnectionError, jwt.PyJWKSetError) as error:
            raise IssuerUnavailable(str(error)) from error
        except jwt.PyJWTError as error:
            raise _invalid_token(error) from error
        except Exception as error:  # PyJWT raises many types for malformed keys and JSON
            raise IssuerUnavailable(f"cannot parse the issuer's keys: {type(error).__name__}") from error

    def _claims(self, token: str, key: Any) -> dict[str, Any]:
        """The claims of a token, after checking its signature, audience, issuer and dates."""
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                issuer=self._rules.issuer,
                leeway=CLOCK_LEEWAY_S,
                options={"require": ["exp", "sub", "iss"], "verify_aud": False},
            )
        except Exception as error:  # PyJWT also raises TypeError if the key has another type
            raise _invalid_token(error) from error
        self._check_audience(claims)
        return claims

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        """A token must be made for this deployment. Cognito's say what they are for in ``token_use``."""
        use = claims.get("token_use")
        if use not in (None, "id", "access"):
            raise Unauthorized("the token's token_use is neither id nor access")
        audience = claims.get("aud")
        if audience is None and use == "access":
            meant = [claims.get("client_id")]
        else:
            meant = audience if isinstance(audience, list) else [audience]
        if not all(isinstance(one, str) for one in meant) or self._rules.audiences.isdisjoint(meant):
            raise Unauthorized("the token is for another audience: its aud, or client_id, is not auth.audience")

    def _tenant(self, claims: Mapping[str, Any]) -> str | None:
        claim = self._rules.tenant_claim
        if claim is None:
            return None
        tenant = claims.get(claim)
        if not _is_name(tenant, MAX_TENANT_CHARS):
            raise Unauthorized(f"the token's {claim} is missing, empty or too long")
        return tenant

    def _groups(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        """The groups to pass on, required ones first. Raises NotInGroup."""
        claim, required = self._rules.groups_claim, self._rules.required_groups
        if claim is None:
            return ()
        value = claims.get(claim)
        listed = value if isinstance(value, list) else [value]
        groups = list(dict.fromkeys(one for one in listed if _is_name(one, MAX_GROUP_CHARS) and "," not in one))
        if required and required.isdisjoint(groups):
            raise NotInGroup(
                f"the user is in none of auth.requiredGroups ({', '.join(sorted(required))}) by the token's {claim}, "
                f"which names {len(groups)} groups: add the user to one, and have them sign in again"
            )
        return tuple(_bounded(sorted(groups, key=lambda group: group not in required)))


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


def _bounded(groups: Iterable[str]) -> Iterable[str]:
    """The first groups that can be passed on together."""
    left = MAX_GROUPS_BYTES
    for group in groups:
        left -= len(json.dumps(group))
        if left < 0:
            return
        yield group


def _bearer(headers: Mapping[str, str]) -> str:
    """The token of the ``Authorization`` header; empty if there is none."""
    kind, _, value = (headers.get("authorization") or "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""
