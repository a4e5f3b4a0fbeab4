"""The open WebSocket connections, through API Gateway's management API."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.delivery.ports import ConnectionBusy, ConnectionGone
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)

POST_CONFIG = Config(connect_timeout=1, read_timeout=1.5, retries={"mode": "standard", "total_max_attempts": 1})
"""Time-outs in seconds. With the default read time-out of 60 s, one stuck reader could block a worker for minutes. A
lost post is recovered from the log."""


class ApiGatewayConnections:
    """:class:`cicada.delivery.ports.Connections` over the API Gateway management API."""

    def __init__(self, client: Any, *, on_rejected: Callable[[], None] = lambda: None) -> None:
        """Post by a client.

        Args:
            client: an apigatewaymanagementapi client made with :data:`POST_CONFIG`.
            on_rejected: is called for each frame that is refused for no fault of its connection.
        """
        self._client = client
        self._on_rejected = on_rejected

    def post(self, connection_id: str, frame: str) -> None:
        """See the port."""
        try:
            self._client.post_to_connection(ConnectionId=connection_id, Data=frame.encode())
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if status == 410:
                raise ConnectionGone(connection_id) from error
            if status in (400, 403):  # an id of another API, or a missing permission: a retry will not help
                told = {"dependency": "connections", "connection_id": connection_id, "why": str(error)}
                log_event(logger, "fault", "post rejected", level=logging.WARNING, **told)
                self._on_rejected()
            raise ConnectionBusy(f"{connection_id}: {error}") from error
        except BotoCoreError as error:
            raise ConnectionBusy(f"{connection_id}: {error}") from error
