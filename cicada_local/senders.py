"""Who may speak to the local cloud: programs of this machine, and the page that it serves.

It runs code on request (functions are deployed to it), so a web page of another origin must reach nothing of it: no
read, no write, no socket. A browser says of its requests where they come from, by ``Origin`` and ``Sec-Fetch-Site``
(Fetch Metadata, W3C), which a page cannot forge. SDKs, the CDK and curl send neither.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from cicada_local.s3_forms import is_upload
from cicada_local.s3_links import is_link

ORIGINS_VARIABLE = "CICADA_LOCAL_ORIGINS"
"""Names further origins, parted by commas, whose pages may open the WebSocket: of a page that is served elsewhere."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
REFUSED = "The local cloud answers this machine's programs and its own page only.\n"
SOCKET_PREFIX = "/_ws/"
CONTROL_PREFIX = "/_cicada/"

_OURS = re.compile(rf"(?:{'|'.join(map(re.escape, LOOPBACK))})(?::([0-9]+))?", re.IGNORECASE | re.ASCII)
"""A name of this machine, as a ``Host`` or an origin writes it, with its port."""

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
        own = _named(request)
        if own is None:
            return False
        if not _is_from_browser(request):
            return True
        origins, site = request.headers.getall("Origin", ()), request.headers.get("Sec-Fetch-Site")
        if not all(self._is_known(origin, request, own) for origin in origins):
            return False
        if request.path.startswith(SOCKET_PREFIX) and "/@connections/" not in request.path:
            return bool(origins) and request.headers.get("Upgrade", "").lower() == "websocket"
        if is_upload(request):
            return bool(origins)  # who may read the answer, the bucket's own rules say
        if is_link(request):
            return _is_followed_link(request)
        if self._serves_page(request):
            return site in (None, "same-origin", "none") or _is_followed_link(request)
        typed = request.method == "GET" and site == "none"  # into the address bar
        return typed and request.path.startswith(CONTROL_PREFIX)

    def _is_known(self, origin: str, request: web.Request, own: re.Match[str]) -> bool:
        """Whether an origin is the page's own, by whatever name of this machine, or was named by the user."""
        if origin in self._further:
            return request.path.startswith(SOCKET_PREFIX)
        scheme, _, host = origin.partition("://")
        named = _OURS.fullmatch(host)
        return scheme == "http" and named is not None and named[1] == own[1]


def is_from_program(request: web.BaseRequest) -> bool:
    """Whether a request is of a program of this machine: no browser sends it, and it names this machine as its host."""
    return _named(request) is not None and not _is_from_browser(request)


def is_of_program(headers: Mapping[str, str]) -> bool:
    """The same, of a request's headers by their names in lower case."""
    ours = _OURS.fullmatch(headers.get("host", "")) is not None
    return ours and not any(name == "origin" or name.startswith("sec-fetch-") for name in headers)


@web.middleware
async def programs_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer browsers with 403: for ports that serve no page."""
    if not is_from_program(request):
        raise web.HTTPForbidden(text=REFUSED)
    return await handler(request)


def names_this_machine(request: web.BaseRequest) -> bool:
    """Whether a request is sent to a name of this machine, and not to another's that is bound to our address."""
    return _named(request) is not None


def _named(request: web.BaseRequest) -> re.Match[str] | None:
    """The name of this machine that a request is sent to; None where it is another's, be it bound to our address.

    A request line may hold a whole URL, which counts over the header: then both are to be ours.
    """
    return _OURS.fullmatch(request.host) and _OURS.fullmatch(request.headers.get("Host", ""))


def _is_from_browser(request: web.BaseRequest) -> bool:
    return any(name == "Origin" or name.startswith("Sec-Fetch-") for name in map(str.title, request.headers))


def _is_followed_link(request: web.Request) -> bool:
    """Whether somebody followed a link: what it leads to is shown in a tab of its own, and told nothing."""
    fetched = (request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest"))
    return request.method == "GET" and fetched == ("navigate", "document") and "Origin" not in request.headers
