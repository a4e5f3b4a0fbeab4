"""The ASGI application behind the function URL: MCP, an OpenAI-compatible API, and what clients need to sign in.

``/mcp``                                    MCP's streamable HTTP, without sessions
``/v1/chat/completions``, ``/v1/models``    OpenAI's API over ``ask``
``/.well-known/oauth-protected-resource``   where to get a token (RFC 9728), public
``/health``                                 that the function runs, public
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from cicada import __version__
from cicada_client.connection import Connector, TransportClosed, connect_websocket
from cicada_client.errors import ClientError
from cicada_http.clients import ClientFactory
from cicada_http.gate import Gate
from cicada_http.refusals import HttpRefusal, answer_refusal
from cicada_http.settings import HttpSettings

MCP_PATH, METADATA_PATH, HEALTH_PATH = "/mcp", "/.well-known/oauth-protected-resource", "/health"


@dataclass(frozen=True)
class Part:
    """A part of the application."""

    routes: Sequence[BaseRoute]
    running: Callable[[], AbstractAsyncContextManager[Any]] | None = None
    """Entered when the application starts, and left when it ends."""


MakePart = Callable[[ClientFactory], Part]


def create_app(settings: HttpSettings, *parts: MakePart, connector: Connector = connect_websocket) -> Starlette:
    """Make the application.

    Args:
        settings: of the deployment.
        parts: make the parts, each over a factory of clients.
        connector: opens connections to the deployment.
    """
    clients = ClientFactory(settings.websocket_url, connector)
    made = [make(clients) for make in parts]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for part in made:
                if part.running is not None:
                    await running.enter_async_context(part.running())
            yield

    metadata = [Route(path, _metadata(settings)) for path in (METADATA_PATH, f"{METADATA_PATH}{MCP_PATH}")]
    return Starlette(
        routes=[Route(HEALTH_PATH, _health), *metadata, *(route for part in made for route in part.routes)],
        lifespan=lifespan,
        middleware=[Middleware(Gate, settings, clients, public=_is_public, challenge=_challenge)],
        exception_handlers={
            HttpRefusal: answer_refusal,
            ClientError: answer_refusal,
            TransportClosed: answer_refusal,
            HTTPException: _answer_http_exception,
            Exception: answer_refusal,
        },
    )


def _is_public(path: str) -> bool:
    return path == HEALTH_PATH or path.startswith(METADATA_PATH)


def _challenge(request: Request) -> str:
    """Where a client without a token finds what it needs: RFC 9728, section 5.1."""
    return f'resource_metadata="{_base(request)}{METADATA_PATH}{MCP_PATH}"'


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok", "release": __version__})


def _metadata(settings: HttpSettings) -> Callable[[Request], Any]:
    async def metadata(request: Request) -> JSONResponse:
        if not settings.jwt_issuer:
            raise HttpRefusal(404, "not_found", "This deployment asks for no sign-in.")
        return JSONResponse(
            {
                "resource": f"{_base(request)}{MCP_PATH}",
                "resource_name": "Cicada",
                "authorization_servers": [settings.jwt_issuer],
                "scopes_supported": settings.jwt_scopes.split(),
                "bearer_methods_supported": ["header"],
            }
        )

    return metadata


async def _answer_http_exception(_: Request, error: Exception) -> JSONResponse:
    """Starlette's own: an unknown path, a method that a path does not have."""
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request")
    return HttpRefusal(error.status_code, code, error.detail, error.headers).response()
