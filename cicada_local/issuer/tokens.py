"""ID and access tokens, with the claims that Cognito's have."""

from __future__ import annotations

import uuid
from typing import Any

from cicada_local.issuer.grants import Grant
from cicada_local.issuer.pools import Client, User

_PROFILE = (
    "address",
    "birthdate",
    "family_name",
    "gender",
    "given_name",
    "locale",
    "middle_name",
    "name",
    "nickname",
    "picture",
    "preferred_username",
    "profile",
    "updated_at",
    "website",
    "zoneinfo",
)
SCOPE_ATTRIBUTES = {
    "email": ("email", "email_verified"),
    "phone": ("phone_number", "phone_number_verified"),
    "profile": _PROFILE,
}
SCOPES = frozenset({"openid", "aws.cognito.signin.user.admin", *SCOPE_ATTRIBUTES})
_BOOLEANS = frozenset({"email_verified", "phone_number_verified"})


def access_claims(grant: Grant, client: Client, user: User, issuer: str, now: int) -> dict[str, Any]:
    """The claims of an access token: it names its client by ``client_id``, and has no audience."""
    return {
        **_common(grant, user, issuer, now),
        "client_id": client.id,
        "token_use": "access",
        "scope": " ".join(grant.scopes),
        "username": user.username,
        "version": 2,
        "exp": now + client.access_validity_s,
    }


def id_claims(grant: Grant, client: Client, user: User, issuer: str, now: int) -> dict[str, Any]:
    """The claims of an ID token: its audience is the client; attributes as the scopes allow."""
    return {
        **_common(grant, user, issuer, now),
        **attributes(user, grant.scopes),
        "aud": client.id,
        "token_use": "id",
        "cognito:username": user.username,
        **({} if grant.nonce is None else {"nonce": grant.nonce}),
        "exp": now + client.id_validity_s,
    }


def attributes(user: User, scopes: tuple[str, ...]) -> dict[str, Any]:
    """The user's attributes that the scopes allow to read."""
    allowed = {name for scope in scopes for name in SCOPE_ATTRIBUTES.get(scope, ())}
    return {
        name: str(value).lower() == "true" if name in _BOOLEANS else value
        for name, value in sorted(user.attributes.items())
        if name in allowed
    }


def _common(grant: Grant, user: User, issuer: str, now: int) -> dict[str, Any]:
    return {
        "sub": user.id,
        **({"cognito:groups": list(user.groups)} if user.groups else {}),
        "iss": issuer,
        "origin_jti": grant.origin_jti,
        "event_id": grant.event_id,
        "auth_time": grant.auth_time,
        "iat": now,
        "jti": str(uuid.uuid4()),
    }
