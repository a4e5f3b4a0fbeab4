"""Ending a request with an error: every strategy has failed, its time is up, or its answer grows too long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from cicada.answering.workflow import ExhaustedTask
from cicada.attempts.chain import strategy_failures
from cicada.delivery.decide import may_drive, tried
from cicada.delivery.ports import Connections, RequestLog, StoreFault
from cicada.delivery.posting import end_request
from cicada.delivery.record import RequestHead
from cicada.errors import AllStrategiesFailed, AnswerTooLong, DeliveryUnavailable, OutOfTime, RequestUnknown
from cicada.protocol.events import Failed, StrategyFailure
from cicada.request_trace import log_event

logger = logging.getLogger(__name__)


def close_exhausted(
    task: ExhaustedTask, log: RequestLog, connections: Connections, *, now_s: Callable[[], float] = time.time
) -> bool:
    """Tell the client that every strategy failed, with what was tried. Returns whether this ended the request.

    Raises:
        StoreFault, DeliveryUnavailable: it could not be stored; the workflow tries again.
    """
    try:
        head = log.head(task.key)
    except RequestUnknown:
        logger.warning("the request is gone")
        return False
    refusal = may_drive(head, task.execution, now_s())
    if refusal is not None:
        log_event(logger, "superseded", "request not closed", why=refusal.why)
        return False
    failed = tried(head, strategy_failures(task.failures, task.entry))
    terminal = Failed.of(AllStrategiesFailed(), failed)
    return end_request(
        log,
        connections,
        head,
        terminal,
        still=lambda head: may_drive(head, task.execution, now_s()) is None,
        now_s=now_s,
    )


def end_late(
    head: RequestHead,
    failed: Sequence[StrategyFailure],
    error: OutOfTime,
    log: RequestLog,
    connections: Connections,
    *,
    now_s: Callable[[], float] = time.time,
) -> bool:
    """End a request whose time is up, with what was tried. Returns whether this ended it.

    Raises:
        DeliveryUnavailable: it could not be stored.
    """
    terminal = Failed.of(error, tried(head, failed))
    return _end(log, connections, head, terminal, still=lambda stands: stands.attempt == head.attempt, now_s=now_s)


def end_too_long(
    mine: RequestHead,
    error: AnswerTooLong,
    log: RequestLog,
    connections: Connections,
    *,
    now_s: Callable[[], float] = time.time,
) -> bool:
    """End a request whose answer outgrew the log, unless another attempt has begun. Returns whether this ended it.

    Raises:
        DeliveryUnavailable: it could not be stored.
    """
    return _end(
        log,
        connections,
        mine,
        Failed.of(error, mine.failed),
        still=lambda head: (head.attempt, head.worker) == (mine.attempt, mine.worker),
        now_s=now_s,
    )


def _end(
    log: RequestLog,
    connections: Connections,
    head: RequestHead,
    terminal: Failed,
    *,
    still: Callable[[RequestHead], bool],
    now_s: Callable[[], float],
) -> bool:
    try:
        return end_request(log, connections, head, terminal, still=still, now_s=now_s)
    except StoreFault as fault:
        raise DeliveryUnavailable(str(fault)) from fault
