"""Recovers requests without a worker: restarts or ends them. A run that finds none logs nothing."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.answering.recovery import Recovery
from cicada.answering.workflow import START_CONFIG, StepFunctionsStarter
from cicada.attempts.budgets import RequestBudget
from cicada.delivery.connections import POST_CONFIG, ApiGatewayConnections
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.metrics import POSTS_REJECTED, REQUESTS_FAILED, REQUESTS_RECOVERED
from cicada.settings import RecoverySettings
from cicada.telemetry import logger, report

settings = RecoverySettings.read(os.environ)
recovery = Recovery(
    DynamoDbLog(boto3.client("dynamodb", config=STORE_CONFIG), settings.requests_table),
    ApiGatewayConnections(
        boto3.client("apigatewaymanagementapi", config=POST_CONFIG), on_rejected=lambda: report({POSTS_REJECTED: 1})
    ),
    StepFunctionsStarter(boto3.client("stepfunctions", config=START_CONFIG), settings.state_machine_arn),
    budget=RequestBudget(time_s=settings.request_time_s),
    on_recovered=lambda _: report({REQUESTS_RECOVERED: 1}),
    on_failed=lambda: report({REQUESTS_FAILED: 1}),
)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Check every open request once, as far as the time reaches."""
    swept = recovery.sweep(lambda: context.get_remaining_time_in_millis() / 1000)
    told = asdict(swept)
    if swept.failed:
        logger.warning("some requests were not recovered", extra=told)
    return told
