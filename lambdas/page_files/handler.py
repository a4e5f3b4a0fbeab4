"""Puts the web page into its bucket, and has the index's bucket accept its uploads: three custom resources."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.custom_resources import respond
from cicada.page.publishing import CLIENT_CONFIG, PagePublisher, S3CrossOrigin, S3PageBucket
from cicada.settings import PageFilesSettings
from cicada.telemetry import logger

WEB = Path(__file__).parent / "web"
"""The bundled page, which is part of this function's package."""

settings = PageFilesSettings.read(os.environ)
s3 = boto3.client("s3", config=CLIENT_CONFIG)
publisher = PagePublisher(S3PageBucket(s3, settings.page_bucket), WEB, S3CrossOrigin(s3))


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Do what CloudFormation asks for, and tell it the outcome."""
    logger.info("page files requested", extra={"request": event["RequestType"], "resource": event["ResourceType"]})
    respond(event, f"{settings.page_bucket}/{event['LogicalResourceId']}", publisher.handle)
