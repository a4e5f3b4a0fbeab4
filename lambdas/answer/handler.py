"""The answer worker: one attempt of one strategy at one request."""

from __future__ import annotations

import os
from typing import Any

import boto3
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from cicada.answering.attempt import AttemptRunner, Outcome
from cicada.answering.direct import DirectStrategy
from cicada.answering.rag import RagStrategy
from cicada.answering.workflow import AttemptTask
from cicada.delivery.connections import POST_CONFIG, ApiGatewayConnections
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.settings import AnswerSettings
from cicada.telemetry import logger, metrics

settings = AnswerSettings.read(os.environ)
