"""``$connect`` and ``$disconnect``: connections are not stored, only logged; the subprotocol is chosen.

A closed connection is taken off its requests by the next post to it: API Gateway does not promise ``$disconnect``.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.identity import ANONYMOUS, asker_of, owner_of
from cicada.subprotocols import chosen
from cicada.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Accept a connection that the authorizer allowed; log when it opens and closes."""
    connection = event["requestContext"]
    identity = connection.get("authorizer") or {}
    owner = owner_of(identity.get("subject", ANONYMOUS), identity.get("tenant"))
    opened = connection["eventType"] == "CONNECT"
    logger.info(
        "connection opened" if opened else "connection closed",
        extra={
            "connection_id": connection["connectionId"],
            "asker": asker_of(owner),
            "open_s": round((connection["requestTimeEpoch"] - connection["connectedAt"]) / 1000),
            "close_code": connection.get("disconnectStatusCode"),  # the reason is the client's words
        },
    )
    return {"statusCode": 200, "headers": chosen(event) if opened else {}}
