"""Retrieves passages by a pipeline: a request of ``docs/functions.md`` in, its response out."""

from __future__ import annotations

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.integrators.calling import for_groups, respond
from cicada.integrators.settings import RetrieveSettings
from cicada.integrators.wiring import access_of, pipelines_of
from cicada.retrieval.pipelines.api import parse_retrieve_request
from cicada.telemetry import logger

settings = RetrieveSettings.read(os.environ)
access = access_of(settings)
pipelines = pipelines_of(settings)


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Answer one call."""
    return respond(event, parse_retrieve_request, for_groups(pipelines.run, access))
