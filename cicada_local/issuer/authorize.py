"""The endpoints that a browser visits: ``/oauth2/authorize``, ``/login``, ``/logout``, ``/error``."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from cicada_local.issuer import pages
from cicada_local.issuer.grants import CHALLENGE, SESSION_LIFETIME_S, Grants, Session
from cicada_local.issuer.pools import Client, PasswordInvalid, Pools, User
from cicada_local.issuer.tokens import SCOPES

SESSION_COOKIE = "cognito"
CSRF_COOKIE = "XSRF-TOKEN"
WRONG_PASSWORD = "Incorrect username or password."  # noqa: S105 - a message

_CHALLENGE_LIFETIME_S = 180


@dataclass(frozen=True)
class Asked:
    """A valid authorization request."""

    client: Client
    redirect_uri: str
    scopes: tuple[str, ...]
    state: str | None
    nonce: str | None
    challenge: str | None
    prompt: str | None


@dataclass(frozen=True)
class _Change:
    """A user who has given a temporary password and is to choose another one."""

    pool_id: str
    username: str
    until: float


class RedirectRefused(Exception):
    """The request is invalid in a way that the application is told."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class Authorization:
    """Signs users in, and sends them back with a code."""

    def __init__(self, pools: Pools, grants: Grants, clock: Callable[[], float]) -> None:
        self._pools = pools
        self._grants = grants
        self._clock = clock
        self._changes: dict[str, _Change] = {}

    def add_routes(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get("/oauth2/authorize", self.authorize)
        app.router.add_get("/login", self.show_login)
        app.router.add_post("/login", self.login)
        app.router.add_get("/logout", self.logout)
        app.router.add_get("/error", self.show_error)

    async def authorize(self, request: web.Request) -> web.StreamResponse:
        """Check the request, and show the sign-in."""
        asked = self._asked(request)
        if asked.prompt == "none":
            session = self._session(request, asked.client)
            if session is None:
                raise _found(_with(asked.redirect_uri, {"error": "login_required", "state": asked.state}))
            return self._send_back(asked, session.username, session.auth_time)
        raise _found(f"/login?{request.query_string}")

    async def show_login(self, request: web.Request) -> web.StreamResponse:
        """The form."""
        return self._form(request, self._asked(request))

    async def login(self, request: web.Request) -> web.StreamResponse:
        """Take the form, and send the browser back to the application."""
        asked = self._asked(request)
        form = {name: str(value) for name, value in (await request.post()).items()}
        if not _same(form.get("_csrf"), request.cookies.get(CSRF_COOKIE)):
            return self._form(request, asked, error="The sign-in page has expired. Sign in again.")
        if "continue" in form:
            session = self._session(request, asked.client)
            if session is None:
                return self._form(request, asked, error="The session has expired. Sign in again.")
            return self._send_back(asked, session.username, session.auth_time)
        if "session" in form:
            return self._change(request, asked, form)
        name = form.get("username", "")
        user = self._pools.check_password(asked.client.pool_id, name, form.get("password", ""))
        if user is None:
            return self._form(request, asked, error=WRONG_PASSWORD, username=name)
        if user.must_change_password:
            return self._ask_new_password(request, user, asked)
        return self._sign_in(asked, user.username)

    async def logout(self, request: web.Request) -> web.StreamResponse:
        """End the browser's session, and go to a registered address or back to the sign-in."""
        query = request.query
        client = self._pools.client(query.get("client_id", ""))
        if client is None:
            raise _found(f"/error?{urlencode({'error': 'invalid_request'})}")
        self._grants.end_session(request.cookies.get(SESSION_COOKIE, ""))
        if "logout_uri" in query:
            known = query["logout_uri"] in client.logout_urls
            target = query["logout_uri"] if known else _error("redirect_mismatch", client.id)
        elif "redirect_uri" in query:
            target = f"/login?{request.query_string}"
        else:
            target = _error("invalid_request", client.id)
        response = web.Response(status=302, headers={"Location": target})
        response.del_cookie(SESSION_COOKIE)
        return response

    async def show_error(self, request: web.Request) -> web.StreamResponse:
        """The page of a request that names no application to go back to."""
        return pages.failure(request.query.get("error", ""))

    # --- requests ---

    def _asked(self, request: web.Request) -> Asked:
        query = request.query
        client_id = query.get("client_id", "")
        client = self._pools.client(client_id)
        if client is None or not self._pools.has_domain(client.pool_id):
            raise _found(_error("invalid_request", client_id))
        redirect_uri = query.get("redirect_uri", "")
        if redirect_uri not in client.callback_urls:
            raise _found(_error("redirect_mismatch", client_id))
        try:
            return _read(query, client, redirect_uri)
        except RedirectRefused as refused:
            raise _found(_with(redirect_uri, {"error": refused.error, "state": query.get("state")})) from None

    def _session(self, request: web.Request, client: Client) -> Session | None:
        session = self._grants.in_session(request.cookies.get(SESSION_COOKIE, ""), client.pool_id)
        return session if session and self._pools.user(session.pool_id, session.username) else None

    # --- the sign-in ---

    def _form(self, request: web.Request, asked: Asked, *, error: str = "", username: str = "") -> web.Response:
        session = None if asked.prompt == "login" else self._session(request, asked.client)
        user = self._pools.user(session.pool_id, session.username) if session else None
        csrf = secrets.token_urlsafe(24)
        response = pages.sign_in(csrf, error=error, username=username, signed_in_as=user.name if user else None)
        return _with_csrf(response, csrf)

    def _ask_new_password(self, request: web.Request, user: User, asked: Asked, error: str = "") -> web.Response:
        change = secrets.token_urlsafe(24)
        self._changes[change] = _Change(asked.client.pool_id, user.username, self._clock() + _CHALLENGE_LIFETIME_S)
        csrf = request.cookies[CSRF_COOKIE]
        return pages.new_password(csrf, change, error=error)

    def _change(self, request: web.Request, asked: Asked, form: Mapping[str, str]) -> web.StreamResponse:
        change = self._changes.pop(form["session"], None)
        user = self._pools.user(change.pool_id, change.username) if change and self._clock() < change.until else None
        if user is None:
            return self._form(request, asked, error="The sign-in page has expired. Sign in again.")
        try:
            self._pools.set_password(asked.client.pool_id, user.username, form.get("new_password", ""))
        except PasswordInvalid as error:
            return self._ask_new_password(request, user, asked, str(error))
        return self._sign_in(asked, user.username)

    def _sign_in(self, asked: Asked, username: str) -> web.StreamResponse:
        now = int(self._clock())
        response = self._send_back(asked, username, now)
        session = self._grants.session(asked.client.pool_id, username, now)
        response.set_cookie(SESSION_COOKIE, session, max_age=SESSION_LIFETIME_S, httponly=True, samesite="Lax")
        return response

    def _send_back(self, asked: Asked, username: str, auth_time: int) -> web.Response:
        client = asked.client
        grant = self._grants.new_grant(client.pool_id, client.id, username, asked.scopes, asked.nonce, auth_time)
        code = self._grants.code(grant, asked.redirect_uri, asked.challenge)
        location = _with(asked.redirect_uri, {"code": code, "state": asked.state})
        return web.Response(status=302, headers={"Location": location})


def _read(query: Mapping[str, str], client: Client, redirect_uri: str) -> Asked:
    kind = query.get("response_type")
    if kind not in ("code", "token"):
        raise RedirectRefused("invalid_request")
    if kind == "token" or "code" not in client.flows:
        raise RedirectRefused("unauthorized_client")
    return Asked(
        client=client,
        redirect_uri=redirect_uri,
        scopes=_scopes(query, client),
        state=query.get("state"),
        nonce=query.get("nonce"),
        challenge=_challenge(query, client),
        prompt=query.get("prompt"),
    )


def _scopes(query: Mapping[str, str], client: Client) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(query.get("scope", "").split())) or client.scopes
    if not set(asked) <= SCOPES & set(client.scopes):
        raise RedirectRefused("invalid_scope")
    if "openid" not in asked and set(asked) & {"email", "phone", "profile"}:
        raise RedirectRefused("invalid_scope")
    return asked


def _challenge(query: Mapping[str, str], client: Client) -> str | None:
    challenge, method = query.get("code_challenge"), query.get("code_challenge_method")
    if challenge is None and method is None and client.secret is not None:
        return None
    if challenge is None or method != "S256" or CHALLENGE.fullmatch(challenge) is None:
        raise RedirectRefused("invalid_request")
    return challenge


def _error(error: str, client_id: str) -> str:
    return f"/error?{urlencode({'error': error, 'client_id': client_id})}"


def _with(url: str, fields: Mapping[str, str | None]) -> str:
    separator = "&" if urlsplit(url).query else "?"
    return url + separator + urlencode({name: value for name, value in fields.items() if value is not None})


def _found(location: str) -> web.HTTPFound:
    return web.HTTPFound(location)


def _same(one: str | None, other: str | None) -> bool:
    return bool(one) and bool(other) and secrets.compare_digest(str(one).encode(), str(other).encode())


def _with_csrf(response: web.Response, csrf: str) -> web.Response:
    response.set_cookie(CSRF_COOKIE, csrf, path="/", httponly=True, samesite="Lax")
    return response
