"""API Gateway for WebSocket APIs: upgrades, routes, integrations, and the callback API.

How the local cloud mounts it::

    gateway = WebSocketGateway(
        lookup,                        # (api_id, stage) -> ApiConfig | None
        functions.invoke,              # FunctionService.invoke, or anything with its signature
        faults=faults,
        limits=Limits(),
    )
    gateway.add_routes(app)            # the three below; closes with the app

    GET             /_ws/{apiId}/{stage}                               the WebSocket upgrade
    POST GET DELETE /_ws/{apiId}/{stage}/@connections/{connectionId}   the callback API, for boto3 clients with
                                       endpoint_url="http://localhost:4600/_ws/<apiId>/<stage>"

    control = GatewayControl(gateway)    # to be called on the event loop, as all of this
    control.connections()              # [ConnectionInfo(connection_id, api_id, stage, connected_at_ms, ...)]
    control.drop(connection_id)        # cut as a network would, without a close frame; False if there is none
    await gateway.close()              # closes every socket with 1001; idempotent, add_routes() lets the app call it

``lookup`` is asked at each upgrade; a connection keeps the configuration that it was opened under. The faults are
``gateway.gone``, ``gateway.busy``, ``gateway.slow`` (``delay_ms``), ``gateway.lost_ack`` and ``gateway.drop``
(``after``: posts to one connection); each takes an optional ``connection``. CONFORMANCE.md says what is as on AWS and
what is not.
"""

from cicada_local.gateway.config import ApiConfig, AuthorizerConfig, Limits, RouteConfig
from cicada_local.gateway.control import ConnectionInfo, GatewayControl
from cicada_local.gateway.gateway import WebSocketGateway
from cicada_local.gateway.integration import Invoke

__all__ = [
    "ApiConfig",
    "AuthorizerConfig",
    "ConnectionInfo",
    "GatewayControl",
    "Invoke",
    "Limits",
    "RouteConfig",
    "WebSocketGateway",
]
