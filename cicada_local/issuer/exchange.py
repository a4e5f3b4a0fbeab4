"""The endpoints that an application calls: ``/oauth2/token``, ``/oauth2/revoke``, ``/oauth2/userInfo``."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote_plus

import jwt
from aiohttp import web

from cicada_local.issuer.grants import Grant, Grants, proves
from cicada_local.issuer.keys import KeyRing
from cicada_local.issuer.pools import Client, Pools, User
from cicada_local.issuer.tokens import access_claims, attributes, id_claims

INVALID_TOKEN = "Access token is expired, disabled, or deleted, or the user has globally signed out."  # noqa: S105


class Refused(Exception):
    """The request is refused with an OAuth error code (RFC 6749, 5.2)."""

    def __init__(self, error: str, *, status: int = 400) -> None:
        super().__init__(error)
        self.error, self.status = error, status

    def response(self) -> web.Response:
        """The answer."""
        return web.json_response({"error": self.error}, status=self.status)


class Exchange:
    """Gives tokens for codes and refresh tokens, and takes them back."""

    def __init__(
        self,
        pools: Pools,
        grants: Grants,
        keys: Callable[[str], KeyRing],
        issuer: Callable[[str], str],
        clock: Callable[[], float],
    ) -> None:
        """Wire it.

        Args:
            pools: clients and users.
            grants: what was granted.
            keys: a pool's keys.
            issuer: a pool's issuer URL.
            clock: seconds since the epoch.
        """
        self._pools = pools
        self._grants = grants
        self._keys = keys
        self._issuer = issuer
        self._clock = clock

    def add_routes(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_post("/oauth2/token", self.token)
        app.router.add_post("/oauth2/revoke", self.revoke)
        for method in ("GET", "POST"):
            app.router.add_route(method, "/oauth2/userInfo", self.user_info)

    async def token(self, request: web.Request) -> web.Response:
        """Exchange a code or a refresh token for tokens."""
        try:
            form = await _form(request)
            grant_type = form.get("grant_type")
            if not grant_type:
                raise Refused("invalid_request")
            if grant_type == "client_credentials":
                raise Refused("unauthorized_client")
            if grant_type not in ("authorization_code", "refresh_token"):
                raise Refused("unsupported_grant_type")
            client = self._client(request, form)
            if "code" not in client.flows:
                raise Refused("unauthorized_client")
            redeem = self._redeem if grant_type == "authorization_code" else self._refresh
            answer = redeem(client, form)
        except Refused as refused:
            return refused.response()
        return web.json_response(answer, headers={"Cache-Control": "no-store", "Pragma": "no-cache"})

    async def revoke(self, request: web.Request) -> web.Response:
        """End a refresh token, and the access tokens that came of it."""
        try:
            form = await _form(request)
            client = self._client(request, form, status=401)
            token = form.get("token")
            if not token or not client.revocation:
                raise Refused("invalid_request")
            if token.count(".") == 2:
                raise Refused("unsupported_token_type")
            found = self._grants.refresh_tokens.get(token)
            if found is not None and found.grant.client_id != client.id:
                raise Refused("invalid_request")
        except Refused as refused:
            return refused.response()
        if found is not None:
            self._grants.revoke(found.grant.origin_jti)
        return web.Response()

    async def user_info(self, request: web.Request) -> web.Response:
        """The attributes of an access token's user."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return _challenge(400, "invalid_request", "Bad OAuth2 request at UserInfo Endpoint")
        found = self._bearer(token)
        if found is None:
            return _challenge(401, "invalid_token", INVALID_TOKEN)
        user, scopes = found
        told = {"sub": user.id, **attributes(user, scopes), "username": user.username}
        booleans = {name: str(value).lower() for name, value in told.items() if isinstance(value, bool)}
        return web.json_response(told | booleans)

    # --- the grants ---

    def _redeem(self, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
        if "code" not in form or "redirect_uri" not in form:
            raise Refused("invalid_request")
        code = self._grants.redeem(form["code"])
        if code is None or code.grant.client_id != client.id or code.redirect_uri != form["redirect_uri"]:
            raise Refused("invalid_grant")
        if code.challenge is not None and not proves(form.get("code_verifier", ""), code.challenge):
            raise Refused("invalid_grant")
        grant = code.grant
        token = self._new_refresh_token(grant, self._clock() + client.refresh_validity_s)
        return {**self._tokens(client, grant), "refresh_token": token}

    def _refresh(self, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
        if "refresh_token" not in form:
            raise Refused("invalid_request")
        token = form["refresh_token"]
        found = self._grants.refreshed(token)
        if found is None or found.grant.client_id != client.id or self._pools.signed_out(client.pool_id, token):
            raise Refused("invalid_grant")
        tokens = self._tokens(client, found.grant)
        if client.rotation_grace_s is not None:
            tokens["refresh_token"] = self._new_refresh_token(found.grant, found.expires_at)
            self._grants.rotate_out(token, client.rotation_grace_s)
        return tokens

    def _new_refresh_token(self, grant: Grant, expires_at: float) -> str:
        token = self._grants.refresh_token(grant, expires_at)
        self._pools.note_refresh_token(grant.pool_id, token, grant.client_id, grant.username, grant.origin_jti)
        return token

    def _tokens(self, client: Client, grant: Grant) -> dict[str, Any]:
        user = self._pools.user(grant.pool_id, grant.username)
        if user is None:
            raise Refused("invalid_grant")
        keys, issuer, now = self._keys(grant.pool_id), self._issuer(grant.pool_id), int(self._clock())
        access = keys.sign(access_claims(grant, client, user, issuer, now), "access")
        told: dict[str, Any] = {
            "access_token": access,
            "expires_in": client.access_validity_s,
            "token_type": "Bearer",
        }
        if "openid" in grant.scopes:
            claims = id_claims(grant, client, user, issuer, now) | {"at_hash": _hash(access)}
            told["id_token"] = keys.sign(claims, "id")
        return told

    # --- who calls ---

    def _client(self, request: web.Request, form: Mapping[str, str], status: int = 400) -> Client:
        client_id, secret = _credentials(request, form)
        client = self._pools.client(client_id)
        if client is None or not self._pools.has_domain(client.pool_id):
            raise Refused("invalid_client", status=status)
        if not secrets.compare_digest((client.secret or "").encode(), secret.encode()):
            raise Refused("invalid_client", status=status)
        return client

    def _bearer(self, token: str) -> tuple[User, tuple[str, ...]] | None:
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
            pool_id = str(claims.get("iss", "")).rpartition("/")[2]
            if not self._pools.has(pool_id):
                return None
            claims = self._keys(pool_id).verify(token)
        except jwt.InvalidTokenError:
            return None
        scopes = tuple(str(claims.get("scope", "")).split())
        if claims.get("token_use") != "access" or "openid" not in scopes:
            return None
        if claims["origin_jti"] in self._grants.revoked_origins:
            return None
        user = self._pools.user(pool_id, claims["username"])
        return None if user is None else (user, scopes)


async def _form(request: web.Request) -> dict[str, str]:
    if request.content_type != "application/x-www-form-urlencoded":
        raise Refused("invalid_request")
    return {name: str(value) for name, value in (await request.post()).items()}


def _credentials(request: web.Request, form: Mapping[str, str]) -> tuple[str, str]:
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return form.get("client_id", ""), form.get("client_secret", "")
    try:
        client_id, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise Refused("invalid_client") from None
    return unquote_plus(client_id), unquote_plus(secret)


def _challenge(status: int, error: str, description: str) -> web.Response:
    told = {"error": error, "error_description": description}
    header = f'error="{error}", error_description="{description}"'
    return web.json_response(told, status=status, headers={"WWW-Authenticate": header})


def _hash(token: str) -> str:
    half = hashlib.sha256(token.encode()).digest()[:16]
    return base64.urlsafe_b64encode(half).rstrip(b"=").decode()
