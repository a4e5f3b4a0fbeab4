"""OAuth 2.0 for a public client: discovery, authorization code with PKCE, refresh, revocation (RFC 6749, 7636, 7009).

Plain functions over HTTP; nothing is kept. Endpoints are ``https``, or on this machine.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import http.client
import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

HTTP_TIMEOUT_S = 10.0
MAX_RESPONSE_BYTES = 1024 * 1024
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_AGENT = "cicada-client"  # some issuers refuse urllib's own
_ATTEMPTS = 2


class IssuerUnreachable(Exception):
    """The issuer, or the page that names it, gave no answer, or an error of its own. Trying again may help."""


class IssuerRefused(Exception):
    """The issuer answered with an OAuth error, or with something that it should not have."""

    def __init__(self, error: str, description: str = "") -> None:
        super().__init__(f"{error} ({description})" if description else error)
        self.error = error


class Endpoints(BaseModel):
    """An issuer's endpoints, as its discovery document names them."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    revocation_endpoint: str | None = None


class Tokens(BaseModel):
    """What the token endpoint gives."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    access_token: str
    id_token: str | None = None
    refresh_token: str | None = None
    expires_in: float = Field(default=3600, gt=0)

    @property
    def to_send(self) -> str:
        """The token for the deployment: the access token where it is a JWT, the ID token where it is not.

        Raises:
            IssuerRefused: neither is one.
        """
        for token in (self.access_token, self.id_token):
            if token is not None and claims_of(token) is not None:
                return token
        raise IssuerRefused("the issuer gave no token that is a JWT")


class _Error(BaseModel):
    error: str
    error_description: str = ""


@dataclass(frozen=True)
class Attempt:
    """The secrets of one sign-in, and where it ends."""

    redirect_uri: str
    state: str
    nonce: str
    verifier: str

    @classmethod
    def begin(cls, redirect_uri: str) -> Attempt:
        """A new one."""
        return cls(redirect_uri, secrets.token_urlsafe(24), secrets.token_urlsafe(24), secrets.token_urlsafe(64))

    @property
    def challenge(self) -> str:
        """The verifier's challenge (S256)."""
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()

    def url(self, endpoints: Endpoints, client_id: str, scopes: str) -> str:
        """Where the browser goes."""
        fields = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": self.redirect_uri,
            "scope": scopes,
            "state": self.state,
            "nonce": self.nonce,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
        }
        separator = "&" if urlsplit(endpoints.authorization_endpoint).query else "?"
        return endpoints.authorization_endpoint + separator + urlencode(fields)


def discover(issuer: str) -> Endpoints:
    """Read an issuer's endpoints (OpenID Connect Discovery).

    Raises:
        IssuerUnreachable, IssuerRefused.
    """
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    document = get_json(url)
    try:
        found = Endpoints.model_validate(document)
    except ValidationError as error:
        raise IssuerRefused(f"{url} does not name the endpoints of a sign-in") from error
    if found.issuer.rstrip("/") != issuer.rstrip("/"):
        raise IssuerRefused(f"{url} is of another issuer, {found.issuer}")
    for endpoint in (found.authorization_endpoint, found.token_endpoint, found.revocation_endpoint):
        if endpoint is not None:
            check_url(endpoint)
    return found


def redeem(endpoints: Endpoints, client_id: str, code: str, attempt: Attempt) -> Tokens:
    """Exchange an authorization code, once: a code whose answer was lost is spent.

    Raises:
        IssuerUnreachable, IssuerRefused.
    """
    form = {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "code": code,
        "redirect_uri": attempt.redirect_uri,
        "code_verifier": attempt.verifier,
    }
    tokens = _tokens(endpoints.token_endpoint, form)
    if tokens.id_token is not None:
        _check_id_token(tokens.id_token, endpoints.issuer, client_id, attempt.nonce)
    return tokens


def refresh(token_endpoint: str, client_id: str, refresh_token: str) -> Tokens:
    """Exchange a refresh token.

    Without an answer it is repeated once: issuers that rotate refresh tokens have a grace period for that.

    Raises:
        IssuerUnreachable, IssuerRefused.
    """
    form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": refresh_token}
    return _tokens(token_endpoint, form, attempts=_ATTEMPTS)


