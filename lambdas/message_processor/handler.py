"""The message processor: a client's frame in, the reply frame out."""

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
from cicada.protocol.actions import Ask, Ping, parse_action, request_id_of
from cicada.protocol.events import Refused, reply_frame
from cicada.revocation import refuse_revoked
from cicada.settings import MessageProcessorSettings
from cicada.telemetry import logger, report

settings = MessageProcessorSettings.read(os.environ)
time_left = TimeLeft()
processor = build(settings, time_left)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one frame. Errors are reported in the reply."""
    time_left.begin(context.get_remaining_time_in_millis() / 1000)
    body = event.get("body") or ""
    logger.append_keys(connection_id=event["requestContext"]["connectionId"])
    try:
        caller = caller_of(event, anonymous=settings.auth == "none", now_s=time.time())
        action = parse_action(body)
        if processor.revocations is not None and not isinstance(action, Ask):  # for a question, the gate looks
            refuse_revoked(caller, processor.revocations)
    except CicadaError as error:
        return _refusal(error, body)
    if not isinstance(action, Ping):
        logger.append_keys(request_id=action.request_id, asker=asker_of(caller.owner))
    try:
        return _reply(processor.handlers.handle(action, caller))
    except Unauthorized as error:
        return _refusal(error, body)


def _refusal(error: CicadaError, body: str) -> dict[str, Any]:
    logger.warning("frame refused", extra={"code": error.code, "why": str(error)})
    report({FRAMES_REFUSED: 1})
    return _reply(reply_frame(Refused.of(error, request_id_of(body), detail=_detail(error))))


def _detail(error: CicadaError) -> str | None:
    """What the client may read beside the code's sentence: of other errors, the words are for the log alone."""
    match error:
        case InvalidMessage():
            return error.detail
        case Unauthorized():
            return str(error)
        case _:
            return None


def _reply(frame: str) -> dict[str, Any]:
    return {"statusCode": 200, "body": frame}
