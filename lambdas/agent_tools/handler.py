"""The action group of the agents in Amazon Bedrock: a call of a tool that reads in, what it found out."""

from __future__ import annotations

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from wiring import AgentToolsSettings, build

from cicada.delivery.record import RequestKey
from cicada.identity import asker_of
from cicada.telemetry import logger


def _tell_of(key: RequestKey) -> None:
    logger.append_keys(request_id=key.request_id, asker=asker_of(key.subject))


function = build(AgentToolsSettings.read(os.environ), on_admitted=_tell_of)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one call of the agents' service."""
    return function.answer(event)
