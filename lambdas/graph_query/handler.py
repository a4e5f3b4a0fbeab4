"""Tells what occurs together in the corpus: a request of ``docs/functions.md`` in, its response out."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.integrators.calling import for_groups, reading, respond
from cicada.integrators.entities import GraphRequest, graph_query
from cicada.integrators.settings import IndexSettings
from cicada.integrators.wiring import access_of, index_reader
from cicada.retrieval.graph import EntityGraph
from cicada.telemetry import logger

settings = IndexSettings.read(os.environ)
access = access_of(settings)
graph = EntityGraph(index_reader(settings))


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Answer one call."""
    return respond(event, reading(GraphRequest), for_groups(partial(graph_query, graph=graph), access))
