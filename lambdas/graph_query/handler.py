"""Tells what occurs together in the corpus: a request of ``docs/functions.md`` in, its response out."""

from __future__ import annotations

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.integrators.calling import reading, respond
from cicada.integrators.entities import GraphRequest, graph_query
from cicada.integrators.settings import IndexSettings
from cicada.integrators.wiring import index_reader
from cicada.retrieval.graph import EntityGraph
from cicada.telemetry import logger

graph = EntityGraph(index_reader(IndexSettings.read(os.environ)))


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Answer one call."""
    return respond(event, reading(GraphRequest), lambda request: graph_query(request, graph))
