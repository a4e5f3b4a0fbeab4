"""Closes a request whose every strategy failed, with what was tried."""

from __future__ import annotations

import os
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.answering.finalisation import close_exhausted
from cicada.answering.workflow import ExhaustedTask
from cicada.delivery.connections import POST_CONFIG, ApiGatewayConnections
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.identity import asker_of
from cicada.metrics import POSTS_REJECTED, REQUESTS_FAILED
from cicada.settings import DeliverySettings
from cicada.telemetry import logger, report

settings = DeliverySettings.read(os.environ)
log = DynamoDbLog(boto3.client("dynamodb", config=STORE_CONFIG), settings.requests_table)
connections = ApiGatewayConnections(
    boto3.client("apigatewaymanagementapi", config=POST_CONFIG), on_rejected=lambda: report({POSTS_REJECTED: 1})
)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, bool]:
    """Append the terminal error, unless the request has ended or another execution drives it."""
    task = ExhaustedTask.model_validate(event)
    logger.append_keys(request_id=task.request_id, asker=asker_of(task.subject))
    error = close_exhausted(task, log, connections)
    if error is not None:
        # Not the causes: they hold messages and stack traces of all kinds.
        failures = {strategy: caught.get("Error") for strategy, caught in task.failures.items()}
        logger.error("every strategy failed", extra={"failures": failures})
        if error.fault:
            report({REQUESTS_FAILED: 1})
    return {"ended": error is not None}
