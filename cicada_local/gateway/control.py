"""The operator's hand on the gateway: what is connected, and cutting it."""

from __future__ import annotations

from dataclasses import dataclass

from cicada_local.gateway.gateway import WebSocketGateway


@dataclass(frozen=True)
class ConnectionInfo:
    """An open connection."""

    connection_id: str
    api_id: str
    stage: str
    connected_at_ms: int
    """Milliseconds since the epoch, as all times here."""
    last_active_at_ms: int
    posts: int
    """Messages that the callback API sent."""
    unsent_bytes: int
    """What waits for the client to read."""


class GatewayControl:
    """Looks into a gateway, and cuts connections as a bad network would."""

    def __init__(self, gateway: WebSocketGateway) -> None:
        self._connections = gateway.connections

    def connections(self) -> list[ConnectionInfo]:
        """The open connections, oldest first."""
        return [
            ConnectionInfo(
                connection.client.connection_id,
                connection.client.api.api_id,
                connection.client.api.stage,
                connection.client.connected_at_ms,
                connection.last_active_at_ms,
                connection.posts,
                connection.socket.unsent_bytes,
            )
            for connection in self._connections
        ]

    def drop(self, connection_id: str) -> bool:
        """Cut a connection without a close frame. False if there is none."""
        connection = self._connections.find(connection_id)
        if connection is None:
            return False
        connection.socket.cut()
        return True
