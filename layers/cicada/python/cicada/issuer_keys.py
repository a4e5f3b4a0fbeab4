"""The public keys of an OpenID Connect issuer: found by discovery, fetched over HTTP, cached with bounds."""

from __future__ import annotations

import json
import logging
import math
import time
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

from jwt import PyJWKClient, PyJWKClientConnectionError, PyJWKSet

logger = logging.getLogger(__name__)

FRESH_S = 600
"""How long fetched keys are used without asking again: a key that the issuer withdraws is refused after this time."""
STALE_S = 3_600
"""How long fetched keys are used while the issuer does not answer."""
REFETCH_S = 10
"""The shortest time between two fetches for tokens that name unknown keys, and before a failed fetch is repeated while
there are keys."""
RETRY_S = 1
"""The shortest time before a failed fetch is repeated while there are no keys, and nobody can connect."""
TIMEOUT_S = 3
MAX_DOCUMENT_BYTES = 256 * 1024
USER_AGENT = "cicada-authorizer"
"""Some issuers answer urllib's own name with 403."""
DISCOVERY = "/.well-known/openid-configuration"


class IssuerUnavailable(Exception):
    """The issuer's keys could not be fetched or read: a server fault, not the client's."""


class IssuerKeys(PyJWKClient):
    """PyJWT's client of published keys, with discovery, and with keys that outlive an outage of the issuer."""

    def __init__(
        self, issuer: str, jwks_url: str | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nothing is fetched before the first token.

        Args:
            issuer: the tokens' ``iss``.
            jwks_url: where the keys are; the issuer is asked if None.
            clock: in seconds.
        """
        super().__init__(jwks_url or discovery_url(issuer), cache_jwk_set=False)  # cached below
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._clock = clock
        self._kept: PyJWKSet | None = None
        self._kept_at = self._asked_at = self._forced_at = -math.inf
        self._failure = ""
        self._is_new = False
        """Whether the last call without ``refresh`` has fetched the keys: another fetch would bring the same."""

    def get_jwk_set(self, refresh: bool = False) -> PyJWKSet:
        """The keys; those that were fetched last where the issuer does not answer, while they are not too old.

        Args:
            refresh: ask even if the keys are fresh, because a token names another.

        Raises:
            PyJWKClientConnectionError: there are no keys to use.
        """
        now = self._clock()
        if refresh:
            if not self._is_new and now - self._forced_at >= REFETCH_S:
                self._forced_at = now
                self._fetch(now)
        else:
            pause = RETRY_S if self._kept is None else REFETCH_S
            self._is_new = now - self._kept_at >= FRESH_S and now - self._asked_at >= pause
            if self._is_new:
                self._fetch(now)
        if self._kept is None or now - self._kept_at >= STALE_S:
            raise PyJWKClientConnectionError(self._failure)
        return self._kept

    def _fetch(self, now: float) -> None:
        self._asked_at = now
        try:
            self._kept, self._kept_at = self._fetched(), now
        except IssuerUnavailable as error:
            self._failure = str(error)
            logger.warning("the issuer's keys could not be fetched", extra={"why": self._failure})

    def _fetched(self) -> PyJWKSet:
        url = self._jwks_url or self._discover()
        try:
            return PyJWKSet.from_dict(_get_json(url))
        except IssuerUnavailable:
            raise
        except Exception as error:  # PyJWT raises many types for malformed keys
            raise IssuerUnavailable(f"{url} answered with unusable keys: {type(error).__name__}") from error

    def _discover(self) -> str:
        """Ask the issuer where its keys are (OpenID Connect Discovery 1.0, sections 4 and 4.3)."""
        url = discovery_url(self._issuer)
        found = _get_json(url)
        if not isinstance(found, dict) or found.get("issuer") != self._issuer:
            raise IssuerUnavailable(f"{url} describes a different issuer; auth.issuer must match it exactly")
        jwks_url = found.get("jwks_uri")
        if not isinstance(jwks_url, str) or urlsplit(jwks_url).scheme not in ("https", urlsplit(url).scheme):
            raise IssuerUnavailable(f"{url} has no jwks_uri that begins with https://")
        return jwks_url


def discovery_url(issuer: str) -> str:
    """Where an issuer describes itself."""
    return f"{issuer.rstrip('/')}{DISCOVERY}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none: a redirect could lead to keys of another host."""


def _get_json(url: str) -> Any:
    """Fetch a document. Raises IssuerUnavailable."""
    if urlsplit(url).scheme not in ("https", "http"):
        raise IssuerUnavailable(f"{url} must begin with https://")
    request = urllib.request.Request(url, headers={"User-Agent": USER_AGENT, "Accept": "application/json"})  # noqa: S310
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S) as response:
            body = response.read(MAX_DOCUMENT_BYTES + 1)
    except HTTPError as error:
        error.close()
        raise IssuerUnavailable(f"{url} answered {error.code}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise IssuerUnavailable(f"{url} did not answer: {type(error).__name__}") from error
    if len(body) > MAX_DOCUMENT_BYTES:
        raise IssuerUnavailable(f"{url} answered more than {MAX_DOCUMENT_BYTES} bytes")
    try:
        return json.loads(body)
    except ValueError as error:
        raise IssuerUnavailable(f"{url} did not answer with JSON") from error
