"""The token of a sign-in that ``cicada login`` has made, refreshed ahead of its end."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable

from cicada_client import oauth
from cicada_client.connection import TransportClosed
from cicada_client.errors import NotSignedIn
from cicada_client.sign_in_store import SignIn, SignInStore, StoreError

REFRESH_AHEAD_S = 300.0
"""How long before its end a token is refreshed."""
REFRESH_SHARE = 0.25
"""The last share of its life in which a short-lived token is refreshed, where that is less."""
REJECTED_WITHIN_S = 60.0
"""A token that is asked for again so soon was rejected, or its connection lost: another one is tried, once in that
time."""


class SignedIn:
    """A :data:`~cicada_client.connection_manager.TokenProvider` for a deployment that the user has signed in to.

    ::

        async with CicadaClient(url, token=SignedIn(url)) as client:
            …

    Several processes refresh a sign-in once: the others wait, and take what the first one got.
    """

    def __init__(self, url: str, store: SignInStore | None = None, *, clock: Callable[[], float] = time.time) -> None:
        """Use a sign-in.

        Args:
            url: the deployment's WebSocket URL.
            store: holds the sign-ins; the user's own if none is given.
            clock: seconds since the epoch.
        """
        self._url = url
        self._store = store or SignInStore.of_user(os.environ)
        self._clock = clock
        self._given: tuple[str, float] | None = None
        self._replaced_at = -math.inf

    async def __call__(self) -> str:
        """A token that is valid now.

        Raises:
            NotSignedIn: there is no sign-in, or it has ended.
            TransportClosed: the issuer cannot be reached; may be tried again.
        """
        return await asyncio.to_thread(self._fresh)

    def current(self) -> SignIn:
        """The sign-in, refreshed if it is due.

        Raises:
            NotSignedIn, TransportClosed: as above.
        """
        try:
            found = self._stored()
            if not self._due(found):
                return found
            with self._store.locked(self._url):
                return self._refreshed(self._stored(), seen=found.token)
        except StoreError as error:
            raise NotSignedIn(str(error)) from error

    def _fresh(self) -> str:
        now = self._clock()
        found = self.current()
        again = self._given is not None and self._given[0] == found.token and now - self._given[1] < REJECTED_WITHIN_S
        if again and now - self._replaced_at >= REJECTED_WITHIN_S:
            found = self._another(found)
            self._replaced_at = now
        self._given = (found.token, now)
        return found.token

    def _another(self, found: SignIn) -> SignIn:
        if not found.refreshable:
            return found
        try:
            with self._store.locked(self._url):
                return self._refreshed(self._stored(), seen=found.token)
        except StoreError as error:
            raise NotSignedIn(str(error)) from error

    def _stored(self) -> SignIn:
        found = self._store.get(self._url)
        if found is None:
            raise NotSignedIn(f"not signed in to {self._url}: cicada login")
        return found

    def _due(self, found: SignIn) -> bool:
        ahead = min(REFRESH_AHEAD_S, (found.expires_at - found.obtained_at) * REFRESH_SHARE)
        return self._clock() >= found.expires_at - ahead

    def _refreshed(self, found: SignIn, *, seen: str) -> SignIn:
        """Refresh the sign-in, unless another process has done so since its token was seen."""
        if found.token != seen and not self._due(found):
            return found
        valid = self._clock() < found.expires_at
        if found.refresh_token is None:
            if valid:
                return found
            raise NotSignedIn(f"the sign-in to {self._url} has expired: sign in again: cicada login")
        try:
            tokens = oauth.refresh(found.token_endpoint, found.client_id, found.refresh_token)
            fresh = renewed(found, tokens, self._clock())
        except oauth.IssuerUnreachable as error:
            if valid:
                return found
            raise TransportClosed(f"the sign-in could not be refreshed: {error}") from error
        except oauth.IssuerRefused as error:
            raise NotSignedIn(f"the sign-in to {self._url} has ended: {error}. Sign in again: cicada login") from error
        self._store.put(fresh)
        return fresh


def renewed(sign_in: SignIn, tokens: oauth.Tokens, now: float) -> SignIn:
    """A sign-in with new tokens; it keeps its refresh token where no other came.

    Raises:
        IssuerRefused: there is no token to send.
    """
    token = tokens.to_send
    return sign_in.model_copy(
        update={
            "token": token,
            "obtained_at": now,
            "expires_at": now + lifetime_s(token, tokens.expires_in),
            "refresh_token": tokens.refresh_token or sign_in.refresh_token,
        }
    )


def lifetime_s(token: str, told: float) -> float:
    """For how long a token is valid from now on, whatever this machine's clock says."""
    claims = oauth.claims_of(token) or {}
    issued, expires = claims.get("iat"), claims.get("exp")
    if isinstance(issued, int | float) and isinstance(expires, int | float) and expires > issued:
        return float(expires - issued)
    return told
