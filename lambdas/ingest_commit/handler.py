"""Ends a run of the ingest workflow: publishes what was prepared, deletes what is gone, and writes the report."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.audit.records import function_actor
from cicada.index.s3 import CLIENT_CONFIG, S3Store
from cicada.index.writer import Declares
from cicada.ingest.committing import commit
from cicada.ingest.contracts import IngestReport, Prepared
from cicada.ingest.incoming.bucket import IncomingBucket
from cicada.ingest.incoming.finishing import finish
from cicada.ingest.recorded_store import RecordedStore
from cicada.ingest.settings import IngestSettings
from cicada.metrics import DOCUMENTS_NOT_PREPARED, DOCUMENTS_QUARANTINED
from cicada.models.bedrock import bedrock_client_config
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.telemetry import logger, report

settings = IngestSettings.read(os.environ)
s3 = boto3.client("s3", config=CLIENT_CONFIG)
embedder = BedrockEmbedder(
    boto3.client("bedrock-runtime", config=bedrock_client_config()),
    settings.embedding_model_id,
    settings.embedding_dimensions,
)
store = RecordedStore(S3Store(s3, settings.index_bucket), function_actor())
uploads = IncomingBucket(s3, settings.index_bucket)


def publish(collection: str, prepared: Sequence[Prepared], gone: Collection[str], declares: Declares) -> IngestReport:
    """Commit with the deployment's embedding model, with which everything prepared was embedded: it is not called."""
    return commit(store, embedder, collection, prepared, gone=gone, declares=declares)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Finish the run as far as the time reaches, and say what it came to."""
    collection, run = event["collection"], event["run"]
    logger.append_keys(collection=collection, run=run)
    finished = finish(
        collection,
        run,
        uploads,
        store,
        publish,
        remaining_s=lambda: context.get_remaining_time_in_millis() / 1000,
    )
    logger.info("ingest finished", extra=finished.model_dump())
    # A metric costs by the hour in which it has a value: a run without trouble has none.
    if finished.quarantined or finished.not_prepared:
        report({DOCUMENTS_QUARANTINED: finished.quarantined, DOCUMENTS_NOT_PREPARED: finished.not_prepared})
    return finished.model_dump(by_alias=True)
