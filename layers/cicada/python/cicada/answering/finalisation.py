"""Ends a request that has no strategy left to try."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from cicada.answering.workflow import ExhaustedTask
from cicada.attempts.chain import closing_error, strategy_failures
from cicada.delivery.decide import may_drive, tried
from cicada.delivery.ports import Connections, RequestLog
from cicada.delivery.posting import end_request
from cicada.errors import CicadaError, RequestUnknown
from cicada.protocol.events import Failed
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)


def close_exhausted(
    task: ExhaustedTask, log: RequestLog, connections: Connections, *, now_s: Callable[[], float] = time.time
) -> CicadaError | None:
    """Append and post the error that ends the request. Returns it, or None if this did not end the request.

    Raises:
        StoreFault, DeliveryUnavailable: it could not be stored; the workflow retries.
    """
    try:
        head = log.head(task.key)
    except RequestUnknown:
        logger.warning("the request no longer exists")
        return None
    refusal = may_drive(head, task.execution, now_s())
    if refusal is not None:
        log_event(logger, "superseded", "request not closed", why=refusal.why)
        return None
    failed = tried(head, strategy_failures(task.failures, task.entry))
    error = closing_error(failed)
    ended = end_request(
        log,
        connections,
        head,
        Failed.of(error, failed),
        still=lambda head: may_drive(head, task.execution, now_s()) is None,
        now_s=now_s,
    )
    return error if ended else None
