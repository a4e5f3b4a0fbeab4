"""Prepares one batch of a run's documents: reads, cuts, enriches and embeds each of them."""

from __future__ import annotations

import os
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.ingest.incoming.batches import prepare, recipe_of
from cicada.ingest.incoming.bucket import IncomingBucket
from cicada.ingest.incoming.run_records import Batch
from cicada.ingest.settings import IngestSettings
from cicada.ingest.wiring import preparer
from cicada.models.bedrock import bedrock_client_config
from cicada.models.endpoint_keys import SECRETS_CONFIG
from cicada.models.factory import ModelFactory
from cicada.telemetry import logger

KEPT_S = 30.0
"""Of a function's time, for keeping what was prepared."""

settings = IngestSettings.read(os.environ)
s3 = boto3.client("s3", config=CLIENT_CONFIG)
bedrock = boto3.client("bedrock-runtime", config=bedrock_client_config())
models = ModelFactory(
    bedrock=lambda: bedrock,
    secrets=lambda: boto3.client("secretsmanager", config=SECRETS_CONFIG),
    endpoints=settings.model_endpoints,
)
store, uploads = S3Store(s3, settings.index_bucket), IncomingBucket(s3, settings.index_bucket)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Prepare the batch. What became of it lies in the bucket: a workflow has no room for the outcomes of all."""
    batch = Batch.model_validate(event)
    logger.append_keys(collection=batch.collection, run=batch.run, batch=batch.number)

    def remaining_s() -> float:
        return context.get_remaining_time_in_millis() / 1000

    one = preparer(
        recipe_of(batch, settings.recipe(batch.collection), store),
        batch.collection,
        store,
        bedrock,
        models,
        time_left_s=lambda: max(1.0, remaining_s() - KEPT_S),
    )
    counts = prepare(batch, uploads, store, one.prepare, remaining_s=remaining_s)
    logger.info("batch prepared", extra=counts)