def revoke(revocation_endpoint: str, client_id: str, refresh_token: str) -> None:
    """End a refresh token. One that has ended already is no error.

    Raises:
        IssuerUnreachable, IssuerRefused.
    """
    form = {"client_id": client_id, "token": refresh_token, "token_type_hint": "refresh_token"}
    _request(revocation_endpoint, form, attempts=_ATTEMPTS)


def claims_of(token: str) -> dict[str, Any] | None:
    """The claims of a JWT that came from its issuer, unverified; None for what is no JWT."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return None
    return found if isinstance(found, dict) else None


def get_json(url: str) -> Any:
    """A JSON document.

    Raises:
        IssuerUnreachable, IssuerRefused.
    """
    try:
        return json.loads(_request(url, None, attempts=_ATTEMPTS))
    except ValueError as error:
        raise IssuerRefused(f"{url} is not JSON") from error


def check_url(url: str) -> None:
    """Raise IssuerRefused for an address that secrets must not go to: one without TLS that is not on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or not (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)):
        raise IssuerRefused(f"{url} must begin with https://")


# --- HTTP ---


def _tokens(url: str, form: Mapping[str, str], *, attempts: int = 1) -> Tokens:
    try:
        return Tokens.model_validate_json(_request(url, form, attempts=attempts))
    except ValidationError:  # its text would hold tokens
        raise IssuerRefused(f"{url} gave no tokens") from None


def _check_id_token(token: str, issuer: str, client_id: str, nonce: str) -> None:
    """Check what a token that came from the token endpoint must say (OpenID Connect Core, 3.1.3.7)."""
    claims = claims_of(token) or {}
    audience = claims.get("aud")
    if str(claims.get("iss", "")).rstrip("/") != issuer.rstrip("/"):
        raise IssuerRefused("the ID token is of another issuer")
    if client_id not in (audience if isinstance(audience, list) else [audience]):
        raise IssuerRefused("the ID token is for another client")
    if claims.get("nonce") != nonce:
        raise IssuerRefused("the ID token is of another sign-in")


def _request(url: str, form: Mapping[str, str] | None, *, attempts: int) -> bytes:
    check_url(url)
    for left in reversed(range(attempts)):
        try:
            return _send(url, form)
        except IssuerUnreachable:
            if not left:
                raise
    raise AssertionError(attempts)


class _Stay(urllib.request.HTTPRedirectHandler):
    """No secret follows a redirect."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _send(url: str, form: Mapping[str, str] | None) -> bytes:
    host = urlsplit(url).hostname
    proxies = [urllib.request.ProxyHandler({})] if host in LOOPBACK else []
    opener = urllib.request.build_opener(_Stay, *proxies)
    data = None if form is None else urlencode(form).encode()
    headers = {"User-Agent": _AGENT, "Accept": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers)  # noqa: S310 - the scheme is checked
    try:
        with opener.open(request, timeout=HTTP_TIMEOUT_S) as answer:
            body: bytes = answer.read(MAX_RESPONSE_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise _refusal(url, error) from None
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        reason = getattr(error, "reason", None) or error
        raise IssuerUnreachable(f"{_origin(url)} cannot be reached: {reason}") from error
    if len(body) > MAX_RESPONSE_BYTES:
        raise IssuerRefused(f"{url} answered with more than {MAX_RESPONSE_BYTES:,} bytes")
    return body


def _refusal(url: str, error: urllib.error.HTTPError) -> Exception:
    try:
        body = error.read(MAX_RESPONSE_BYTES)
    except (OSError, http.client.HTTPException):
        body = b""
    if error.code >= 500 or error.code == 429:
        return IssuerUnreachable(f"{_origin(url)} answered HTTP {error.code}")
    try:
        told = _Error.model_validate_json(body)
    except ValidationError:
        return IssuerRefused(f"{url} answered HTTP {error.code}")
    return IssuerRefused(told.error, told.error_description)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
