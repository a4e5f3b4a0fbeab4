"""Checks an answer's citations against its passages: a request of ``docs/functions.md`` in, its response out."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.citations.extract import ExtractCitationsRequest
from cicada.integrators.calling import reading, respond
from cicada.integrators.citations import extract
from cicada.telemetry import logger


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Answer one call."""
    return respond(event, reading(ExtractCitationsRequest), extract)
