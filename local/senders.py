"""Who may speak to the local cloud: programs of this machine, and the page that it serves.

It runs code on request (functions are deployed to it), so a web page of another origin must reach nothing of it: no
read, no write, no socket. A browser says of its requests where they come from, by ``Origin`` and ``Sec-Fetch-Site``
(Fetch Metadata, W3C), which a page cannot forge. SDKs, the CDK and curl send neither.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from aiohttp import web

ORIGINS_VARIABLE = "CICADA_LOCAL_ORIGINS"
"""Names further origins, parted by commas, whose pages may open the WebSocket: of a page that is served elsewhere."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
REFUSED = "The local cloud answers this machine's programs and its own page only.\n"
SOCKET_PREFIX = "/_ws/"
CONTROL_PREFIX = "/_cicada/"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Senders:
    """Refuses requests of foreign hosts and origins, whatever route they are for."""

    def __init__(self, serves_page: Callable[[web.Request], bool], *, environ: Mapping[str, str] | None = None) -> None:
        """Wire it.

        Args:
            serves_page: whether a request is for the page's own files.
            environ: names further origins; the process's own if none is given.
        """
        self._serves_page = serves_page
        named = (os.environ if environ is None else environ).get(ORIGINS_VARIABLE, "")
        self._further = frozenset(origin.strip().rstrip("/") for origin in named.split(",") if origin.strip())

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Hand a request on, or answer it with 403."""
        if not self._is_ours(request):
            raise web.HTTPForbidden(text=REFUSED)
        return await handler(request)

    def _is_ours(self, request: web.Request) -> bool:
        hostname, _ = _host_of(f"//{request.host}")
        if hostname not in LOOPBACK:  # a name that is bound to this machine's address is still theirs (DNS rebinding)
            return False
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
        if origin is None and site is None:
            return True  # no browser
        if origin is not None and not self._is_known(origin, request):
            return False
        if request.path.startswith(SOCKET_PREFIX) and "/@connections/" not in request.path:
            return origin is not None and request.headers.get("Upgrade", "").lower() == "websocket"
        if self._serves_page(request):
            return site in (None, "same-origin", "none") or _is_followed_link(request)
        return request.path.startswith(CONTROL_PREFIX) and site == "none"  # typed into the address bar

    def _is_known(self, origin: str, request: web.Request) -> bool:
        """Whether an origin is the page's own, by whatever name of this machine, or was named by the user."""
        if origin in self._further:
            return request.path.startswith(SOCKET_PREFIX)
        hostname, port = _host_of(origin)
        _, own_port = _host_of(f"//{request.host}")
        return origin.startswith("http://") and hostname in LOOPBACK and port == own_port


def is_from_program(request: web.BaseRequest) -> bool:
    """Whether a request is of a program of this machine: no browser sends it, and it names this machine as its host."""
    hostname, _ = _host_of(f"//{request.host}")
    return hostname in LOOPBACK and not any(name in request.headers for name in ("Origin", "Sec-Fetch-Site"))


@web.middleware
async def programs_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer browsers with 403: for ports that serve no page."""
    if not is_from_program(request):
        raise web.HTTPForbidden(text=REFUSED)
    return await handler(request)


def _host_of(sender: str) -> tuple[str, int | None]:
    """A sender's host name and port; an empty name where it cannot be read."""
    try:
        parts = urlsplit(sender)
        return parts.hostname or "", parts.port
    except ValueError:
        return "", None


def _is_followed_link(request: web.Request) -> bool:
    """Whether somebody followed a link to the page: it is shown in a tab of its own, and told nothing."""
    fetched = (request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest"))
    return request.method == "GET" and fetched == ("navigate", "document") and "Origin" not in request.headers
