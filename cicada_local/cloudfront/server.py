"""CloudFront's viewers, at the front server's address: a browser gets there what the deployed distribution serves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import unquote

from aiohttp import web

from cicada_local.cloudfront.distribution import Distribution
from cicada_local.cloudfront.edge import Edge, ViewerRequest
from cicada_local.senders import CONTROL_PREFIX, SOCKET_PREFIX

NOT_DEPLOYED = "The page is not deployed (yet).\n"


class CloudFront:
    """Serves one distribution, the first that is deployed: this machine has no names for several."""

    def __init__(self, distributions: Callable[[], Mapping[str, Distribution]], edge: Edge) -> None:
        """Serve.

        Args:
            distributions: what is deployed, by id.
            edge: answers for them.
        """
        self._distributions = distributions
        self._edge = edge

    def serves(self, request: web.BaseRequest) -> bool:
        """Whether this is a viewer's request: a read that is not signed, as every call of an AWS service is."""
        if request.method not in ("GET", "HEAD") or _is_signed(request):
            return False
        if request.path.startswith((CONTROL_PREFIX, SOCKET_PREFIX)):
            return False
        return request.path == "/" or bool(self._distributions())

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """What the distribution serves for the path; 503 without one."""
        distribution = next(iter(self._distributions().values()), None)
        if distribution is None:
            return web.Response(status=503, text=NOT_DEPLOYED, headers={"Retry-After": "1"})
        asked = ViewerRequest(
            path=unquote(request.raw_path.partition("?")[0]),
            accepts_gzip="gzip" in request.headers.get("Accept-Encoding", ""),
            if_none_match=request.headers.get("If-None-Match", ""),
        )
        found = await asyncio.to_thread(self._edge.answer, distribution, asked)
        if request.method == "HEAD":
            found = replace(found, headers={**found.headers, "content-length": str(len(found.body))}, body=b"")
        return web.Response(status=found.status, headers=found.headers, body=found.body or None)


def _is_signed(request: web.BaseRequest) -> bool:
    signed_query = ("X-Amz-Signature", "X-Amz-Credential", "AWSAccessKeyId")
    return "Authorization" in request.headers or any(name in request.query for name in signed_query)
