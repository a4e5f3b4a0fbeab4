"""``POST /mcp``: MCP's streamable HTTP over the deployment, without sessions.

There is no ``GET``: its stream would carry nothing, and keep the function running until its time-out.
"""

from __future__ import annotations

from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route

from cicada_http.app import MCP_PATH, Part
from cicada_mcp.server import Clients, create_server


def part(clients: Clients) -> Part:
    """The route, over a factory of clients."""
    server = create_server(clients)
    app = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        stateless_http=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the gate checks origins
    )
    (endpoint,) = (route.endpoint for route in app.routes if isinstance(route, Route))
    return Part([Route(MCP_PATH, endpoint, methods=["POST"])], server.session_manager.run)
