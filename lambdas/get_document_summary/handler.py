"""Gives a document's summary, made before or now: a request of ``docs/functions.md`` in, its response out."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.ingest.enrichment.summaries import DocumentSummaries
from cicada.integrators.calling import for_groups, reading, respond
from cicada.integrators.documents import SUMMARY_MAX_TOKENS, SummaryRequest, document_summary
from cicada.integrators.settings import SummarySettings
from cicada.integrators.wiring import access_of, bucket, index_reader, models_of
from cicada.retrieval.documents import DocumentReader
from cicada.telemetry import logger

settings = SummarySettings.read(os.environ)
access = access_of(settings)
documents = DocumentReader(index_reader(settings))
model = models_of(settings).structured(settings.writing_model_id, max_tokens=SUMMARY_MAX_TOKENS)
summaries = DocumentSummaries(bucket(settings), model)


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Answer one call."""
    summary = partial(document_summary, reader=documents, summaries=summaries)
    return respond(event, reading(SummaryRequest), for_groups(summary, access))
