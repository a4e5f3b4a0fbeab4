"""Plans a run of the ingest workflow: what of a collection's uploads is new, changed or gone."""

from __future__ import annotations

import os
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.ingest.incoming.bucket import IncomingBucket
from cicada.ingest.incoming.steps import plan
from cicada.ingest.settings import IngestSettings
from cicada.telemetry import logger

settings = IngestSettings.read(os.environ)
s3 = boto3.client("s3", config=CLIENT_CONFIG)
store, uploads = S3Store(s3, settings.index_bucket), IncomingBucket(s3, settings.index_bucket)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Write the plan, and say how much there is to do."""
    collection, run = event["collection"], event["run"]
    logger.append_keys(collection=collection, run=run)
    planned = plan(uploads, store, collection, run, settings.recipe(collection))
    logger.info("ingest planned", extra={"documents": planned.documents, "gone": planned.gone})
    return planned.model_dump(by_alias=True)
