"""The issuer's own address on this machine: endpoints, CORS, fault switches, and what outlives a restart.

It stands for two of Cognito's hosts: ``cognito-idp.<region>.amazonaws.com`` (discovery and keys, below the pool's id)
and the pool's domain (everything else). It has a port of its own, so that the page is another origin to it, as on AWS.

Fault switches (``cicada_local.faults``; ``operation`` limits each to ``discovery``, ``jwks``, ``authorize``, ``login``,
``logout``, ``token``, ``revoke`` or ``userInfo``):

``issuer.unreachable``  the connection is cut, and nothing is done
``issuer.lost_ack``     what was asked is done, and the connection is cut without an answer
``issuer.slow``         ``delay_ms`` before the answer
``issuer.error``        ``status``, 500 unless told
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from aiohttp import web

from cicada_local.faults import Faults
from cicada_local.issuer.authorize import Authorization
from cicada_local.issuer.exchange import Exchange
from cicada_local.issuer.grants import Grants, RefreshToken
from cicada_local.issuer.keys import KeyRing, SigningKey
from cicada_local.issuer.pools import Pools
from cicada_local.issuer.users import first_user, restore_users, stored_users
from cicada_local.senders import Handler, names_this_machine

CONTROL = "/_cicada/issuer/keys"
AWS_ISSUERS = "https://cognito-idp.us-east-1.amazonaws.com"
"""What the issuer's address stands for, as the stacks name it."""
_AWS_HOSTS = re.compile(rf"{re.escape(AWS_ISSUERS)}|https://[a-z0-9-]+\.auth\.us-east-1\.amazoncognito\.com")

_POOL = r"/{pool:[\w-]+_[0-9A-Za-z]+}/.well-known"
_OPERATION = re.compile(r"/(?:oauth2/)?(\w+)$")
_WELL_KNOWN = {"openid-configuration": "discovery", "jwks.json": "jwks"}
_FROM_SCRIPTS = frozenset({"token", "revoke", "userInfo"})
"""Operations that the scripts of any page may call: of those whose answers name the page's origin."""


