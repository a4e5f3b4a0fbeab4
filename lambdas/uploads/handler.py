"""Uploads by users: a frame with the action ``upload`` in, the reply frame out."""

from __future__ import annotations

import os
import time
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from wiring import build

from cicada.errors import CicadaError, FolderFull, InvalidMessage, Unauthorized, UploadInvalid, UploadTooLarge
from cicada.identity import asker_of, caller_of
from cicada.ingest.settings import UploadSettings
from cicada.metrics import FRAMES_REFUSED
from cicada.protocol.actions import parse_upload_action, request_id_of
from cicada.protocol.events import Refused, Reply, reply_frame
from cicada.revocation import refuse_revoked
from cicada.telemetry import logger, report

settings = UploadSettings.read(os.environ)
api, revocations = build(settings)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one frame. Errors are reported in the reply."""
    body = event.get("body") or ""
    logger.append_keys(connection_id=event["requestContext"]["connectionId"])
    try:
        caller = caller_of(event, anonymous=settings.auth == "none", now_s=time.time())
        action = parse_upload_action(body)
        logger.append_keys(request_id=action.request_id, asker=asker_of(caller.owner))
        if revocations is not None:
            refuse_revoked(caller, revocations)
        reply: Reply = api.handle(action, caller)
        logger.info("upload action handled", extra={"operation": action.operation, "collection": action.collection})
    except CicadaError as error:
        logger.warning("frame refused", extra={"code": error.code, "why": str(error)})
        report({FRAMES_REFUSED: 1})
        reply = Refused.of(error, request_id_of(body), detail=_detail(error))
    return {"statusCode": 200, "body": reply_frame(reply)}


def _detail(error: CicadaError) -> str | None:
    """What the client may read beside the code's sentence: of other errors, the words are for the log alone."""
    match error:
        case InvalidMessage():
            return error.detail
        case FolderFull() | Unauthorized() | UploadInvalid() | UploadTooLarge():
            return str(error)
        case _:
            return None
