"""Says what tables and columns mean, by the corpus: a request of ``docs/functions.md`` in, its response out."""

from __future__ import annotations

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.integrators.calling import for_groups, reading, respond
from cicada.integrators.schema_explaining import EXPLAINING_MAX_TOKENS, SchemaExplainer
from cicada.integrators.settings import RetrieveSettings
from cicada.integrators.sql_schema import SchemaRequest
from cicada.integrators.wiring import access_of, checked_search_of, index_reader, models_of
from cicada.telemetry import logger

settings = RetrieveSettings.read(os.environ)
access = access_of(settings)
retriever, _ = checked_search_of(settings, index_reader(settings))
model = models_of(settings).structured(settings.writing_model_id, max_tokens=EXPLAINING_MAX_TOKENS)
explainer = SchemaExplainer(retriever, model)


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Answer one call."""
    return respond(event, reading(SchemaRequest), for_groups(explainer.explain, access))
