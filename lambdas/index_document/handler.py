"""Loads one document, or deletes it: a request of ``docs/functions.md`` in, its response out."""

from __future__ import annotations

import os
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.ingest.declaring import as_published
from cicada.ingest.incoming.batches import Prepare
from cicada.ingest.wiring import preparer
from cicada.integrators.calling import reading, respond
from cicada.integrators.documents import IndexDocumentRequest, index_document
from cicada.integrators.settings import IndexDocumentSettings
from cicada.integrators.wiring import bucket, committer, models_of
from cicada.models.bedrock import bedrock_client_config
from cicada.telemetry import logger

COMMIT_S = 60.0
"""Kept for the publication."""

settings = IndexDocumentSettings.read(os.environ)
store, models = bucket(settings), models_of(settings)
bedrock = boto3.client("bedrock-runtime", config=bedrock_client_config())
publish = committer(settings, store)


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Answer one call."""

    def time_left_s() -> float:
        return max(1.0, context.get_remaining_time_in_millis() / 1000 - COMMIT_S)

    def prepare_for(collection: str) -> Prepare:
        recipe = as_published(settings.recipe(collection), store, collection)
        return preparer(recipe, collection, store, bedrock, models, time_left_s=time_left_s).prepare

    return respond(event, reading(IndexDocumentRequest), lambda request: index_document(request, prepare_for, publish))
