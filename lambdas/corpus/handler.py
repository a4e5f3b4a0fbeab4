"""The corpus: a client's frame with one of its actions in, the reply frame out."""

from __future__ import annotations

import os
import time
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from wiring import build

from cicada.answering.time_left import TimeLeft
from cicada.errors import CicadaError, InvalidMessage, Unauthorized
from cicada.identity import asker_of, caller_of
from cicada.metrics import FRAMES_REFUSED
from cicada.protocol.actions import Search, parse_corpus_action, request_id_of
from cicada.protocol.events import Refused, Reply, reply_frame
from cicada.revocation import refuse_revoked
from cicada.settings import CorpusSettings
from cicada.telemetry import logger, report

settings = CorpusSettings.read(os.environ)
time_left = TimeLeft()
corpus = build(settings, time_left)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one frame. Errors are reported in the reply."""
    time_left.begin(context.get_remaining_time_in_millis() / 1000)
    logger.append_keys(connection_id=event["requestContext"]["connectionId"])
    return {"statusCode": 200, "body": reply_frame(_reply(event, event.get("body") or ""))}


def _reply(event: dict[str, Any], body: str) -> Reply:
    try:
        caller = caller_of(event, anonymous=settings.auth == "none", now_s=time.time())
        action = parse_corpus_action(body)
        if corpus.revocations is not None and not isinstance(action, Search):  # for a search, the gate looks
            refuse_revoked(caller, corpus.revocations)
        logger.append_keys(request_id=action.request_id, asker=asker_of(caller.owner))
        return corpus.api.handle(action, caller)
    except CicadaError as error:
        logger.warning("frame refused", extra={"code": error.code, "why": str(error)})
        report({FRAMES_REFUSED: 1})
        detail = error.detail if isinstance(error, InvalidMessage) else None
        return Refused.of(error, request_id_of(body), str(error) if isinstance(error, Unauthorized) else detail)
