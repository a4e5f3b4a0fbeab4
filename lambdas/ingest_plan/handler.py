"""Plans a run of the ingest workflow: what of a collection's uploads is new, changed or gone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.ingest.incoming.bucket import IncomingBucket
from cicada.ingest.incoming.planning import plan
from cicada.ingest.incoming.starting import START_CONFIG, IngestStarter
from cicada.ingest.known_sources import read_collection
from cicada.ingest.settings import IngestPlanSettings
from cicada.telemetry import logger

settings = IngestPlanSettings.read(os.environ)
s3 = boto3.client("s3", config=CLIENT_CONFIG)
store, uploads = S3Store(s3, settings.index_bucket), IncomingBucket(s3, settings.index_bucket)
runs = IngestStarter(boto3.client("stepfunctions", config=START_CONFIG), settings.ingest_machine_arn)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Write the plan, and say how much there is to do."""
    collection, run = event["collection"], event["run"]
    logger.append_keys(collection=collection, run=run)

    def held(of: str) -> Mapping[str, int]:
        return read_collection(store, of, settings.embedding_model_id, settings.embedding_dimensions).counts

    recipe = settings.recipe(collection)
    planned = plan(uploads, store, collection, run, recipe, held=held, is_running=runs.is_running)
    told = {"documents": planned.documents, "gone": planned.gone, "deferred": planned.deferred}
    logger.info("ingest planned", extra=told)
    return planned.model_dump(by_alias=True)