class Issuer:
    """Serves the user pools of moto to browsers and applications."""

    def __init__(
        self,
        pools: Callable[[], dict[str, Any]],
        lock: AbstractContextManager[Any],
        faults: Faults,
        *,
        local: Callable[[str], str] = lambda url: url,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Serve pools; nothing is answered before :meth:`start`.

        Args:
            pools: moto's, by id.
            lock: held while one is read.
            faults: may make it fail.
            local: where an address that the stacks name is served on this machine: callback URLs may be either.
            clock: seconds since the epoch.
        """
        self.url = ""
        """Its address, once it listens."""
        self._moto_pools = pools
        self._lock = lock
        self._faults = faults
        self._keys: dict[str, KeyRing] = {}
        self._grants = Grants(clock)
        self._pools = Pools(pools, lock, local)
        self._parts = (
            Authorization(self._pools, self._grants, clock),
            Exchange(self._pools, self._grants, self._ring, self._issuer, clock),
        )
        self._runner: web.AppRunner | None = None

    # --- serving ---

    async def start(self, sockets: list[socket.socket]) -> None:
        """Answer requests on sockets that are bound to loopback."""
        self.url = f"http://localhost:{sockets[0].getsockname()[1]}"
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        for one in sockets:
            await web.SockSite(self._runner, one).start()

    async def close(self) -> None:
        """Stop."""
        if self._runner is not None:
            await self._runner.cleanup()

    def stands_for(self, value: str) -> str:
        """A value of the stacks with the addresses of AWS's issuers and of pools' domains replaced by this one's."""
        return _AWS_HOSTS.sub(self.url, value) if self.url else value

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get(f"{_POOL}/openid-configuration", self._discovery)
        app.router.add_get(f"{_POOL}/jwks.json", self._jwks)
        for part in self._parts:
            part.add_routes(app)
        app.router.add_route("OPTIONS", "/{path:.*}", self._preflight)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not names_this_machine(request):
            raise web.HTTPForbidden(text="The local issuer answers on this machine's own names only.\n")
        operation = _operation(request.path)
        if self._faults.take("issuer.unreachable", operation=operation) is not None:
            return _cut(request)
        if (slow := self._faults.take("issuer.slow", operation=operation)) is not None:
            await asyncio.sleep(float(slow.get("delay_ms", 1000)) / 1000)
        if (error := self._faults.take("issuer.error", operation=operation)) is not None:
            return _cors(request, web.Response(status=int(error.get("status", 500)), text="Injected.\n"))
        response = _cors(request, await handler(request))
        return response if self._faults.take("issuer.lost_ack", operation=operation) is None else _cut(request)

    async def _preflight(self, request: web.Request) -> web.Response:
        if _operation(request.path) not in _FROM_SCRIPTS | set(_WELL_KNOWN.values()):
            raise web.HTTPForbidden
        return web.Response(
            headers={
                "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
                "Access-Control-Allow-Headers": request.headers.get("Access-Control-Request-Headers", ""),
                "Access-Control-Max-Age": "600",
            }
        )

    async def _discovery(self, request: web.Request) -> web.Response:
        pool_id = self._pool_id(request)
        issuer = self._issuer(pool_id)
        domain = f"{self.url}/oauth2" if self._pools.has_domain(pool_id) else issuer
        return web.json_response(
            {
                "authorization_endpoint": f"{domain}/authorize",
                "end_session_endpoint": f"{domain.removesuffix('/oauth2')}/logout",
                "id_token_signing_alg_values_supported": ["RS256"],
                "issuer": issuer,
                "jwks_uri": f"{issuer}/.well-known/jwks.json",
                "response_types_supported": ["code", "token"],
                "revocation_endpoint": f"{domain}/revoke",
                "scopes_supported": ["openid", "email", "phone", "profile"],
                "subject_types_supported": ["public"],
                "token_endpoint": f"{domain}/token",
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
                "userinfo_endpoint": f"{domain}/userInfo",
            }
        )

    async def _jwks(self, request: web.Request) -> web.Response:
        keys = self._ring(self._pool_id(request))
        return web.json_response(
            await asyncio.to_thread(keys.published), headers={"Cache-Control": "public, max-age=86400"}
        )

    def _pool_id(self, request: web.Request) -> str:
        pool_id = request.match_info["pool"]
        if not self._pools.has(pool_id):
            told = {"message": f"User pool {pool_id} does not exist."}
            raise web.HTTPNotFound(text=json.dumps(told), content_type="application/json")
        return pool_id

    def _issuer(self, pool_id: str) -> str:
        return f"{self.url}/{pool_id}"

    def _ring(self, pool_id: str) -> KeyRing:
        return self._keys.setdefault(pool_id, KeyRing())

    # --- the control endpoints, at the front server ---

    def add_routes(self, app: web.Application) -> None:
        """Let the front server rotate and retire keys: ``GET``, ``POST`` and ``DELETE /_cicada/issuer/keys``."""
        app.router.add_get(CONTROL, self._tell_keys)
        app.router.add_post(CONTROL, self._rotate)
        app.router.add_delete(CONTROL, self._retire)

    async def _tell_keys(self, request: web.Request) -> web.Response:  # noqa: ARG002
        published = {pool: self._ring(pool).published()["keys"] for pool in self._moto_pools()}
        return web.json_response({pool: [key["kid"] for key in keys] for pool, keys in published.items()})

    async def _rotate(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response({pool: self._ring(pool).rotate() for pool in self._moto_pools()})

    async def _retire(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response({pool: self._ring(pool).retire() for pool in self._moto_pools()})

    def first_user(self) -> tuple[str, str] | None:
        """Name and password of a user of the deployed pool; None where there is no pool."""
        with self._lock:
            return next((first_user(pool) for pool in self._moto_pools().values()), None)

    # --- what outlives a restart ---

    def stored(self, earlier: Mapping[str, Any]) -> dict[str, Any]:
        """Keys, users and refresh tokens of the pools as plain data, over what is known of pools not deployed now."""
        with self._lock:
            pools = {id: stored_users(pool) for id, pool in self._moto_pools().items()}
        for id, pool in pools.items():
            pool["keys"] = self._ring(id).stored()
            pool["refreshTokens"] = {
                token: found.stored()
                for token, found in list(self._grants.refresh_tokens.items())
                if found.grant.pool_id == id and not self._pools.signed_out(id, token)
            }
        return {**earlier, **pools}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Put back what :meth:`stored` gave, into the pools that are deployed."""
        for id, pool in self._moto_pools().items():
            if id not in stored:
                continue
            with self._lock:
                restore_users(pool, stored[id])
            self._keys[id] = KeyRing([SigningKey.restored(key) for key in stored[id]["keys"]])
            for token, kept in stored[id]["refreshTokens"].items():
                found = self._grants.refresh_tokens[token] = RefreshToken.restored(kept)
                grant = found.grant
                self._pools.note_refresh_token(id, token, grant.client_id, grant.username, grant.origin_jti)


def _operation(path: str) -> str:
    last = path.rpartition("/")[2]
    if last in _WELL_KNOWN:
        return _WELL_KNOWN[last]
    found = _OPERATION.match(path)
    return found[1] if found else ""


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _cors(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """Let scripts of any page read discovery and keys, and those of the page that asks the answers about tokens."""
    operation, origin = _operation(request.path), request.headers.get("Origin")
    if operation in _WELL_KNOWN.values():
        response.headers["Access-Control-Allow-Origin"] = "*"
    elif origin is not None and operation in _FROM_SCRIPTS:
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Vary"] = "Origin"
    return response
