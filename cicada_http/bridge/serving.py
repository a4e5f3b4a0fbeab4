"""The loop of a process: one invocation after the other."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from typing import Any

from cicada_http.bridge.events import EventInvalid, read_event
from cicada_http.bridge.exchange import App, Exchange
from cicada_http.bridge.lifespan import Lifespan
from cicada_http.bridge.runtime_api import Failure, Invocation, RuntimeApi, RuntimeApiFailed

GRACE_S = 1.0
"""How long before the deadline a response is ended, so that its client is told and the process lives on."""
TRACE_VARIABLE = "_X_AMZN_TRACE_ID"

_FAILED = Failure("Function.Failed", "The request failed. The function's log has the cause.")
_TIMED_OUT = Failure("Function.TimedOut", "The function's time is over.")
_UNFINISHED = Failure("Function.Unfinished", "The application returned before the end of its response.")

logger = logging.getLogger("cicada.http")


async def serve(app: App, api: RuntimeApi) -> None:
    """Start the application, and answer invocations until the Runtime API ends.

    Raises:
        StartFailed: the application did not start.
        RuntimeApiFailed: there is no next invocation.
    """
    async with Lifespan(app) as lifespan:
        while True:
            invocation = await api.next()
            os.environ[TRACE_VARIABLE] = invocation.trace_id
            try:
                await answer(app, api, invocation, lifespan.state)
            except RuntimeApiFailed as error:
                logger.error("response not accepted", extra={"why": str(error), **_ids(invocation)})


async def answer(app: App, api: RuntimeApi, invocation: Invocation, state: dict[str, Any]) -> None:
    """Answer one invocation. Raises RuntimeApiFailed."""
    try:
        request = read_event(json.loads(invocation.payload), invocation.request_id)
    except (EventInvalid, ValueError) as error:
        logger.warning("event refused", extra={"why": str(error), **_ids(invocation)})
        await api.fail(invocation.request_id, Failure("Function.EventInvalid", str(error)))
        return
    exchange = Exchange(api, invocation.request_id, request)
    failure = _UNFINISHED
    try:
        async with asyncio.timeout(invocation.deadline_ms / 1000 - time.time() - GRACE_S) as bound:
            await app({**request.scope, "state": dict(state)}, exchange.receive, exchange.send)
    except RuntimeApiFailed:
        raise
    except Exception as error:
        failure = _TIMED_OUT if bound.expired() else _FAILED
        message = "request timed out" if bound.expired() else "request failed"
        logger.error(message, exc_info=None if bound.expired() else error, extra=_ids(invocation))
    if not exchange.complete:
        await exchange.fail(failure)


def _ids(invocation: Invocation) -> dict[str, str]:
    return {"function_request_id": invocation.request_id}
