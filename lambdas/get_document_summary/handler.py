"""Gives a document's summary, made before or now: a request of ``docs/functions.md`` in, its response out."""

from __future__ import annotations

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.ingest.enrichment.summaries import DocumentSummaries
from cicada.integrators.calling import reading, respond
from cicada.integrators.documents import SUMMARY_MAX_TOKENS, SummaryRequest, document_summary
from cicada.integrators.settings import SummarySettings
from cicada.integrators.wiring import bucket, index_reader, models_of
from cicada.retrieval.documents import DocumentReader
from cicada.telemetry import logger

settings = SummarySettings.read(os.environ)
documents = DocumentReader(index_reader(settings))
model = models_of(settings).structured(settings.writing_model_id, max_tokens=SUMMARY_MAX_TOKENS)
summaries = DocumentSummaries(bucket(settings), model)


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Answer one call."""
    return respond(event, reading(SummaryRequest), lambda request: document_summary(request, documents, summaries))
