"""The open WebSocket connections, through API Gateway's management API."""

from __future__ import annotations

import logging
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cicada.delivery.ports import ConnectionBusy, ConnectionGone

logger = logging.getLogger(__name__)

POST_CONFIG = Config(connect_timeout=1, read_timeout=1.5, retries={"mode": "standard", "total_max_attempts": 1})
"""Time-outs in seconds. With the default read time-out of 60 s, one stuck reader could block a worker for minutes. A
lost post is recovered from the log."""


class ApiGatewayConnections:
    """:class:`cicada.delivery.ports.Connections` over the API Gateway management API."""

    def __init__(self, client: Any) -> None:
        """``client``: an apigatewaymanagementapi client made with :data:`POST_CONFIG`."""
        self._client = client

    def post(self, connection_id: str, frame: str) -> None:
        """See the port."""
        try:
            self._client.post_to_connection(ConnectionId=connection_id, Data=frame.encode())
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if status == 410:
                raise ConnectionGone(connection_id) from error
            if status in (400, 403):  # an id of another API, or a missing permission: a retry will not help
                logger.warning("post rejected", extra={"connection_id": connection_id, "why": str(error)})
            raise ConnectionBusy(f"{connection_id}: {error}") from error
        except BotoCoreError as error:
            raise ConnectionBusy(f"{connection_id}: {error}") from error
