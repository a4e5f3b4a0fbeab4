"""Handles uploads and deletions below ``incoming/``: starts one run of the ingest workflow for many of them."""

from __future__ import annotations

import os
import time
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.ingest.incoming.places import collection_and_source, is_ignored
from cicada.ingest.incoming.starting import START_CONFIG, IngestStarter
from cicada.ingest.settings import IngestStartSettings
from cicada.telemetry import logger

settings = IngestStartSettings.read(os.environ)
starter = IngestStarter(
    boto3.client("stepfunctions", config=START_CONFIG), settings.ingest_machine_arn, window_s=settings.quiet_s
)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, str | None]:
    """Start the collection's run of this time window, unless it has been started."""
    key = event["detail"]["object"]["key"]
    place = collection_and_source(key)
    if place is None:
        (logger.warning if is_ignored(key) else logger.info)("an object is no document", extra={"key": key})
        return {"run": None}
    run = starter.start(place[0], now_s=time.time())
    logger.info("upload scheduled for a run", extra={"collection": place[0], "run": run})
    return {"run": run}
