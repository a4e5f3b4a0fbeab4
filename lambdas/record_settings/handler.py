"""Records which settings a deployment changes: the custom resource ``Custom::RecordedSettings``."""

from __future__ import annotations

import os
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.audit.records import function_actor
from cicada.audit.settings_recorder import SettingsRecorder
from cicada.custom_resources import respond
from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.settings import RecordSettingsSettings
from cicada.telemetry import logger

settings = RecordSettingsSettings.read(os.environ)
store = S3Store(boto3.client("s3", config=CLIENT_CONFIG), settings.index_bucket)
recorder = SettingsRecorder(store, function_actor("cloudformation.amazonaws.com"))


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Do what CloudFormation asks for, and tell it the outcome."""
    logger.info("settings deployed", extra={"request": event["RequestType"]})
    respond(event, f"{settings.index_bucket}/settings", recorder.handle)
